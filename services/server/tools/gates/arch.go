// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// runArch refuses symbolic links and then asks go-arch-lint. go-arch-lint judges a linked directory by the path of
// the link while the compiler builds what is behind it, so a link could smuggle a package across a border.
// The optional argument is the go-arch-lint binary.
func runArch(ctx context.Context, p project, args []string) ([]string, error) {
	binary := p.path(".bin/go-arch-lint")
	if len(args) > 0 {
		binary = args[0]
	}
	links, locks, err := symlinks(p.server())
	if err != nil {
		return nil, err
	}
	if len(links) > 0 {
		for i, l := range links {
			links[i] = p.rel(l) + ": a symbolic link; the gate and the compiler would see different packages"
		}
		return links, nil
	}
	module := p.server()
	if len(locks) > 0 {
		// go-arch-lint gives up at a dangling link, so it looks at a copy without the editor's lock files.
		dir, err := os.MkdirTemp("", "arch-")
		if err != nil {
			return nil, err
		}
		defer os.RemoveAll(dir)
		if err := copyTree(dir, module, locks); err != nil {
			return nil, fmt.Errorf("copy the module without editor locks: %w", err)
		}
		module = dir
	}
	var out bytes.Buffer
	cmd := exec.CommandContext(ctx, binary, "check", "--project-path", module, "--output-color=false")
	cmd.Stdout, cmd.Stderr = &out, &out
	err = cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		return nil, fmt.Errorf("run go-arch-lint (make setup builds it): %w", err)
	}
	if err == nil {
		return nil, nil
	}
	return notices(strings.ReplaceAll(out.String(), module, p.server())), nil
}

// notices keeps the lines of go-arch-lint that name a fault.
func notices(out string) []string {
	var lines []string
	for _, l := range strings.Split(out, "\n") {
		l = strings.TrimSpace(l)
		switch {
		case l == "", l == "--", strings.HasPrefix(l, "module:"), l == "linters:",
			strings.HasPrefix(l, "On |"), strings.HasPrefix(l, "Off |"), strings.HasPrefix(l, "total notices"):
		default:
			lines = append(lines, l)
		}
	}
	if len(lines) == 0 {
		lines = []string{"go-arch-lint failed without a message"}
	}
	return lines
}

// symlinks lists the links below root, apart from the lock files that editors leave (.#name, pointing nowhere).
func symlinks(root string) (links, locks []string, err error) {
	err = filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.Type()&fs.ModeSymlink == 0 {
			return nil
		}
		if strings.HasPrefix(d.Name(), ".#") {
			if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
				locks = append(locks, path)
				return nil
			}
		}
		links = append(links, path)
		return nil
	})
	return links, locks, err
}

// copyTree copies regular files and directories from src to dst, without the paths to skip.
func copyTree(dst, src string, skip []string) error {
	leave := map[string]bool{}
	for _, s := range skip {
		leave[s] = true
	}
	return filepath.WalkDir(src, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(src, path)
		if err != nil {
			return err
		}
		to := filepath.Join(dst, rel)
		switch {
		case leave[path]:
			return nil
		case d.IsDir():
			return os.MkdirAll(to, 0o755)
		case !d.Type().IsRegular():
			return nil
		}
		return copyFile(to, path)
	})
}

func copyFile(dst, src string) error {
	data, err := os.ReadFile(src)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(dst), 0o755); err != nil {
		return err
	}
	info, err := os.Stat(src)
	if err != nil {
		return err
	}
	if err := os.WriteFile(dst, data, info.Mode().Perm()); err != nil {
		return err
	}
	// make compares times; a copy must not look newer than what was built from its original.
	return os.Chtimes(dst, info.ModTime(), info.ModTime())
}
