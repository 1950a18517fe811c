// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"sort"
	"strings"
	"time"

	"gopkg.in/yaml.v3"
)

// projectFiles lists the files of the repository that are tracked or could be, relative and with slashes.
func projectFiles(ctx context.Context, p project) ([]string, error) {
	cmd := exec.CommandContext(ctx, "git", "ls-files", "-z", "--cached", "--others", "--exclude-standard")
	cmd.Dir = p.root
	var problems bytes.Buffer
	cmd.Stderr = &problems
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("list the files of the repository: %w: %s", err, bytes.TrimSpace(problems.Bytes()))
	}
	var files []string
	for _, f := range strings.Split(string(out), "\x00") {
		if f == "" {
			continue
		}
		if info, err := os.Lstat(p.path(f)); err != nil || !info.Mode().IsRegular() {
			continue
		}
		files = append(files, f)
	}
	sort.Strings(files)
	return slices.Compact(files), nil
}

var (
	licence        = "SPDX-License-Identifier: Apache-2.0"
	sourceEndings  = []string{".go", ".ts", ".tsx", ".js", ".mjs", ".sql", ".sh", ".css"}
	generatedMark  = regexp.MustCompile(`(?m)^(//|--|#|/\*|\s*\*|<!--) ?(Code generated .* DO NOT EDIT\.|This file was auto-generated)`)
	licenceMaxLine = 5
)

// runSPDX asks every source file for its licence near the top. Generated files may do without: not every generator
// can write one.
func runSPDX(ctx context.Context, p project, _ []string) ([]string, error) {
	files, err := projectFiles(ctx, p)
	if err != nil {
		return nil, err
	}
	var bad []string
	for _, f := range files {
		if !slices.Contains(sourceEndings, path.Ext(f)) {
			continue
		}
		data, err := os.ReadFile(p.path(f))
		if err != nil {
			return nil, err
		}
		head := strings.Join(firstLines(string(data), licenceMaxLine), "\n")
		if !strings.Contains(head, licence) && !generatedMark.MatchString(strings.Join(firstLines(string(data), 20), "\n")) {
			bad = append(bad, f+": no line \""+licence+"\" near the top")
		}
	}
	return bad, nil
}

func firstLines(text string, n int) []string {
	lines := strings.SplitN(text, "\n", n+1)
	if len(lines) > n {
		lines = lines[:n]
	}
	return lines
}

// wordRule is an entry of words.yaml: an expression that must not occur, why, and where it may all the same.
type wordRule struct {
	Pattern string   `yaml:"pattern"`
	Reason  string   `yaml:"reason"`
	Except  []string `yaml:"except"`
}

type wordList struct {
	// Skip lists path prefixes that no rule looks at.
	Skip  []string   `yaml:"skip"`
	Rules []wordRule `yaml:"rules"`
}

// wordsFile holds the rules of the gate "words".
const wordsFile = "services/server/tools/gates/words.yaml"

func runWords(ctx context.Context, p project, _ []string) ([]string, error) {
	data, err := os.ReadFile(p.path(wordsFile))
	if err != nil {
		return nil, err
	}
	var list wordList
	dec := yaml.NewDecoder(bytes.NewReader(data))
	dec.KnownFields(true)
	if err := dec.Decode(&list); err != nil {
		return nil, fmt.Errorf("%s: %w", wordsFile, err)
	}
	patterns := make([]*regexp.Regexp, len(list.Rules))
	for i, r := range list.Rules {
		if patterns[i], err = regexp.Compile(r.Pattern); err != nil {
			return nil, fmt.Errorf("%s: %w", wordsFile, err)
		}
	}
	files, err := projectFiles(ctx, p)
	if err != nil {
		return nil, err
	}
	var bad []string
	for _, f := range files {
		if f == wordsFile || hasPrefix(f, list.Skip) {
			continue
		}
		data, err := os.ReadFile(p.path(f))
		if err != nil {
			return nil, err
		}
		if bytes.IndexByte(data, 0) >= 0 {
			continue
		}
		for n, line := range strings.Split(string(data), "\n") {
			for i, r := range list.Rules {
				if found := patterns[i].FindString(line); found != "" && !hasPrefix(f, r.Except) {
					bad = append(bad, fmt.Sprintf("%s:%d: %q: %s", f, n+1, found, r.Reason))
				}
			}
		}
	}
	return bad, nil
}

func hasPrefix(name string, prefixes []string) bool {
	return slices.ContainsFunc(prefixes, func(p string) bool { return strings.HasPrefix(name, p) })
}

// runGenerated runs the generators in a copy of the repository and compares. The argument is the make target.
func runGenerated(ctx context.Context, p project, args []string) ([]string, error) {
	target := "generate"
	if len(args) > 0 {
		target = args[0]
	}
	files, err := projectFiles(ctx, p)
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "generated-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	// Sums of the copy, not the files here, are compared: somebody may be writing while the generators run.
	before := make(map[string][sha256.Size]byte, len(files))
	for _, f := range files {
		to := filepath.Join(dir, filepath.FromSlash(f))
		if err := copyFile(to, p.path(f)); err != nil {
			return nil, fmt.Errorf("copy %s: %w", f, err)
		}
		data, err := os.ReadFile(to)
		if err != nil {
			return nil, err
		}
		before[f] = sha256.Sum256(data)
	}
	if err := borrow(p, dir, files); err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(ctx, "make", "--no-print-directory", "-C", dir, target)
	if out, err := cmd.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("make %s: %w\n%s", target, err, out)
	}
	return differences(dir, before)
}

// borrow links the built tools and the installed packages into the copy; they are no part of the comparison.
func borrow(p project, dir string, files []string) error {
	borrowed := []string{".bin"}
	for _, f := range files {
		if path.Base(f) == "package-lock.json" {
			borrowed = append(borrowed, path.Join(path.Dir(f), "node_modules"))
		}
	}
	for _, b := range borrowed {
		if _, err := os.Stat(p.path(b)); errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err := os.Symlink(p.path(b), filepath.Join(dir, filepath.FromSlash(b))); err != nil {
			return fmt.Errorf("borrow %s: %w", b, err)
		}
	}
	return nil
}

func differences(regenerated string, before map[string][sha256.Size]byte) ([]string, error) {
	var bad []string
	for _, f := range sortedKeys(before) {
		now, err := os.ReadFile(filepath.Join(regenerated, filepath.FromSlash(f)))
		if errors.Is(err, fs.ErrNotExist) {
			bad = append(bad, f+": its generator writes it no more")
			continue
		}
		if err != nil {
			return nil, err
		}
		if sha256.Sum256(now) != before[f] {
			bad = append(bad, f+": differs from what its generator writes; run make generate")
		}
	}
	err := filepath.WalkDir(regenerated, func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() || d.Type()&fs.ModeSymlink != 0 {
			return nil
		}
		rel, err := filepath.Rel(regenerated, name)
		if err != nil {
			return err
		}
		f := filepath.ToSlash(rel)
		if _, known := before[f]; !known {
			bad = append(bad, f+": written by a generator and not in the repository; run make generate")
		}
		return nil
	})
	return bad, err
}

func reachable(ctx context.Context, url string) bool {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return false
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return false
	}
	defer res.Body.Close()
	return res.StatusCode == http.StatusOK
}
