// SPDX-License-Identifier: Apache-2.0

package app

import (
	"sync"
	"time"
)

// cached keeps a value of the database that another process may change.
type cached[T any] struct {
	mu       sync.Mutex
	known    bool
	value    T
	loadedAt time.Time
}

// get gives the value, read again when it is older than ttl. Whoever asks meanwhile waits.
func (c *cached[T]) get(now time.Time, ttl time.Duration, load func() (T, error)) (T, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.known && now.Sub(c.loadedAt) < ttl {
		return c.value, nil
	}
	value, err := load()
	if err != nil {
		return value, err
	}
	c.value, c.loadedAt, c.known = value, now, true
	return value, nil
}

func (c *cached[T]) forget() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.known = false
}
