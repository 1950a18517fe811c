// SPDX-License-Identifier: Apache-2.0

// Command mutants proves that the model of permissions would notice if production decided
// otherwise: it puts one known fault after the other into a copy of a source file, builds with the
// copy in the place of the file, and fails for every fault that the model lets pass.
//
// The source itself is never touched and contains no switch for any of it.
//
// Usage: mutants [-root DIR] [NAME ...]
package main

import (
	"bytes"
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"gopkg.in/yaml.v3"
)

//go:embed mutants.yaml
var listed []byte

// mutant is one fault.
type mutant struct {
	// Name is what the documentation calls it.
	Name string
	// Breaks says what is wrong with it.
	Breaks string
	// File is the source below the module, Find the text that occurs in it once, Replace the fault.
	File, Find, Replace string
}

func mutants() ([]mutant, error) {
	var out []mutant
	if err := yaml.Unmarshal(listed, &out); err != nil {
		return nil, fmt.Errorf("read the list of faults: %w", err)
	}
	return out, nil
}

// apply gives the source with the fault in it.
func (m mutant) apply(root string) ([]byte, error) {
	source, err := os.ReadFile(filepath.Join(root, m.File))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", m.Name, err)
	}
	if n := bytes.Count(source, []byte(m.Find)); n != 1 {
		return nil, fmt.Errorf("%s: %q occurs %d times in %s", m.Name, m.Find, n, m.File)
	}
	return bytes.Replace(source, []byte(m.Find), []byte(m.Replace), 1), nil
}

func main() {
	root := flag.String("root", ".", "folder of the module")
	flag.Parse()
	if err := run(*root, flag.Args(), os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "mutants:", err)
		os.Exit(1)
	}
}

func run(root string, names []string, out io.Writer) error {
	list, err := mutants()
	if err != nil {
		return err
	}
	root, err = filepath.Abs(root)
	if err != nil {
		return err
	}
	var survivors []string
	for _, m := range list {
		if len(names) > 0 && !slices.Contains(names, m.Name) {
			continue
		}
		begin := time.Now()
		text, caught, err := m.test(root)
		if err != nil {
			return err
		}
		word := "caught"
		if !caught {
			word, survivors = "SURVIVED", append(survivors, m.Name)
		}
		_, _ = fmt.Fprintf(out, "%-9s %-34s %4.0fs  %s\n", word, m.Name, time.Since(begin).Seconds(), text)
	}
	if len(survivors) > 0 {
		return fmt.Errorf("the model lets pass: %s", strings.Join(survivors, ", "))
	}
	return nil
}

const (
	modelTest    = "TestProductionDecidesAsTheModelDoes"
	modelPackage = "./internal/wire"
	// plays is how many histories a fault may take to show.
	plays = "60"
)

// test builds and runs the model with the fault. The text is the first thing the model noticed.
func (m mutant) test(root string) (text string, caught bool, err error) {
	dir, err := os.MkdirTemp("", "mutant-")
	if err != nil {
		return "", false, err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	source, err := m.apply(root)
	if err != nil {
		return "", false, err
	}
	changed, overlay := filepath.Join(dir, "changed.go"), filepath.Join(dir, "overlay.json")
	replaced, err := json.Marshal(map[string]map[string]string{"Replace": {filepath.Join(root, m.File): changed}})
	if err != nil {
		return "", false, err
	}
	for name, content := range map[string][]byte{changed: source, overlay: replaced} {
		if err := os.WriteFile(name, content, 0o600); err != nil {
			return "", false, err
		}
	}
	cmd := exec.CommandContext(context.Background(), "go", "test", "-overlay="+overlay, "-vet=off", "-count=1", "-timeout=10m",
		"-run=^"+modelTest+"$", modelPackage)
	cmd.Dir = root
	cmd.Env = append(os.Environ(), "BOTHY_PERMISSION_RUNS="+plays, "BOTHY_PERMISSION_SHRINK=0s")
	said, err := cmd.CombinedOutput()
	if err == nil {
		return m.Breaks, false, nil
	}
	var exit *exec.ExitError
	at := bytes.Index(said, []byte("[rapid] failed"))
	if !errors.As(err, &exit) || at < 0 {
		return "", false, fmt.Errorf("%s: the test did not run: %w\n%s", m.Name, err, said)
	}
	line, _, _ := strings.Cut(string(said[at:]), "\n")
	return shorten(line), true, nil
}

func shorten(line string) string {
	_, line, _ = strings.Cut(line, ": ")
	const most = 100
	if len(line) > most {
		line = line[:most] + "..."
	}
	return line
}
