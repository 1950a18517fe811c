// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"sync"

	"github.com/OWNER/bothy/sdk/go/internal/durable"
)

// Position is how far the program has come in the log.
type Position struct {
	// InstanceID and PrincipalID say whose log it is. A position of another instance or principal is never used.
	InstanceID  string `json:"instance_id"`
	PrincipalID string `json:"principal_id"`
	// SyncEpoch changes when the log begins anew; then a cursor means nothing.
	SyncEpoch string `json:"sync_epoch"`
	// Cursor is the highest position that is done.
	Cursor int64 `json:"cursor"`
}

// Store keeps the position. A program that keeps its own data in a database stores both in one transaction: it
// writes the position in Handle, and gives a store whose Save has nothing left to do.
type Store interface {
	// Load returns the zero value when nothing was stored yet.
	Load(ctx context.Context) (Position, error)
	// Save returns after the position survives a crash.
	Save(ctx context.Context, p Position) error
}

// FileStore keeps the position in a file, readable by its user alone.
type FileStore struct{ name string }

// NewFileStore keeps the position in the named file. The folder is made when it is missing.
func NewFileStore(name string) (*FileStore, error) {
	if err := os.MkdirAll(filepath.Dir(name), durable.DirMode); err != nil {
		return nil, fmt.Errorf("folder of the position: %w", err)
	}
	return &FileStore{name: name}, nil
}

// Load implements Store.
func (s *FileStore) Load(context.Context) (Position, error) {
	var p Position
	_, err := durable.ReadJSON(s.name, &p)
	return p, err
}

// Save implements Store.
func (s *FileStore) Save(_ context.Context, p Position) error { return durable.WriteJSON(s.name, p) }

// MemoryStore keeps the position for the life of the program, for those that begin at the present.
type MemoryStore struct {
	mu sync.Mutex
	p  Position
}

// Load implements Store.
func (s *MemoryStore) Load(context.Context) (Position, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.p, nil
}

// Save implements Store.
func (s *MemoryStore) Save(_ context.Context, p Position) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.p = p
	return nil
}
