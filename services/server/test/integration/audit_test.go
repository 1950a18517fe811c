// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"encoding/json"
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/OWNER/bothy/services/server/internal/audit/adapters/export"
	"github.com/OWNER/bothy/services/server/internal/kernel/jose"
	"github.com/OWNER/bothy/services/server/internal/wire"
	"github.com/OWNER/bothy/services/server/test/harness"
)

func TestOwnersReadTheRecord(t *testing.T) {
	s := shared.Use(t)
	owner, member := s.Owner(t), s.Person(t, "reader")
	place := s.Space(t, "read", member)
	grant := s.Grant(t, member, "write", "channel", place.Channel)
	member.Call(t, "listAuditEvents").Refused(t, "forbidden")

	list := func(q harness.Query) []any { return owner.Call(t, "listAuditEvents", q).OK(t).List("items") }
	if got := list(harness.Query{"resource_id": grant}); len(got) != 1 || harness.At(got[0], "action") != "grant.create" {
		t.Fatalf("the grant: %v", got)
	}
	for name, q := range map[string]harness.Query{
		"actor": {"actor_id": owner.ID}, "beginning": {"action": "grant."}, "channel": {"channel_id": place.Channel},
		"space": {"space_id": place.Space}, "time": {"from": s.In(-minute), "to": s.In(minute), "outcome": "allow"},
	} {
		if got := list(q); len(got) == 0 {
			t.Errorf("%s: nothing", name)
		}
	}
	harness.Eventually(t, "the refusal is in the record", func() bool {
		got := list(harness.Query{"actor_id": member.ID, "outcome": "deny", "action": "audit.read"})
		return len(got) == 1 && harness.At(got[0], "reason") == "not_owner"
	})
	if got := list(harness.Query{"to": s.In(-1000 * 60 * minute)}); len(got) != 0 {
		t.Errorf("before the beginning: %v", got)
	}
	page := owner.Call(t, "listAuditEvents", harness.Query{"limit": "2"}).OK(t)
	next := owner.Call(t, "listAuditEvents", harness.Query{"limit": "2", "cursor": page.Str("next_cursor")}).OK(t)
	if page.Int("items.1.seq") <= next.Int("items.0.seq") {
		t.Errorf("the second page begins at %d", next.Int("items.0.seq"))
	}
	one := owner.Call(t, "getAuditEvent", page.Str("items.0.id")).OK(t)
	if len(one.Str("hash")) != 64 || one.Int("seq") != page.Int("items.0.seq") {
		t.Errorf("one event: %s", one.Body)
	}
	harness.Eventually(t, "a checkpoint was signed", func() bool {
		return len(owner.Call(t, "listAuditCheckpoints", harness.Query{"limit": "1"}).OK(t).List("items")) == 1
	})
	if r := owner.Call(t, "verifyAudit").OK(t); r.At("ok") != true || r.Int("checked") < 3 {
		t.Errorf("verified: %s", r.Body)
	}
	if reads := list(harness.Query{"action": "audit.read", "actor_id": owner.ID, "outcome": "allow"}); len(reads) != 1 {
		t.Errorf("a session's reads are %d rows", len(reads))
	}
	token, blind := owner.Token(t, "audit.admin"), owner.Token(t, "instance.read")
	token.Call(t, "listAuditEvents").OK(t)
	refuse(t,
		refusal{"no right", member, "getAuditEvent", with(page.Str("items.0.id")), "forbidden", ""},
		refusal{"no right", member, "listAuditCheckpoints", nil, "forbidden", ""},
		refusal{"no right", member, "verifyAudit", nil, "forbidden", ""},
		refusal{"no right", member, "exportAudit", nil, "forbidden", ""},
		refusal{"scope", blind, "listAuditEvents", nil, "scope_missing", ""},
		refusal{"scope", blind, "exportAudit", nil, "scope_missing", ""},
		refusal{"nobody", owner, "getAuditEvent", with(harness.NewID()), "not_found", ""},
		refusal{"cursor", owner, "listAuditEvents", with(harness.Query{"cursor": "x"}), "cursor_invalid", ""},
		refusal{"cursor of another list", owner, "listAuditCheckpoints", with(harness.Query{"cursor": page.Str("next_cursor")}), "cursor_invalid", ""},
		refusal{"wrong action", owner, "listAuditEvents", with(harness.Query{"action": "Grant"}), "validation_failed", ""},
		refusal{"a range beyond the end", owner, "exportAudit", with(harness.Query{"from_seq": "100000000"}), "validation_failed", ""},
	)
}

// TestAnExportIsVerifiedWithoutAServer also has what the command sees when the record was
// changed by somebody with the whole database.
func TestAnExportIsVerifiedWithoutAServer(t *testing.T) {
	dir := t.TempDir()
	sink := filepath.Join(dir, "checkpoints")
	harness.Must(t, os.Mkdir(sink, 0o700))
	s := harness.Start(t, harness.WithKeys(map[string]string{"audit.checkpoint_sink": "file:" + sink, "audit.verify_max_rows": "1000"}))
	owner := s.Owner(t)
	s.Space(t, "read", s.Person(t, "ana"))
	harness.Eventually(t, "a checkpoint lies in the sink", func() bool {
		found, _ := filepath.Glob(filepath.Join(sink, "*"+".jws"))
		return len(found) > 0
	})
	jwks := filepath.Join(dir, "jwks.json")
	harness.Must(t, os.WriteFile(jwks, s.Anonymous().Call(t, "getJwks").OK(t).Body, 0o600))

	whole := owner.Call(t, "exportAudit").Is(t, http.StatusOK)
	if whole.Header.Get("Content-Type") != export.MediaType {
		t.Errorf("the type is %q", whole.Header.Get("Content-Type"))
	}
	if code, out := verifyFile(t, whole.Body, wire.AuditVerify{JWKS: []string{jwks}, Checkpoints: sink}); code != 0 || !strings.Contains(out, "intact") {
		t.Errorf("exit code %d: %s", code, out)
	}
	if code, out := verifyFile(t, whole.Body, wire.AuditVerify{}); code != 4 {
		t.Errorf("without keys: exit code %d: %s", code, out)
	}
	other := filepath.Join(dir, "other.json")
	harness.Must(t, os.WriteFile(other, foreignKeys(t), 0o600))
	if code, out := verifyFile(t, whole.Body, wire.AuditVerify{JWKS: []string{other}, Checkpoints: sink}); code != 4 ||
		!strings.Contains(out, "warning unknown_key") || !strings.Contains(out, "unvouched") || strings.Contains(out, "broken") {
		t.Errorf("with keys of another time: exit code %d: %s", code, out)
	}
	if code, out := verifyFile(t, whole.Body, wire.AuditVerify{JWKS: []string{other, jwks}}); code != 0 {
		t.Errorf("with both copies: exit code %d: %s", code, out)
	}
	if code, out := verifyFile(t, []byte("{}"), wire.AuditVerify{JWKS: []string{jwks}}); code != 3 || strings.Contains(out, "broken") {
		t.Errorf("no export: exit code %d: %s", code, out)
	}

	seq := s.DB.Count(t, "SELECT min(seq) + 2 FROM audit_events")
	s.DB.Exec(t, "ALTER TABLE audit_events DISABLE TRIGGER ALL")
	s.DB.Exec(t, "UPDATE audit_events SET actor_kind = 'system', reason = 'x' WHERE seq = $1", seq)
	found := owner.Call(t, "verifyAudit", harness.Body{"from_seq": 1}).OK(t)
	if found.At("ok") != false || found.Int("breaks.0.seq") != seq || found.Str("breaks.0.kind") != "hash" {
		t.Errorf("the changed row: %s", found.Body)
	}
	changed := owner.Call(t, "exportAudit", harness.Query{"from_seq": "1"}).OK(t)
	code, out := verifyFile(t, changed.Body, wire.AuditVerify{JWKS: []string{jwks}, JSON: true})
	var report struct {
		Verdict string
		Breaks  []struct {
			Seq  int64
			Kind string
		}
	}
	harness.Must(t, json.Unmarshal([]byte(out), &report))
	if code != 1 || report.Verdict != "broken" || len(report.Breaks) != 1 || report.Breaks[0].Seq != seq {
		t.Errorf("exit code %d: %s", code, out)
	}
	exports := owner.Call(t, "listAuditEvents", harness.Query{"action": "audit.read"}).OK(t).List("items")
	if n := len(slices.DeleteFunc(exports, func(e any) bool { return harness.At(e, "details.export") != true })); n != 2 {
		t.Errorf("%d exports are in the record", n)
	}
}

// TestRetentionRemovesWhatIsOld goes the whole way, with the role that alone may remove rows.
func TestRetentionRemovesWhatIsOld(t *testing.T) {
	s := harness.Start(t)
	s.Space(t, "read", s.Person(t, "ana"))
	s.RunJob(t, "audit.chain_verify")
	s.RunJob(t, "retention.audit")
	if n := s.DB.Count(t, "SELECT min(seq) FROM audit_events"); n != 1 {
		t.Fatalf("young rows are gone up to %d", n)
	}
	// The job of checkpoints is due as well and may be faster; what it signs now is too young.
	covered := s.DB.Count(t, "SELECT max(seq) FROM audit_checkpoints")
	s.Clock.Advance(9601 * 60 * minute)
	s.RunJob(t, "retention.audit")
	if n := s.DB.Count(t, "SELECT min(seq) FROM audit_events"); n != covered+1 {
		t.Errorf("the first row is %d, the checkpoint covers %d", n, covered)
	}
	// The record goes on from the anchor, and is signed again.
	s.RunJob(t, "audit.chain_verify")
	if n := s.DB.Count(t, "SELECT max(seq) FROM audit_checkpoints"); n <= covered {
		t.Errorf("the last checkpoint covers %d", n)
	}
	s.RunJob(t, "instance.key_rotation")
	if n := s.DB.Count(t, "SELECT count(*) FROM server_signing_keys WHERE state = 'next'"); n == 0 {
		t.Error("no key was prepared after a year")
	}
}

func TestAVerificationHasABound(t *testing.T) {
	s := harness.Start(t, harness.WithKeys(map[string]string{"audit.verify_max_rows": "2"}))
	owner := s.Owner(t)
	owner.Call(t, "verifyAudit").Refused(t, "validation_failed")
	r := owner.Call(t, "verifyAudit", harness.Body{"from_seq": 2, "to_seq": 3}).OK(t)
	if r.Int("checked") != 2 || r.At("ok") != true {
		t.Errorf("%s", r.Body)
	}
}

// foreignKeys is a JWKS with a key that signed nothing.
func foreignKeys(t *testing.T) []byte {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	harness.Must(t, err)
	jwk, err := jose.FromPublic(key.Public())
	harness.Must(t, err)
	raw, err := json.Marshal(map[string]any{"keys": []jose.JWK{jwk}})
	harness.Must(t, err)
	return raw
}

// verifyFile runs the command on an export and gives its exit code and output.
func verifyFile(t *testing.T, file []byte, in wire.AuditVerify) (int, string) {
	t.Helper()
	in.File = filepath.Join(t.TempDir(), "audit.ndjson")
	harness.Must(t, os.WriteFile(in.File, file, 0o600))
	var out bytes.Buffer
	err := wire.VerifyAuditFile(context.Background(), in, nil, wire.Console{Out: &out, Err: &out})
	var coded wire.ExitError
	switch {
	case err == nil:
		return 0, out.String()
	case errors.As(err, &coded):
		return coded.Code, out.String()
	default:
		return 1, out.String()
	}
}
