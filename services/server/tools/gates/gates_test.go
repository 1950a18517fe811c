// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"strings"
	"testing"
)

// repository lays out a small repository with two modules and returns it. files are added or replace the defaults.
func repository(t *testing.T, files map[string]string) project {
	t.Helper()
	p := project{root: t.TempDir(), out: &bytes.Buffer{}}
	all := map[string]string{
		"services/server/go.mod": "module " + modulePath + "\n\ngo 1.26.0\n",
		"services/server/architecture/modules.yaml": `version: 1
exclude: [tools]
kernel: {core: [ids], ports: [txn]}
platform:
  pg: {vendors: []}
  jobs: {depends_on: [pg]}
wire: {vendors: []}
cmd: {vendors: []}
functions: {next_seq: instance, chat_seq: chat}
modules:
  instance:
    tables: [instance, sequence_counters]
    actions: [instance.read]
    events: [instance.updated]
    ephemeral_events: []
    ws_ops: []
    depends_on: []
    adapter_vendors: []
  chat:
    tables: [spaces, threads]
    actions: [space.read]
    events: [space.created]
    ephemeral_events: [typing.started]
    ws_ops: [typing.start]
    depends_on: [instance]
    adapter_vendors: []
vendors: {}
`,
		"docs/spec/actions.yaml":                         "- {id: space.read, module: chat}\n",
		"docs/api/asyncapi.yaml":                         asyncContract("space.created: {module: chat, kind: durable}", "typing.start"),
		"services/server/migrations/0001_chat.sql":       "-- SPDX-License-Identifier: Apache-2.0\nCREATE TABLE spaces (id uuid);\n",
		"services/server/internal/chat/README.md":        "# chat\n\n## Tables\n\n- `spaces`: rooms; `threads` follow\n\n## Ports\n\n`instance`\n",
		"services/server/internal/chat/chat.go":          "// SPDX-License-Identifier: Apache-2.0\n\npackage chat\n",
		"services/server/internal/instance/README.md":    "# instance\n\n## Tables\n\n`instance`\n",
		"services/server/internal/instance/instance.go":  "// SPDX-License-Identifier: Apache-2.0\n\npackage instance\n",
		"services/server/tools/gates/words.yaml":         mustRead(t, "words.yaml"),
		"services/server/internal/chat/adapters/db/q.go": "// SPDX-License-Identifier: Apache-2.0\n\npackage db\n",
	}
	for name, text := range files {
		all[name] = text
	}
	for name, text := range all {
		if text != "" {
			write(t, p, name, text)
		}
	}
	return p
}

func mustRead(t *testing.T, path string) string {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func asyncContract(event, op string) string {
	return `operations:
  clientFrames: {action: receive, messages: [{$ref: '#/channels/gateway/messages/frame'}]}
  serverFrames: {action: send, messages: [{$ref: '#/channels/gateway/messages/hello'}]}
components:
  messages:
    frame: {name: ` + op + `}
    hello: {name: hello}
x-events:
  ` + event + "\n"
}

// violation is one planted file set and what the gate must say about it; "" means that the gate must be content.
type violation struct {
	files map[string]string
	want  string
}

func check(t *testing.T, run func(context.Context, project, []string) ([]string, error), cases map[string]violation, args ...string) {
	t.Helper()
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			p := repository(t, c.files)
			initGit(t, p)
			bad, err := run(context.Background(), p, args)
			if err != nil {
				t.Fatal(err)
			}
			got := strings.Join(bad, "\n")
			if c.want == "" && got != "" || !strings.Contains(got, c.want) {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

func initGit(t *testing.T, p project) {
	t.Helper()
	cmd := exec.Command("git", "init", "-q")
	cmd.Dir = p.root
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("git init: %s", out)
	}
}

func TestRegisterGate(t *testing.T) {
	check(t, runRegister, map[string]violation{
		"complete":                    {nil, ""},
		"action in no module":         {map[string]string{"docs/spec/actions.yaml": "- {id: space.paint, module: chat}\n"}, "the action space.paint stands in no module"},
		"action of another module":    {map[string]string{"docs/spec/actions.yaml": "- {id: space.read, module: instance}\n"}, "belongs to instance there and to chat in the register"},
		"event in no module":          {map[string]string{"docs/api/asyncapi.yaml": asyncContract("space.painted: {module: chat, kind: durable}", "typing.start")}, "space.painted stands in no module"},
		"event of another producer":   {map[string]string{"docs/api/asyncapi.yaml": asyncContract("space.created: {module: instance, kind: durable}", "typing.start")}, "belongs to instance there"},
		"event of another kind":       {map[string]string{"docs/api/asyncapi.yaml": asyncContract("space.created: {module: chat, kind: ephemeral}", "typing.start")}, "ephemeral space.created stands in no module"},
		"op in no module":             {map[string]string{"docs/api/asyncapi.yaml": asyncContract("space.created: {module: chat, kind: durable}", "dance")}, "the op dance stands in no module"},
		"table in no module":          {map[string]string{"services/server/migrations/0002_x.sql": "CREATE TABLE secret_rows (id uuid);"}, "0002_x.sql: creates the table secret_rows"},
		"function in no module":       {map[string]string{"services/server/migrations/0002_x.sql": "CREATE FUNCTION sneak() RETURNS int LANGUAGE sql AS 'SELECT 1';"}, "creates the function sneak"},
		"listed function":             {map[string]string{"services/server/migrations/0002_x.sql": "CREATE FUNCTION next_seq() RETURNS int LANGUAGE sql AS 'SELECT 1';"}, ""},
		"module without README":       {map[string]string{"services/server/internal/chat/README.md": ""}, "internal/chat/README.md: missing"},
		"README without a table":      {map[string]string{"services/server/internal/chat/README.md": "# chat\n\n## Tables\n\n`threads`\n"}, "does not name `spaces`"},
		"README with a foreign table": {map[string]string{"services/server/internal/chat/README.md": "# chat\n\n## Tables\n\n`spaces`, `instance`\n"}, "lists the table instance, which belongs to instance"},
	})
}

func TestRegisterGatePrintsWhatIsPlanned(t *testing.T) {
	p := repository(t, nil)
	if _, err := runRegister(context.Background(), p, nil); err != nil {
		t.Fatal(err)
	}
	out := p.out.(*bytes.Buffer).String()
	for _, want := range []string{"planned tables (3): instance, sequence_counters, threads", "planned actions (1): instance.read", "planned events (2): durable instance.updated, ephemeral typing.started"} {
		if !strings.Contains(out, want) {
			t.Errorf("%q is missing in:\n%s", want, out)
		}
	}
}

func TestTablesGate(t *testing.T) {
	query := "services/server/internal/chat/adapters/postgres/queries/spaces.sql"
	code := "services/server/internal/chat/adapters/postgres/spaces.go"
	goFile := func(expr string) map[string]string {
		return map[string]string{code: "package postgres\n\nimport \"github.com/jackc/pgx/v5\"\n\nvar q = " + expr + "\n"}
	}
	check(t, runTables, map[string]violation{
		"own tables":                 {map[string]string{query: "-- name: Get :one\nSELECT 1 FROM spaces s JOIN threads USING (id) WHERE s.id = @instance;"}, ""},
		"join with a foreign table":  {map[string]string{query: "-- name: Get :one\nSELECT 1\nFROM spaces\nJOIN instance ON true;"}, "spaces.sql:4: chat names the table instance, which belongs to instance"},
		"foreign table in a cte":     {map[string]string{query: "WITH x AS (SELECT 1 FROM sequence_counters) SELECT 1 FROM x;"}, "chat names the table sequence_counters"},
		"cte that shadows":           {map[string]string{query: "WITH instance AS (SELECT 1 FROM instance) SELECT 1 FROM instance;"}, "a WITH query is called instance"},
		"foreign table in a delete":  {map[string]string{query: "DELETE FROM public.instance;"}, "names the table instance"},
		"listed function":            {map[string]string{query: "SELECT next_seq(1);"}, ""},
		"function of a module above": {map[string]string{"services/server/internal/instance/adapters/postgres/queries/a.sql": "SELECT chat_seq();"}, "instance calls the function chat_seq of chat"},
		"function in platform":       {map[string]string{"services/server/internal/platform/pg/a.go": "package pg\n\nvar q = `SELECT next_seq(1)`\n"}, "platform/pg calls the function next_seq"},
		"function body":              {map[string]string{"services/server/migrations/0002_x.sql": "\nCREATE FUNCTION chat_seq() RETURNS bigint LANGUAGE sql AS $$\n SELECT value FROM sequence_counters $$;"}, "0002_x.sql:3: chat names the table sequence_counters"},
		"table of the queue":         {map[string]string{query: "SELECT 1 FROM river_job;"}, "belongs to platform/jobs"},
		"string in Go":               {goFile("`SELECT 1 FROM instance`"), "spaces.go:5: chat names the table instance"},
		"added strings in Go":        {goFile("\"SELECT 1 \" + \"FROM \" + \"instance\""), "names the table instance"},
		"fragment in Go":             {goFile("\" LEFT JOIN instance i ON i.id = s.id\""), "names the table instance"},
		"copy target in Go":          {goFile("pgx.Identifier{\"public\", \"instance\"}"), "names the table instance"},
		"prose in Go":                {goFile("\"update instance: %w\""), ""},
		"own string in Go":           {goFile("`UPDATE spaces SET name = 'FROM instance'`"), ""},
		"test file":                  {map[string]string{"services/server/internal/chat/adapters/postgres/x_test.go": "package postgres\n\nvar q = `SELECT 1 FROM instance`\n"}, ""},
		"SQL in a use case":          {map[string]string{"services/server/internal/chat/app/a.go": "package app\n\nvar q = `SELECT 1 FROM instance`\n"}, "app/a.go:3"},
		"product table in platform":  {map[string]string{"services/server/internal/platform/pg/a.go": "package pg\n\nvar q = `SELECT 1 FROM spaces`\n"}, "platform/pg names the table spaces"},
		"queue table in its package": {map[string]string{"services/server/internal/platform/jobs/a.go": "package jobs\n\nvar q = `SELECT 1 FROM river_job`\n"}, ""},
	})
}

func TestRoutesGate(t *testing.T) {
	contract := "paths:\n  /dms/{id}:\n    parameters: []\n    get: {operationId: getDm, x-action: space.read}\n"
	handler := func(module, name string) map[string]string {
		return map[string]string{
			"docs/api/openapi.yaml": contract,
			"services/server/internal/" + module + "/adapters/httpapi/h.go": "package httpapi\n\nimport \"" + modulePath + "/api/rest\"\n\ntype H struct{}\n\n" +
				"func (H) " + name + "(_ int, r rest." + name + "RequestObject) {}\n",
		}
	}
	check(t, runRoutes, map[string]violation{
		"owner":          {handler("chat", "GetDM"), ""},
		"another module": {handler("instance", "GetDM"), "h.go:7: instance handles getDm, whose action space.read belongs to chat"},
		"wiring":         {handler("wire", "GetDM"), "wire handles getDm"},
		"unknown action": {map[string]string{"docs/api/openapi.yaml": strings.Replace(contract, "space.read", "space.paint", 1)}, `getDm has the action "space.paint", which no module owns`},
		"no operation":   {handler("instance", "GetOther"), ""},
	})
}

func TestSubscriptionsGate(t *testing.T) {
	list := func(lines string) map[string]string {
		return map[string]string{subscriptionList: "# written by a test\n" + lines}
	}
	check(t, runSubscriptions, map[string]violation{
		"upwards":          {list("instance.Changed instance chat/app (*Sub).OnChanged\n"), ""},
		"from the kernel":  {list("authorize.AccessChanged kernel/authorize chat/app (*Sub).OnAccess\n"), ""},
		"downwards":        {list("chat.SpaceArchived chat instance/app (*Sub).OnArchived\n"), "txt:2: instance subscribes to chat.SpaceArchived of chat, which it may not use"},
		"closure of wire":  {list("instance.Changed instance wire build.func1\n"), "the subscriber wire is in no module"},
		"incomplete entry": {list("instance.Changed instance\n"), "not \"event publisher"},
	})
}

func TestCountersGate(t *testing.T) {
	code := func(dir, imports, use string) map[string]string {
		return map[string]string{"services/server/" + dir + "/x.go": "package x\n\nimport " + imports + "\"" + modulePath + "/internal/instance\"\n\n" + use + "\n"}
	}
	check(t, runCounters, map[string]violation{
		"use case":       {code("internal/chat/app", "", "var c instance.Counters"), "chat/app/x.go:5: names instance.Counters"},
		"under an alias": {code("internal/chat/app", "i ", "func f(c i.Counters) {}"), "names instance.Counters"},
		"dot import":     {code("internal/chat/app", ". ", "var c Counters"), "imports instance with a dot"},
		"other modules' adapters": {code("internal/sync/adapters/postgres", "", "type t struct{ c instance.Counters }"),
			"names instance.Counters"},
		"hook":         {code("internal/sync/app", "", "var c instance.Counters"), ""},
		"wiring":       {code("internal/wire", "", "var c instance.Counters"), ""},
		"another name": {code("internal/chat/app", "", "var c instance.Settings"), ""},
	})
}

func TestAmbientGate(t *testing.T) {
	const key = "internal/instance/adapters/keystore"
	code := func(dir, imports, use string) map[string]string {
		return map[string]string{"services/server/" + dir + "/x.go": "package x\n\nimport " + imports + "\n\n" + use + "\n"}
	}
	check(t, runAmbient, map[string]violation{
		"environment":      {code("internal/chat/app", `"os"`, `var v = os.Getenv("X")`), "internal/chat/app/x.go:5: uses os.Getenv"},
		"lookup":           {code("internal/chat", `"os"`, `var v, ok = os.LookupEnv("X")`), "uses os.LookupEnv"},
		"file":             {code("internal/chat/adapters/x", `"os"`, `var v, err = os.ReadFile("x")`), "adapters/x/x.go:5: uses os.ReadFile"},
		"opened file":      {code("internal/chat/domain", `"os"`, `var v, err = os.Open("x")`), "uses os.Open"},
		"as a value":       {code("internal/chat/app", `"os"`, `var read = os.ReadFile`), "uses os.ReadFile"},
		"under an alias":   {code("internal/chat/app", `system "os"`, `var v = system.Getenv("X")`), "uses os.Getenv"},
		"dot import":       {code("internal/chat/app", `. "os"`, `var v = Getenv("X")`), "imports os with a dot"},
		"by system calls":  {code("internal/chat/app", `"syscall"`, `var v, ok = syscall.Getenv("X")`), "x.go:3: imports syscall"},
		"below a listed":   {code(key+"/deep", `"os"`, `var v, err = os.Open("x")`), "keystore/deep/x.go:5: uses os.Open"},
		"listed adapter":   {code(key, `"os"`, `var v, err = os.Open("x")`), ""},
		"no file":          {code("internal/chat/app", `"os"`, `var err = os.ErrNotExist`), ""},
		"platform":         {code("internal/platform/secrets", `"os"`, `var v = os.Getenv("X")`), ""},
		"another package":  {code("internal/chat/app", `os "io"`, `var v = os.ReadAll`), ""},
		"wiring":           {code("internal/wire", `"os"`, `var v = os.Getenv("X")`), ""},
		"name of a member": {code("internal/chat/app", `_ "os"`, `var v = file{}.Open`), ""},
	})
}

func TestSDKImportsGate(t *testing.T) {
	main := "services/smoke/main.go"
	check(t, runSDKImports, map[string]violation{
		"sdk only":         {map[string]string{main: "package main\n\nimport (\n\t\"context\"\n\t\"github.com/OWNER/bothy/sdk/go/client\"\n)\n"}, ""},
		"server package":   {map[string]string{main: "package main\n\nimport _ \"" + modulePath + "/api/rest\"\n"}, "services/smoke/main.go:3: imports " + modulePath + "/api/rest"},
		"other library":    {map[string]string{main: "package main\n\nimport _ \"github.com/coder/websocket\"\n"}, "imports github.com/coder/websocket"},
		"similar to sdk":   {map[string]string{main: "package main\n\nimport _ \"github.com/OWNER/bothy/sdk/gopher\"\n"}, "sdk/gopher"},
		"package of smoke": {map[string]string{main: "package main\n\nimport _ \"github.com/OWNER/bothy/services/smoke/steps\"\n"}, ""},
	})
	if _, err := runSDKImports(context.Background(), repository(t, nil), nil); err == nil {
		t.Error("a missing program counted as a pass")
	}
}

func TestBinaryDepsGate(t *testing.T) {
	cmd := "services/server/cmd/bothy/main.go"
	helper := "services/server/internal/platform/pg/pgtest/p.go"
	check(t, runBinaryDeps, map[string]violation{
		"clean":        {map[string]string{cmd: "package main\n\nimport _ \"" + modulePath + "/internal/chat\"\n\nfunc main() {}\n"}, ""},
		"test helper":  {map[string]string{cmd: "package main\n\nimport _ \"" + modulePath + "/internal/platform/pg/pgtest\"\n\nfunc main() {}\n", helper: "package pgtest\n"}, "pgtest: is a test helper"},
		"test harness": {map[string]string{cmd: "package main\n\nimport _ \"" + modulePath + "/test/harness\"\n\nfunc main() {}\n", "services/server/test/harness/h.go": "package harness\n"}, "harness: lies in test"},
		"httptest":     {map[string]string{cmd: "package main\n\nimport _ \"net/http/httptest\"\n\nfunc main() {}\n"}, "net/http/httptest: belongs to tests"},
	})
}

func TestSPDXGate(t *testing.T) {
	check(t, runSPDX, map[string]violation{
		"all have one":       {nil, ""},
		"Go without":         {map[string]string{"a/b.go": "package b\n"}, "a/b.go: no line"},
		"TSX without":        {map[string]string{"a/b.tsx": "export {}\n"}, "a/b.tsx"},
		"style without":      {map[string]string{"a/b.css": "a{}\n"}, "a/b.css"},
		"SQL without":        {map[string]string{"a/b.sql": "SELECT 1;\n"}, "a/b.sql"},
		"shell with":         {map[string]string{"a/b.sh": "#!/usr/bin/env bash\n# SPDX-License-Identifier: Apache-2.0\n"}, ""},
		"other licence":      {map[string]string{"a/b.go": "// SPDX-License-Identifier: MIT\n"}, "a/b.go"},
		"too far down":       {map[string]string{"a/b.go": "\n\n\n\n\n\n// SPDX-License-Identifier: Apache-2.0\n"}, "a/b.go"},
		"generated":          {map[string]string{"a/b.go": "// Code generated by sqlc. DO NOT EDIT.\n"}, ""},
		"ignored by git":     {map[string]string{".gitignore": "out/\n", "out/b.go": "package b\n"}, ""},
		"mentions generated": {map[string]string{"a/b.go": "// Says Code generated by hand. DO NOT EDIT.\n"}, "a/b.go"},
	})
}

func TestWordsGate(t *testing.T) {
	check(t, runWords, map[string]violation{
		"plain prose":        {map[string]string{"a.md": "A thread holds 3 issues of the day; see /api/v1/home/x.\n"}, ""},
		"registry":           {map[string]string{"a.sh": "curl https://registry" + ".npmjs.org/x\n"}, "a.sh:1"},
		"path of a machine":  {map[string]string{"a.md": "one\nlook into /wo" + "rk/main\n"}, "a.md:2"},
		"home":               {map[string]string{"a.md": "`/home/" + "anna/x`\n"}, "a path of one machine"},
		"number of an issue": {map[string]string{"a.go": "// see issue" + " #12\n"}, "without a tracker"},
		"plan number":        {map[string]string{"a.go": "// decided in M2" + "-20\n"}, "number of a plan"},
		"promise":            {map[string]string{"a.go": "// TO" + "DO later\n"}, "promises later work"},
		"binary file":        {map[string]string{"a.bin": "\x00 TO" + "DO\n"}, ""},
	})
}

func TestGeneratedGate(t *testing.T) {
	makefile := "generate:\n\t@cp source generated.txt\n"
	check(t, runGenerated, map[string]violation{
		"current":         {map[string]string{"Makefile": makefile, "source": "new\n", "generated.txt": "new\n"}, ""},
		"edited":          {map[string]string{"Makefile": makefile, "source": "new\n", "generated.txt": "edited\n"}, "generated.txt: differs"},
		"missing":         {map[string]string{"Makefile": makefile, "source": "new\n"}, "generated.txt: written by a generator and not in the repository"},
		"written no more": {map[string]string{"Makefile": "generate:\n\t@rm old.gen.go\n", "old.gen.go": "// SPDX\n"}, "old.gen.go: its generator writes it no more"},
	})
	check(t, runGenerated, map[string]violation{
		"borrows installed packages": {map[string]string{
			"Makefile":                "generate:\n\t@cp web/node_modules/x/data generated.txt\n",
			".gitignore":              "node_modules/\n",
			"web/package-lock.json":   "{}\n",
			"web/node_modules/x/data": "new\n",
			"generated.txt":           "old\n",
		}, "generated.txt: differs"},
	})
	p := repository(t, map[string]string{"Makefile": "generate:\n\t@false\n"})
	initGit(t, p)
	if _, err := runGenerated(context.Background(), p, nil); err == nil {
		t.Error("a failing generator counted as a pass")
	}
}

func TestVulnerabilityGateIsSkippedWithoutItsDatabase(t *testing.T) {
	server := httptest.NewServer(http.NotFoundHandler())
	defer server.Close()
	p := repository(t, nil)
	if _, err := runVulnerabilities(context.Background(), p, []string{server.URL}); !errors.Is(err, errSkipped) {
		t.Errorf("got %v", err)
	}
	if got := p.out.(*bytes.Buffer).String(); got != "govulncheck: skipped (database not reachable)\n" {
		t.Errorf("printed %q", got)
	}
}

func TestExitCodes(t *testing.T) {
	p := repository(t, map[string]string{"a.go": "package a\n"})
	initGit(t, p)
	clean := repository(t, nil)
	initGit(t, clean)
	empty := t.TempDir()
	cases := []struct {
		name string
		args []string
		want int
		says string
	}{
		{"holds", []string{"-repo", clean.root, "spdx"}, 0, "spdx: ok"},
		{"broken", []string{"-repo", p.root, "spdx"}, 1, "a.go: no line"},
		{"cannot run", []string{"-repo", empty, "register"}, 2, "register: cannot check"},
		{"unknown gate", []string{"-repo", p.root, "nosuch"}, 2, "usage"},
		{"no gate", []string{"-repo", p.root}, 2, "usage"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			var out bytes.Buffer
			if got := run(context.Background(), c.args, &out, &out); got != c.want || !strings.Contains(out.String(), c.says) {
				t.Errorf("exit %d with %q, want %d with %q", got, out.String(), c.want, c.says)
			}
		})
	}
}
