// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/OWNER/bothy/services/server/internal/kernel/errs"
)

func invoke(args ...string) (code int, stdout, stderr string) {
	var out, err bytes.Buffer
	code = run(context.Background(), args, []string{"PATH=" + os.Getenv("PATH")}, &out, &err, make(chan os.Signal))
	return code, out.String(), err.String()
}

func TestExitCodesTellHowACommandWasCalled(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		args []string
		code int
	}{
		"no command":                  {nil, exitUsage},
		"help":                        {[]string{"help"}, exitOK},
		"unknown command":             {[]string{"dance"}, exitUsage},
		"half a command":              {[]string{"migrate"}, exitUsage},
		"unknown flag":                {[]string{"version", "--loud"}, exitUsage},
		"argument too many":           {[]string{"version", "now"}, exitUsage},
		"help of a command":           {[]string{"serve", "-h"}, exitOK},
		"version":                     {[]string{"version"}, exitOK},
		"steps are valid":             {[]string{"migrate", "validate"}, exitOK},
		"owner without a name":        {[]string{"setup", "bootstrap-owner"}, exitUsage},
		"no configuration":            {[]string{"config", "check"}, exitUsage},
		"configuration file missing":  {[]string{"config", "check", "--config", "/nonexistent.yaml"}, exitFailed},
		"health of another machine":   {[]string{"healthcheck", "--url", "http://192.0.2.1/healthz"}, exitUsage},
		"health over https":           {[]string{"healthcheck", "--url", "https://localhost/healthz"}, exitUsage},
		"health with credentials":     {[]string{"healthcheck", "--url", "http://a:b@localhost/healthz"}, exitUsage},
		"health of a host like it":    {[]string{"healthcheck", "--url", "http://localhost.example.org/"}, exitUsage},
		"health of a port nobody has": {[]string{"healthcheck", "--url", "http://127.0.0.1:1/healthz"}, exitFailed},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if code, _, stderr := invoke(tc.args...); code != tc.code {
				t.Errorf("exit code %d, want %d; %s", code, tc.code, stderr)
			}
		})
	}
}

// The command reads its flags alone, prints a line per secret and never a value.
func TestSecretsAreMadeOnce(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	code, out, stderr := invoke("secrets", "init", "--target", dir)
	if code != exitOK || !strings.Contains(out, "created auth_code_hmac_key\n") || !strings.Contains(out, "skipped tls_key\n") {
		t.Fatalf("exit code %d, %q, %q", code, out, stderr)
	}
	name := filepath.Join(dir, "_store", "auth_code_hmac_key")
	before, err := os.ReadFile(name)
	if err != nil || strings.Contains(out+stderr, strings.TrimSpace(string(before))) {
		t.Fatalf("%v, or the value was printed", err)
	}
	if code, out, _ = invoke("secrets", "init", "--target", dir); code != exitOK || strings.Contains(out, "created") {
		t.Errorf("again: exit code %d, %q", code, out)
	}
	if after, err := os.ReadFile(name); err != nil || string(after) != string(before) {
		t.Error("the second call changed a secret")
	}
	mine := fmt.Sprintf("server=%d:%d", os.Geteuid(), os.Getegid())
	if code, _, stderr = invoke("secrets", "init", "--target", dir, "--owner", mine); code != exitOK {
		t.Errorf("with an owner: exit code %d, %s", code, stderr)
	}
	if copied, err := os.ReadFile(filepath.Join(dir, "server", "auth_code_hmac_key")); err != nil || string(copied) != string(before) {
		t.Errorf("the service has no copy: %v", err)
	}
	if _, err := os.Stat(filepath.Join(dir, "server", "database_owner_password")); err == nil {
		t.Error("the service got what it does not use")
	}
	if code, _, _ = invoke("secrets", "init", "--target", dir, "--owner", "nobody=1:1"); code != exitUsage {
		t.Errorf("an unknown service: exit code %d", code)
	}
	if code, _, _ = invoke("secrets", "init"); code != exitUsage {
		t.Errorf("without a target: exit code %d", code)
	}
}

func TestHelpNamesEveryCommand(t *testing.T) {
	t.Parallel()
	_, out, _ := invoke("help")
	for _, c := range commands {
		if !strings.Contains(out, "bothy "+c.name) {
			t.Errorf("help does not name %q", c.name)
		}
		if c.help == "" {
			t.Errorf("%q has no help", c.name)
		}
	}
}

func TestConfigurationFaultsAreNamedWithoutValues(t *testing.T) {
	t.Parallel()
	var out, err bytes.Buffer
	environ := []string{"BOTHY_DATABASE__MAX_CONNS=secret-in-the-wrong-place", "BOTHY_NO__SUCH_KEY=1"}
	code := run(context.Background(), []string{"config", "check"}, environ, &out, &err, make(chan os.Signal))
	if code != exitUsage {
		t.Errorf("exit code %d", code)
	}
	text := err.String()
	for _, want := range []string{"database.max_conns", "BOTHY_NO__SUCH_KEY"} {
		if !strings.Contains(text, want) {
			t.Errorf("the fault of %s is not named in %q", want, text)
		}
	}
	if strings.Contains(text, "secret-in-the-wrong-place") {
		t.Error("a value is repeated")
	}
}

func TestFaultsOfAValueAreToldWithTheirPlace(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	c := &call{command: &command{name: "setup bootstrap-owner"}, stderr: &out}
	err := fmt.Errorf("prepare: %w", errs.Invalid("/handle", "too_short", "A handle has at least 2 characters."))
	if code := c.fail(exitFailed, err); code != exitFailed {
		t.Errorf("exit code %d", code)
	}
	if !strings.Contains(out.String(), "\n  /handle: A handle has at least 2 characters.\n") {
		t.Errorf("got %q", out.String())
	}
}
