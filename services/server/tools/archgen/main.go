// SPDX-License-Identifier: Apache-2.0

// Command archgen turns the module register (architecture/modules.yaml) into the files that follow from it: the
// configuration of go-arch-lint and the reference tables of the architecture documentation.
//
// Usage: archgen -module services/server -docs docs/architecture/modules.gen.md
package main

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"

	"github.com/OWNER/bothy/services/server/tools/internal/register"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "archgen:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	flags := flag.NewFlagSet("archgen", flag.ContinueOnError)
	module := flags.String("module", ".", "root of the server's Go module")
	docs := flags.String("docs", "", "Markdown file to write; empty writes none")
	if err := flags.Parse(args); err != nil {
		return err
	}
	reg, err := register.Load(*module)
	if err != nil {
		return err
	}
	out := filepath.Join(*module, ".go-arch-lint.yml")
	if err := os.WriteFile(out, archLint(reg), 0o644); err != nil {
		return fmt.Errorf("write the go-arch-lint configuration: %w", err)
	}
	if *docs == "" {
		return nil
	}
	if err := os.WriteFile(*docs, markdown(reg), 0o644); err != nil {
		return fmt.Errorf("write the module tables: %w", err)
	}
	return nil
}
