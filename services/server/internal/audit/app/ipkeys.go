// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"crypto/aes"
	"crypto/cipher"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"net/netip"
	"time"

	"github.com/OWNER/bothy/services/server/internal/kernel/ids"
	"github.com/OWNER/bothy/services/server/internal/kernel/txn"
)

const (
	ipKeySize      = 32
	pseudonymBytes = 12
	// ipv6Bits of an IPv6 address tell a household apart, not a machine in it.
	ipv6Bits = 64
)

type openIPKey struct {
	IPKey
	key []byte
}

// EnsureIPKeys makes the keys of this period and of the next, so that a row never waits for
// one, and reads them. It is called while the process starts and then by Run.
func (s *Service) EnsureIPKeys(ctx context.Context) error {
	if s.cfg.IPKeyWrap == nil {
		return nil
	}
	aead, err := s.wrapper()
	if err != nil {
		return err
	}
	now := s.clock.Now()
	var rows []IPKey
	err = s.units.Do(ctx, func(ctx context.Context) error {
		begin := now.Truncate(s.cfg.IPKeyPeriod)
		for _, from := range []time.Time{begin, begin.Add(s.cfg.IPKeyPeriod)} {
			wrapped, err := newWrappedKey(aead)
			if err != nil {
				return err
			}
			k := IPKey{ID: ids.NewAt(now), ValidFrom: from, ValidUntil: from.Add(s.cfg.IPKeyPeriod), Wrapped: wrapped}
			if err := s.store.InsertIPKey(ctx, k); err != nil {
				return fmt.Errorf("store a key of the pseudonyms: %w", err)
			}
		}
		rows, err = s.store.IPKeys(ctx, now)
		return err
	}, txn.WithWriteInMaintenance()) // What is allowed to write in maintenance is recorded with a pseudonym too.
	if err != nil {
		return err
	}
	return s.openIPKeys(aead, rows)
}

func (s *Service) openIPKeys(aead cipher.AEAD, rows []IPKey) error {
	open := make([]openIPKey, 0, len(rows))
	for _, k := range rows {
		n := aead.NonceSize()
		if len(k.Wrapped) < n {
			return errors.New("a key of the address pseudonyms is damaged")
		}
		key, err := aead.Open(nil, k.Wrapped[:n], k.Wrapped[n:], nil)
		if err != nil {
			return errors.New("the secret audit.ip_key_wrap_ref does not open the keys of the address pseudonyms")
		}
		open = append(open, openIPKey{k, key})
	}
	s.ipMu.Lock()
	defer s.ipMu.Unlock()
	s.ipKeys = open
	return nil
}

func (s *Service) wrapper() (cipher.AEAD, error) {
	block, err := aes.NewCipher(s.cfg.IPKeyWrap)
	if err != nil || len(s.cfg.IPKeyWrap) != ipKeySize {
		return nil, errors.New("the secret audit.ip_key_wrap_ref must have 32 bytes")
	}
	return cipher.NewGCM(block)
}

func newWrappedKey(aead cipher.AEAD) ([]byte, error) {
	buf := make([]byte, aead.NonceSize()+ipKeySize)
	if _, err := rand.Read(buf); err != nil {
		return nil, fmt.Errorf("make a key of the pseudonyms: %w", err)
	}
	n := aead.NonceSize()
	return aead.Seal(buf[:n:n], buf[:n], buf[n:], nil), nil
}

// pseudonym turns an address into something that is equal for equal addresses and tells
// nothing else. Without a key for the moment nothing is recorded.
func (s *Service) pseudonym(ip netip.Addr, now time.Time) (ids.ID, string) {
	if !ip.IsValid() {
		return ids.ID{}, ""
	}
	s.ipMu.RLock()
	defer s.ipMu.RUnlock()
	for _, k := range s.ipKeys {
		if !now.Before(k.ValidFrom) && now.Before(k.ValidUntil) {
			mac := hmac.New(sha256.New, k.key)
			mac.Write(addressBytes(ip))
			return k.ID, base64.RawURLEncoding.EncodeToString(mac.Sum(nil)[:pseudonymBytes])
		}
	}
	return ids.ID{}, ""
}

func addressBytes(ip netip.Addr) []byte {
	ip = ip.Unmap().WithZone("")
	if ip.Is4() {
		b := ip.As4()
		return b[:]
	}
	b := ip.As16()
	return b[:ipv6Bits/8]
}
