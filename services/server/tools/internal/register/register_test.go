// SPDX-License-Identifier: Apache-2.0

package register_test

import (
	"os"
	"strings"
	"testing"

	"github.com/OWNER/bothy/services/server/tools/internal/register"
)

// legal is a small register without a fault; every case below changes one place of it.
const legal = `version: 1
exclude: [tools]
kernel:
  core: [ids]
  ports: [txn]
platform:
  pg: {vendors: [pgx]}
  jobs: {depends_on: [pg]}
wire: {vendors: []}
cmd: {vendors: []}
testsupport: {paths: [test, perf]}
migrations: {used_by: [pg]}
functions: {next_seq: instance}
modules:
  # Who this
  # installation is.
  instance:
    tables: [instance]
    actions: [instance.read]
    events: [instance.updated]
    ephemeral_events: []
    ws_ops: []
    depends_on: []
    adapter_vendors: [pgx]
  chat:
    tables: [spaces]
    actions: [space.read]
    events: [space.created]
    ephemeral_events: [typing.started]
    ws_ops: [typing.start]
    depends_on: [instance]
    adapter_vendors: []
vendors:
  pgx: [github.com/jackc/pgx/v5, github.com/jackc/pgx/v5/**]
`

func TestLegalRegisterIsRead(t *testing.T) {
	reg, err := register.Parse([]byte(legal), []string{"internal", "cmd", "tools", "tools/archgen"})
	if err != nil {
		t.Fatal(err)
	}
	if got := reg.Modules[0].Responsibility; got != "Who this installation is." {
		t.Errorf("responsibility %q", got)
	}
	if got := reg.TableOwners()["spaces"]; got != "chat" {
		t.Errorf("owner of spaces: %q", got)
	}
	if got := reg.EventOwners()["typing.started"]; got != "chat" {
		t.Errorf("producer of typing.started: %q", got)
	}
	if got := reg.FunctionOwners()["next_seq"]; got != "instance" {
		t.Errorf("owner of next_seq: %q", got)
	}
}

func TestProjectRegisterIsLegalAndComplete(t *testing.T) {
	reg, err := register.Load("../../..")
	if err != nil {
		t.Fatal(err)
	}
	if got := len(reg.Modules); got != 20 {
		t.Errorf("%d modules, want 20", got)
	}
	if got := len(reg.ActionOwners()); got != 208 {
		t.Errorf("%d actions, want 208", got)
	}
	for _, m := range reg.Modules {
		if m.Responsibility == "" {
			t.Errorf("module %s has no describing comment", m.Name)
		}
	}
}

func TestRefusals(t *testing.T) {
	dirs := []string{"internal", "internal/chat", "cmd", "api", "tools", "toolshed", "test"}
	cases := map[string]struct{ old, new, want string }{
		"unknown top-level field":      {"wire:", "wires: {}\nwire:", `no field "wires"`},
		"unknown module field":         {"tables: [spaces]", "tables: [spaces]\n    color: [red]", `no field "color"`},
		"unknown platform field":       {"pg: {vendors", "pg: {size: [big], vendors", `no field "size"`},
		"unknown kernel field":         {"  core: [ids]", "  core: [ids]\n  shell: [a]", `no field "shell"`},
		"missing field":                {"cmd: {vendors: []}\n", "", `"cmd" is missing`},
		"key twice":                    {"    tables: [spaces]", "    tables: [spaces]\n    tables: [threads]", `key "tables" twice`},
		"name twice in a list":         {"[spaces]", "[spaces, spaces]", `names "spaces" twice`},
		"table with two owners":        {"[spaces]", "[instance]", `table "instance" belongs to instance and to chat`},
		"action with two owners":       {"[space.read]", "[instance.read]", `action "instance.read" belongs`},
		"event durable and ephemeral":  {"[typing.started]", "[space.created]", `event "space.created" belongs`},
		"unknown module in an edge":    {"depends_on: [instance]", "depends_on: [messaging]", `unknown module "messaging"`},
		"unknown vendor group":         {"adapter_vendors: []", "adapter_vendors: [redis]", `unknown vendor group "redis"`},
		"unknown platform package":     {"depends_on: [pg]", "depends_on: [mysql]", `unknown platform package "mysql"`},
		"unknown user of migrations":   {"used_by: [pg]", "used_by: [goose]", `unknown platform package "goose"`},
		"unknown owner of a function":  {"next_seq: instance", "next_seq: billing", `unknown module "billing"`},
		"cycle":                        {"depends_on: []", "depends_on: [chat]", "circle: chat -> instance -> chat"},
		"module of itself":             {"depends_on: [instance]", "depends_on: [chat]", "circle: chat -> chat"},
		"platform cycle":               {"pg: {vendors", "pg: {depends_on: [jobs], vendors", "circle: jobs -> pg -> jobs"},
		"core and port":                {"ports: [txn]", "ports: [txn, ids]", "as core and as port"},
		"binary tag":                   {"[spaces]", "[!!binary c3BhY2Vz]", "without tag or anchor"},
		"string tag":                   {"[spaces]", "[!!str spaces]", "without tag or anchor"},
		"tagged key":                   {"  chat:", "  !!str chat:", "without tag or anchor"},
		"anchor":                       {"[spaces]", "[&a spaces]", "without tag or anchor"},
		"alias":                        {"depends_on: [instance]", "depends_on: &d [instance]\n    events: *d", "plain list"},
		"unquoted no":                  {"[spaces]", "[no]", "quote it"},
		"unquoted On":                  {"[spaces]", "[On]", "quote it"},
		"unquoted y":                   {"[spaces]", "[y]", "quote it"},
		"sexagesimal":                  {"[spaces]", "[1:20]", "quote it"},
		"octal":                        {"[spaces]", "[010]", "quote it"},
		"null":                         {"[spaces]", "[null]", "quote it"},
		"tilde":                        {"[spaces]", "[~]", "quote it"},
		"date":                         {"[spaces]", "[2026-01-01]", "quote it"},
		"merge key":                    {"    tables: [spaces]", "    <<: {}\n    tables: [spaces]", "quote it"},
		"hexadecimal version":          {"version: 1", "version: 0x1", "decimal number 1"},
		"quoted version":               {"version: 1", `version: "1"`, "decimal number 1"},
		"other version":                {"version: 1", "version: 2", "decimal number 1"},
		"second document":              {"vendors:\n  pgx", "---\nvendors:\n  pgx", "more than one YAML document"},
		"string for a list":            {"[spaces]", "spaces", "plain list"},
		"upper case table":             {"[spaces]", "[Spaces]", "form of such a name"},
		"reserved module name":         {"  chat:", "  platform:", "reserved"},
		"exclude hides internal":       {"exclude: [tools]", "exclude: [in]", "would take internal out"},
		"exclude names api":            {"exclude: [tools]", "exclude: [api]", "would take api out"},
		"exclude below internal":       {"exclude: [tools]", "exclude: [internal/chat]", "would take internal out"},
		"exclude prefix of another":    {"exclude: [tools]", "exclude: [tools]", "also take toolshed out"},
		"testsupport below internal":   {"paths: [test, perf]", "paths: [internal/test]", "lies in internal"},
		"testsupport is cmd":           {"paths: [test, perf]", "paths: [cmd]", "lies in cmd"},
		"vendor of a whole forge":      {"github.com/jackc/pgx/v5/**", "github.com/**", "not a literal Go import path"},
		"vendor without a domain":      {"github.com/jackc/pgx/v5/**", "fmt", "not a literal Go import path"},
		"vendor with an inner star":    {"github.com/jackc/pgx/v5/**", "github.com/*/pgx", "not a literal Go import path"},
		"vendor with an expression":    {"github.com/jackc/pgx/v5/**", `"github.com/(jackc|x)/pgx"`, "not a literal Go import path"},
		"vendor with a middle pattern": {"github.com/jackc/pgx/v5/**", "github.com/**/pgx", "not a literal Go import path"},
		"vendor that climbs":           {"github.com/jackc/pgx/v5/**", "github.com/../pgx", "not a literal Go import path"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			if !strings.Contains(legal, c.old) {
				t.Fatalf("the case changes %q, which is not there", c.old)
			}
			_, err := register.Parse([]byte(strings.Replace(legal, c.old, c.new, 1)), dirs)
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want an error with %q", err, c.want)
			}
		})
	}
}

func TestEdgeToALaterModuleIsRefused(t *testing.T) {
	at := strings.Index(legal, "  chat:")
	end := strings.Index(legal, "vendors:\n  pgx")
	first := strings.Index(legal, "  # Who this")
	moved := legal[:first] + legal[at:end] + legal[first:at] + legal[end:]
	_, err := register.Parse([]byte(moved), nil)
	if err == nil || !strings.Contains(err.Error(), "instance stands below") {
		t.Errorf("got %v", err)
	}
}

func TestQuotedWordIsAName(t *testing.T) {
	text := strings.Replace(legal, "[spaces]", `["on"]`, 1)
	reg, err := register.Parse([]byte(text), nil)
	if err != nil {
		t.Fatal(err)
	}
	if got := reg.TableOwners()["on"]; got != "chat" {
		t.Errorf("owner %q", got)
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(legal))
	f.Add([]byte("version: 1\nmodules: {a: {tables: [!!binary YQ==]}}\n"))
	f.Add([]byte("a: &a [*a]\n"))
	if real, err := os.ReadFile("../../../architecture/modules.yaml"); err == nil {
		f.Add(real)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		reg, err := register.Parse(data, nil)
		if (reg == nil) == (err == nil) {
			t.Errorf("register %v with error %v", reg, err)
		}
	})
}
