// SPDX-License-Identifier: Apache-2.0

package settings

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

const good = `
server:
  url: http://localhost:8080
  token_file: /etc/bothy-agent/token
policy:
  billing_mode: local
  tool_class: chat
state_dir: /var/lib/bothy-agent
driver:
  kind: echo
`

func none(string) (string, bool) { return "", false }

func TestTheShortFileIsCompleted(t *testing.T) {
	s, err := Parse([]byte(good), none)
	if err != nil {
		t.Fatal(err)
	}
	if s.Work.Root != "/var/lib/bothy-agent/work" || s.Limits.Concurrency != 4 || s.Limits.RunTimeout != time.Hour || s.Cancel.Hard != 20*time.Second {
		t.Errorf("%+v", s)
	}
}

func TestVariablesStandInValuesOnly(t *testing.T) {
	lookup := func(name string) (string, bool) { return "https://chat.example.org: 'x'", name == "URL" }
	s, err := Parse([]byte(strings.Replace(good, "http://localhost:8080", "${URL}", 1)), lookup)
	if err != nil || s.Server.URL != "https://chat.example.org: 'x'" {
		t.Errorf("%v, %v", s, err)
	}
	if _, err := Parse([]byte(strings.Replace(good, "http://localhost:8080", "${MISSING}", 1)), lookup); err == nil || !strings.Contains(err.Error(), "MISSING") {
		t.Errorf("missing variable: %v", err)
	}
	if _, err := Parse([]byte(strings.Replace(good, "server:", "${URL}:", 1)), lookup); err == nil {
		t.Error("a variable in a key was taken")
	}
}

func TestEveryFaultIsNamedAtOnce(t *testing.T) {
	_, err := Parse([]byte("server: {url: chat}\npolicy: {billing_mode: free, tool_class: all}\nstate_dir: here\ndriver: {kind: command}\nlimits: {concurrency: -1}\n"), none)
	for _, want := range []string{"server.url", "token_file", "billing_mode", "tool_class", "state_dir", "argv", "concurrency"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s is not named in: %v", want, err)
		}
	}
	for _, text := range []string{"server: [", "a: b", good + "transport: x\n", good + "server: {}\n", ""} {
		if _, err := Parse([]byte(text), none); err == nil {
			t.Errorf("%q was taken", text)
		}
	}
}

func TestAPersonalAgentNeedsItsHolder(t *testing.T) {
	text := strings.Replace(good, "billing_mode: local", "billing_mode: personal", 1)
	if _, err := Parse([]byte(text), none); err == nil {
		t.Error("taken without a holder")
	}
	if _, err := Parse([]byte(strings.Replace(text, "policy:", "policy:\n  holder_id: p", 1)), none); err != nil {
		t.Error(err)
	}
}

func TestATokenThatOthersCanReadIsRefused(t *testing.T) {
	name := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(name, []byte("secret\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	s := &Settings{Server: Server{TokenFile: name}}
	if _, err := s.Token(); err == nil {
		t.Error("taken")
	}
	if err := os.Chmod(name, 0o600); err != nil {
		t.Fatal(err)
	}
	if token, err := s.Token(); err != nil || token != "secret" {
		t.Errorf("%q, %v", token, err)
	}
}

func FuzzNoFilePanics(f *testing.F) {
	f.Add([]byte(good))
	f.Add([]byte("a: &a [*a]"))
	f.Fuzz(func(_ *testing.T, text []byte) { _, _ = Parse(text, none) })
}
