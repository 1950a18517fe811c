// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/OWNER/bothy/services/server/internal/platform/pg"
	"github.com/OWNER/bothy/services/server/internal/platform/pg/pgtest"
	"github.com/OWNER/bothy/services/server/internal/platform/secrets"
)

var update = flag.Bool("update", false, "write the golden files anew")

const subscriptionsFile = "testdata/subscriptions.txt"

// The order of subscribers is behaviour: the list shows every change of it in a review, and
// the gate reads it to hold the direction of the dependencies.
func TestSubscriptionsAreThoseOfTheGoldenList(t *testing.T) {
	db := pgtest.New(t, pgtest.AsApp())
	got := "# What is called inside the unit of work of a publisher, in the order of the calls.\n"
	err := withConfig(t.Context(), testConfig(t, db), Console{Out: io.Discard, Err: io.Discard}, func(ctx context.Context, r *commandRun) error {
		return r.inModules(ctx, func(_ context.Context, r *commandRun) error {
			for _, s := range r.subscriptions() {
				got += fmt.Sprintf("%s %s %s %s\n", s.Event, s.Publisher, s.Subscriber, s.Function)
			}
			return nil
		})
	})
	if err != nil {
		t.Fatalf("build the modules: %v", err)
	}
	if *update {
		if err := os.WriteFile(subscriptionsFile, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(subscriptionsFile)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("the subscriptions are\n%s\nthe golden list says\n%s\nrun the test with -update and read the difference", got, want)
	}
}

// testConfig is a configuration on the database of a test, with secrets of its own.
func testConfig(t *testing.T, db *pgtest.DB) *Config {
	t.Helper()
	dir := t.TempDir()
	if _, err := secrets.Init(secrets.InitOptions{Target: dir}); err != nil {
		t.Fatal(err)
	}
	keys := filepath.Join(dir, "keys")
	if err := os.MkdirAll(keys, 0o700); err != nil {
		t.Fatal(err)
	}
	c, _, err := LoadConfig(Sources{Flags: map[string]string{
		"instance.environment": "dev", "server.public_url": "http://localhost:8080",
		"secrets.dir": filepath.Join(dir, secrets.StoreFolder), "secrets.signing_key_dir": keys,
	}})
	if err != nil {
		t.Fatal(strings.TrimSpace(err.Error()))
	}
	c.PG.DSN, c.Database.OwnerDSN = db.DSN, strings.Replace(db.DSN, "user="+pg.RoleApp, "user="+pg.RoleOwner, 1)
	// A copy of a database does not keep the rights on the database itself.
	db.Exec(t, "GRANT CREATE ON DATABASE "+db.Pool.Config().ConnConfig.Database+" TO "+pg.RoleOwner)
	if err := Prepare(t.Context(), c, Console{Out: io.Discard, Err: io.Discard}); err != nil {
		t.Fatalf("prepare the database: %v", err)
	}
	return c
}
