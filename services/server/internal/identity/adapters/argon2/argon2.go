// SPDX-License-Identifier: Apache-2.0

// Package argon2 hashes passwords with Argon2id and stores them as PHC strings. A
// computation takes tens of megabytes and a core for a while, so only a few run at once;
// who would wait longer than five seconds is turned away. Passwords reach it normalised by
// the text rules of the API and are not changed here.
package argon2

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"encoding/base64"
	"errors"
	"fmt"
	"strings"
	"time"

	"golang.org/x/crypto/argon2"

	"github.com/OWNER/bothy/services/server/internal/identity/app"
	"github.com/OWNER/bothy/services/server/internal/kernel/clock"
	"github.com/OWNER/bothy/services/server/internal/kernel/errs"
)

const (
	saltLength = 16
	keyLength  = 32
	// maxWait bounds the time in the queue.
	maxWait = 5 * time.Second
	// maxQueue bounds the queue itself; a flood is refused at once.
	maxQueue = 64
)

// Config has the cost of a hash. The floor is what OWASP gives as the least.
type Config struct {
	MemoryKiB     int `key:"auth.argon2.memory_kib" default:"65536" min:"19456" max:"1048576" doc:"Memory of one password hash."`
	Iterations    int `key:"auth.argon2.iterations" default:"3" min:"2" max:"20" doc:"Passes over that memory."`
	Parallelism   int `key:"auth.argon2.parallelism" default:"1" min:"1" max:"16" doc:"Lanes of one hash."`
	MaxConcurrent int `key:"auth.argon2.max_concurrent" default:"2" min:"1" max:"64" doc:"Hashes computed at once; each takes the memory above."`
}

// DefaultConfig is the configuration without any source.
func DefaultConfig() Config {
	return Config{MemoryKiB: 65536, Iterations: 3, Parallelism: 1, MaxConcurrent: 2}
}

// Validate refuses costs below the floor.
func (c Config) Validate() error {
	switch {
	case c.MemoryKiB < 19456:
		return errors.New("auth.argon2.memory_kib: must be at least 19456")
	case c.Iterations < 2:
		return errors.New("auth.argon2.iterations: must be at least 2")
	case c.Parallelism < 1 || c.Parallelism > 16:
		return errors.New("auth.argon2.parallelism: must be 1 to 16")
	case c.MaxConcurrent < 1:
		return errors.New("auth.argon2.max_concurrent: must be at least 1")
	}
	return nil
}

// Hasher implements app.Hasher.
type Hasher struct {
	cfg     Config
	clock   clock.Clock
	running chan struct{}
	waiting chan struct{}
	dummy   string
}

var _ app.Hasher = (*Hasher)(nil)

// New makes a hasher and the hash that stands in for absent ones. That one belongs to no password: its key is random, so
// verifying against it costs what verifying costs, and making it costs nothing at every start.
func New(cfg Config, clk clock.Clock) (*Hasher, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	h := &Hasher{cfg: cfg, clock: clk, running: make(chan struct{}, cfg.MaxConcurrent), waiting: make(chan struct{}, maxQueue)}
	var salt [saltLength]byte
	var unknowable [keyLength]byte
	_, _ = rand.Read(salt[:]) // never fails: the runtime ends the process instead
	_, _ = rand.Read(unknowable[:])
	h.dummy = h.text(salt[:], unknowable[:])
	return h, nil
}

// Hash implements app.Hasher.
func (h *Hasher) Hash(ctx context.Context, password string) (string, error) {
	leave, err := h.enter(ctx)
	if err != nil {
		return "", err
	}
	defer leave()
	return h.compute(password), nil
}

// Verify implements app.Hasher.
func (h *Hasher) Verify(ctx context.Context, hash, password string) (fits, weak bool, err error) {
	absent := hash == ""
	if absent {
		hash = h.dummy
	}
	p, err := parse(hash)
	if err != nil {
		return false, false, fmt.Errorf("read a stored password hash: %w", err)
	}
	leave, err := h.enter(ctx)
	if err != nil {
		return false, false, err
	}
	defer leave()
	key := argon2.IDKey([]byte(password), p.salt, p.iterations, p.memory, p.lanes, uint32(len(p.key)))
	fits = subtle.ConstantTimeCompare(key, p.key) == 1 && !absent
	return fits, h.weaker(p), nil
}

// weaker reports whether a hash costs less than new ones.
func (h *Hasher) weaker(p phc) bool {
	return p.memory < uint32(h.cfg.MemoryKiB) || p.iterations < uint32(h.cfg.Iterations) || len(p.key) < keyLength || len(p.salt) < saltLength
}

// enter waits for a place and gives the function that frees it.
func (h *Hasher) enter(ctx context.Context) (leave func(), err error) {
	select {
	case h.waiting <- struct{}{}:
	default:
		return nil, errs.Unavailable(errors.New("the queue of password hashes is full"))
	}
	defer func() { <-h.waiting }()
	select {
	case h.running <- struct{}{}:
		return h.leave, nil
	default:
	}
	timer := h.clock.NewTimer(maxWait)
	defer timer.Stop()
	select {
	case h.running <- struct{}{}:
		return h.leave, nil
	case <-timer.C():
		return nil, errs.Unavailable(errors.New("no password hash could be computed in time"))
	case <-ctx.Done():
		return nil, errs.Unavailable(ctx.Err())
	}
}

func (h *Hasher) leave() { <-h.running }

func (h *Hasher) compute(password string) string {
	var salt [saltLength]byte
	_, _ = rand.Read(salt[:]) // never fails: the runtime ends the process instead
	c := h.cfg
	return h.text(salt[:], argon2.IDKey([]byte(password), salt[:], uint32(c.Iterations), uint32(c.MemoryKiB), uint8(c.Parallelism), keyLength))
}

// text is the stored form of a key of the present cost.
func (h *Hasher) text(salt, key []byte) string {
	c := h.cfg
	return fmt.Sprintf("$argon2id$v=%d$m=%d,t=%d,p=%d$%s$%s", argon2.Version, c.MemoryKiB, c.Iterations, c.Parallelism, encode(salt), encode(key))
}

type phc struct {
	memory, iterations uint32
	lanes              uint8
	salt, key          []byte
}

var errPHC = errors.New("not an Argon2id string")

// parse reads a PHC string. It bounds the cost, so that a damaged row cannot take the
// machine down.
func parse(text string) (phc, error) {
	parts := strings.Split(text, "$")
	if len(parts) != 6 || parts[0] != "" || parts[1] != "argon2id" || parts[2] != fmt.Sprintf("v=%d", argon2.Version) {
		return phc{}, errPHC
	}
	var p phc
	if n, err := fmt.Sscanf(parts[3], "m=%d,t=%d,p=%d", &p.memory, &p.iterations, &p.lanes); err != nil || n != 3 {
		return phc{}, errPHC
	}
	var err error
	if p.salt, err = decode(parts[4]); err != nil {
		return phc{}, errPHC
	}
	if p.key, err = decode(parts[5]); err != nil {
		return phc{}, errPHC
	}
	if p.memory < 8 || p.memory > 1<<20 || p.iterations < 1 || p.iterations > 100 || p.lanes < 1 || len(p.salt) < 8 || len(p.key) < 16 || len(p.key) > 64 {
		return phc{}, errPHC
	}
	return p, nil
}

func encode(b []byte) string { return base64.RawStdEncoding.EncodeToString(b) }

func decode(s string) ([]byte, error) { return base64.RawStdEncoding.Strict().DecodeString(s) }
