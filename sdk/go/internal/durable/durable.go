// SPDX-License-Identifier: Apache-2.0

// Package durable writes small files so that a crash at any point leaves the old content or the new, never a part.
package durable

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// DirMode and FileMode keep what is stored to its user.
const (
	DirMode  = 0o700
	FileMode = 0o600
)

// Write replaces the file: temporary file, flush, rename, flush of the folder.
func Write(name string, content []byte) error {
	dir := filepath.Dir(name)
	temporary, err := os.CreateTemp(dir, ".tmp-*")
	if err != nil {
		return fmt.Errorf("write %s: %w", name, err)
	}
	defer func() { _ = os.Remove(temporary.Name()) }() // gone after the rename
	if err := fill(temporary, content); err != nil {
		return fmt.Errorf("write %s: %w", name, err)
	}
	if err := os.Rename(temporary.Name(), name); err != nil {
		return fmt.Errorf("write %s: %w", name, err)
	}
	return SyncDir(dir)
}

func fill(f *os.File, content []byte) error {
	_, err := f.Write(content)
	if err == nil {
		err = f.Chmod(FileMode)
	}
	if err == nil {
		err = f.Sync()
	}
	return errors.Join(err, f.Close())
}

// WriteJSON is Write of a value.
func WriteJSON(name string, v any) error {
	content, err := json.Marshal(v)
	if err != nil {
		return fmt.Errorf("write %s: %w", name, err)
	}
	return Write(name, content)
}

// ReadJSON reads what WriteJSON wrote; false means that there is no such file.
func ReadJSON(name string, v any) (bool, error) {
	content, err := os.ReadFile(name)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("read %s: %w", name, err)
	}
	if err := json.Unmarshal(content, v); err != nil {
		return false, fmt.Errorf("read %s: %w", name, err)
	}
	return true, nil
}

// Remove removes the file for good; it may be gone already.
func Remove(name string) error {
	if err := os.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("remove %s: %w", name, err)
	}
	return SyncDir(filepath.Dir(name))
}

// SyncDir makes renames and removals in the folder last.
func SyncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return fmt.Errorf("flush %s: %w", dir, err)
	}
	if err := errors.Join(d.Sync(), d.Close()); err != nil {
		return fmt.Errorf("flush %s: %w", dir, err)
	}
	return nil
}
