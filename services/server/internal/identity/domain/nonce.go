// SPDX-License-Identifier: Apache-2.0

package domain

import (
	"crypto/hkdf"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"time"
)

const (
	nonceRandom = 8
	nonceMAC    = 16
	nonceBytes  = 8 + nonceRandom + nonceMAC
)

// ErrNonce means that a nonce was not made with this key.
var ErrNonce = errors.New("not a nonce of this instance")

// DeriveKey makes a key of 32 bytes for one purpose from the secret of the module.
func DeriveKey(secret []byte, label string) ([]byte, error) {
	key, err := hkdf.Key(sha256.New, secret, nil, label, 32)
	if err != nil {
		return nil, fmt.Errorf("derive the key %s: %w", label, err)
	}
	return key, nil
}

// NewNonce makes a nonce that carries its time, so no node has to remember it.
func NewNonce(key []byte, at time.Time) string {
	var raw [nonceBytes]byte
	binary.BigEndian.PutUint64(raw[:8], uint64(at.UnixMilli()))
	_, _ = rand.Read(raw[8 : 8+nonceRandom]) // never fails: the runtime ends the process instead
	copy(raw[8+nonceRandom:], nonceTag(key, raw[:8+nonceRandom]))
	return base64.RawURLEncoding.EncodeToString(raw[:])
}

// NonceTime gives the time of a nonce made with the key; ErrNonce for any other text.
func NonceTime(key []byte, nonce string) (time.Time, error) {
	raw, err := base64.RawURLEncoding.Strict().DecodeString(nonce)
	if err != nil || len(raw) != nonceBytes {
		return time.Time{}, ErrNonce
	}
	if !hmac.Equal(raw[8+nonceRandom:], nonceTag(key, raw[:8+nonceRandom])) {
		return time.Time{}, ErrNonce
	}
	return time.UnixMilli(int64(binary.BigEndian.Uint64(raw[:8]))).UTC(), nil
}

func nonceTag(key, message []byte) []byte {
	mac := hmac.New(sha256.New, key)
	mac.Write(message)
	return mac.Sum(nil)[:nonceMAC]
}
