// SPDX-License-Identifier: Apache-2.0

package pg

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

// Stage makes sure that the user can execute the binaries: when a folder above them is
// closed to it, they are copied once below dir, readable by everyone.
func (b Binaries) Stage(ctx context.Context, dir string, u OSUser) (Binaries, error) {
	if !u.Foreign || b.runsAs(ctx, u) {
		return b, nil
	}
	target := filepath.Join(dir, b.Version)
	staged := Binaries{Dir: filepath.Join(target, filepath.Base(b.Dir)), Root: target, Version: b.Version}
	if _, err := os.Stat(staged.Postgres()); err == nil && staged.runsAs(ctx, u) {
		return staged, nil
	}
	fresh := target + ".new"
	if err := os.RemoveAll(fresh); err != nil {
		return Binaries{}, fmt.Errorf("clear %s: %w", fresh, err)
	}
	if err := os.MkdirAll(fresh, 0o755); err != nil {
		return Binaries{}, fmt.Errorf("make %s: %w", fresh, err)
	}
	if err := os.CopyFS(fresh, os.DirFS(b.Root)); err != nil {
		return Binaries{}, fmt.Errorf("copy the binaries to %s: %w", fresh, err)
	}
	if err := os.RemoveAll(target); err != nil {
		return Binaries{}, fmt.Errorf("clear %s: %w", target, err)
	}
	if err := os.Rename(fresh, target); err != nil {
		return Binaries{}, fmt.Errorf("put the copied binaries in place: %w", err)
	}
	if !staged.runsAs(ctx, u) {
		return Binaries{}, fmt.Errorf("the user %s cannot execute %s; a folder above it is closed", u.Name, staged.Postgres())
	}
	return staged, nil
}

func (b Binaries) runsAs(ctx context.Context, u OSUser) bool {
	cmd := exec.CommandContext(ctx, b.Postgres(), "--version")
	u.Apply(cmd)
	cmd.Dir = "/"
	return cmd.Run() == nil
}
