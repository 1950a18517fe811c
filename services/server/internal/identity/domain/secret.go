// SPDX-License-Identifier: Apache-2.0

package domain

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"math/big"
	"strings"
)

// SecretKind is the prefix of a secret; scanners recognise leaked secrets by it.
type SecretKind string

// The kinds of secrets this module makes.
const (
	SecretPAT     SecretKind = "bothy_pat_"
	SecretAgent   SecretKind = "bothy_agent_"
	SecretApp     SecretKind = "bothy_app_"
	SecretRefresh SecretKind = "bothy_rt_"
	// SecretPairing is the code with which a machine collects what a person has approved.
	SecretPairing SecretKind = "bothy_pair_"
)

const (
	base62         = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
	secretRandom   = 43 // 62^43 > 2^256
	secretChecksum = 6  // 62^6 > 2^32
)

// ErrSecret means that a text is no secret of the wanted kinds: wrong prefix, length,
// alphabet or checksum. Such a text needs no look-up.
var ErrSecret = errors.New("not a secret of this kind")

// NewSecret makes a secret with 256 bits from the system's generator.
func NewSecret(kind SecretKind) string {
	var seed [32]byte
	_, _ = rand.Read(seed[:]) // never fails: the runtime ends the process instead
	body := string(kind) + encode62(new(big.Int).SetBytes(seed[:]), secretRandom)
	return body + checksum(body)
}

// ParseSecret tells the kind of a well-formed secret and the hash under which it is
// stored. It fails with ErrSecret for anything else.
func ParseSecret(text string, kinds ...SecretKind) (SecretKind, [32]byte, error) {
	for _, kind := range kinds {
		rest, ok := strings.CutPrefix(text, string(kind))
		if !ok {
			continue
		}
		if len(rest) != secretRandom+secretChecksum || !isBase62(rest) {
			return "", [32]byte{}, ErrSecret
		}
		body := text[:len(text)-secretChecksum]
		if checksum(body) != text[len(body):] {
			return "", [32]byte{}, ErrSecret
		}
		return kind, HashSecret(text), nil
	}
	return "", [32]byte{}, ErrSecret
}

// HashSecret is what is stored of a secret or a code. A fast hash is enough, because the
// input has at least 120 random bits.
func HashSecret(text string) [32]byte { return sha256.Sum256([]byte(text)) }

// Hint is the part of a secret that lists show.
func Hint(secret string) string { return secret[len(secret)-4:] }

func checksum(body string) string {
	var sum [4]byte
	binary.BigEndian.PutUint32(sum[:], crc32.ChecksumIEEE([]byte(body)))
	return encode62(new(big.Int).SetBytes(sum[:]), secretChecksum)
}

func encode62(n *big.Int, width int) string {
	out := make([]byte, width)
	base, digit := big.NewInt(62), new(big.Int)
	for i := width - 1; i >= 0; i-- {
		n.DivMod(n, base, digit)
		out[i] = base62[digit.Int64()]
	}
	return string(out)
}

func isBase62(s string) bool {
	for i := range len(s) {
		c := s[i]
		if !(c >= '0' && c <= '9' || c >= 'A' && c <= 'Z' || c >= 'a' && c <= 'z') {
			return false
		}
	}
	return true
}
