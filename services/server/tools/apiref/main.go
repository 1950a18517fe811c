// SPDX-License-Identifier: Apache-2.0

// Command apiref writes the API reference that the server serves at /reference/: static pages with one style sheet,
// without a script and without anything from another host, so that the strictest content policy lets them through and
// they can be read wherever the server can be reached.
//
// Everything on the pages comes from the contract (openapi.yaml, asyncapi.yaml and its schemas), the catalogue of
// actions and the design tokens. A type without a description or an example without a value is shown as it is; what the
// contract does not say, the reference does not invent.
//
// Usage: apiref -api docs/api -actions docs/spec/actions.yaml -tokens design/tokens/color.json -out FOLDER
package main

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
)

func main() {
	var in sources
	flag.StringVar(&in.api, "api", "", "folder of openapi.yaml and asyncapi.yaml")
	flag.StringVar(&in.actions, "actions", "", "catalogue of actions")
	flag.StringVar(&in.tokens, "tokens", "", "colours of the design")
	out := flag.String("out", "", "folder to write")
	flag.Parse()
	if err := run(in, *out); err != nil {
		fmt.Fprintln(os.Stderr, "apiref:", err)
		os.Exit(1)
	}
}

// run replaces the pages in a folder. Pages of a module that is gone are removed.
func run(in sources, out string) error {
	c, err := load(in)
	if err != nil {
		return err
	}
	files, err := render(c)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(out, 0o755); err != nil {
		return err
	}
	old, err := filepath.Glob(filepath.Join(out, "*.html"))
	if err != nil {
		return err
	}
	for _, name := range old {
		if err := os.Remove(name); err != nil {
			return err
		}
	}
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(out, name), text, 0o644); err != nil {
			return err
		}
	}
	return nil
}
