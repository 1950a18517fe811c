// SPDX-License-Identifier: Apache-2.0

// Command gates holds the rules of the architecture that neither the compiler nor a linter knows. Each subcommand
// checks one rule and either says in one line that it holds, or lists every place that breaks it and exits with 1.
// Exit code 2 means that a gate could not run at all.
//
// Usage: gates [-repo DIR] NAME [argument ...]
//
// The rules read the module register, the contract and the source; they change nothing.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"

	"github.com/OWNER/bothy/services/server/tools/internal/register"
)

// gate is one rule. run returns the places that break it, each with a reason a reader can act on.
type gate struct {
	name string
	rule string
	run  func(ctx context.Context, p project, args []string) ([]string, error)
}

var gates = []gate{
	{"arch", "packages import only what the register allows, and no symbolic link hides one", runArch},
	{"register", "everything built stands in the register under its owner", runRegister},
	{"routes", "an operation is handled by the module that owns its action", runRoutes},
	{"tables", "SQL names only the tables of its own module", runTables},
	{"counters", "only the phase hooks reach instance.Counters", runCounters},
	{"ambient", "modules take neither files nor the environment for themselves", runAmbient},
	{"subscriptions", "in-transaction events flow upwards only", runSubscriptions},
	{"generated", "generated files are what their generators write now", runGenerated},
	{"sdkimports", "the smoke program knows the product only through the SDK", runSDKImports},
	{"binary-deps", "no test support is linked into the program", runBinaryDeps},
	{"spdx", "every source file names its licence", runSPDX},
	{"words", "code and documents speak of the product alone", runWords},
	{"asvs", "every point of security has a row, and what it names exists", runASVS},
	{"govulncheck", "no known vulnerability is reachable", runVulnerabilities},
}

// project knows where things are. The register is read when a gate asks for it.
type project struct {
	root string
	out  io.Writer
}

func (p project) path(rel string) string {
	return filepath.Join(p.root, filepath.FromSlash(rel))
}

// server is the root of the server's Go module.
func (p project) server() string { return p.path("services/server") }

func (p project) register() (*register.Register, error) { return register.Load(p.server()) }

// rel names a file as a reader of the repository would.
func (p project) rel(path string) string {
	if r, err := filepath.Rel(p.root, path); err == nil {
		return filepath.ToSlash(r)
	}
	return path
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	code := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	flags := flag.NewFlagSet("gates", flag.ContinueOnError)
	flags.SetOutput(stderr)
	repo := flags.String("repo", ".", "root of the repository")
	flags.Usage = func() { usage(stderr) }
	if err := flags.Parse(args); err != nil {
		return 2
	}
	root, err := filepath.Abs(*repo)
	if err != nil {
		fmt.Fprintln(stderr, "gates:", err)
		return 2
	}
	at := slices.IndexFunc(gates, func(g gate) bool { return g.name == flags.Arg(0) })
	if at < 0 {
		usage(stderr)
		return 2
	}
	g := gates[at]
	p := project{root: root, out: stdout}
	violations, err := g.run(ctx, p, flags.Args()[1:])
	switch {
	case errors.Is(err, errSkipped):
		return 0
	case err != nil:
		fmt.Fprintf(stderr, "%s: cannot check: %v\n", g.name, err)
		return 2
	case len(violations) > 0:
		fmt.Fprintf(stderr, "%s: broken: %s\n", g.name, g.rule)
		for _, v := range violations {
			fmt.Fprintln(stderr, "  "+v)
		}
		return 1
	}
	fmt.Fprintf(stdout, "%s: ok\n", g.name)
	return 0
}

// errSkipped is returned by a gate that has already said why it does not apply here.
var errSkipped = errors.New("skipped")

func usage(w io.Writer) {
	var b strings.Builder
	b.WriteString("usage: gates [-repo DIR] NAME [argument ...]\n\n")
	for _, g := range gates {
		fmt.Fprintf(&b, "  %-14s %s\n", g.name, g.rule)
	}
	fmt.Fprint(w, b.String())
}
