// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/OWNER/bothy/services/server/internal/platform/lifecycle"
	"github.com/OWNER/bothy/services/server/internal/platform/secrets"
)

// A secret of the wrong form is found by the check, and stops a start with the code that tells
// a supervisor not to try again.
func TestASecretOfTheWrongFormIsAFaultOfTheConfiguration(t *testing.T) {
	dir := t.TempDir()
	if _, err := secrets.Init(secrets.InitOptions{Target: dir}); err != nil {
		t.Fatal(err)
	}
	store := filepath.Join(dir, secrets.StoreFolder)
	from := Sources{Flags: map[string]string{
		"instance.environment": "dev", "server.public_url": "http://localhost:8080", "server.listen_addr": "127.0.0.1:0",
		"secrets.dir": store, "secrets.signing_key_dir": dir,
	}}
	var out, trouble bytes.Buffer
	console := Console{Out: &out, Err: &trouble}
	if err := ConfigCheck(from, console, true); err != nil {
		t.Fatalf("what secrets init writes: %v\n%s", err, &out)
	}
	if err := os.WriteFile(filepath.Join(store, "audit_ip_key"), []byte("not a key"), 0o600); err != nil {
		t.Fatal(err)
	}
	out.Reset()
	if err := ConfigCheck(from, console, true); err == nil || !strings.Contains(out.String(), "secret audit.ip_key_wrap_ref: malformed") {
		t.Errorf("%v\n%s", err, &out)
	}
	if code := Serve(context.Background(), from, console, nil); code != lifecycle.ExitConfig {
		t.Errorf("serve ends with %d", code)
	}
	if !strings.Contains(trouble.String(), "unpadded base64url") {
		t.Errorf("told was %s", &trouble)
	}
}
