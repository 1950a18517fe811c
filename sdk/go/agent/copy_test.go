// SPDX-License-Identifier: Apache-2.0

package agent_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// copyState copies a state folder while an adapter writes to it: a file that goes meanwhile is gone.
func copyState(from, to string) error {
	return filepath.WalkDir(from, func(name string, entry fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(from, name)
		if err != nil {
			return err
		}
		target := filepath.Join(to, rel)
		if entry.IsDir() {
			return os.MkdirAll(target, 0o700)
		}
		if strings.HasPrefix(entry.Name(), ".tmp-") || entry.Name() == "lock" {
			return nil
		}
		content, err := os.ReadFile(name)
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil {
			return err
		}
		return os.WriteFile(target, content, 0o600)
	})
}
