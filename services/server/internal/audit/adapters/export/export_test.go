// SPDX-License-Identifier: Apache-2.0

package export

import (
	"bytes"
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/OWNER/bothy/services/server/internal/audit"
	"github.com/OWNER/bothy/services/server/internal/audit/app"
	"github.com/OWNER/bothy/services/server/internal/audit/domain"
	"github.com/OWNER/bothy/services/server/internal/kernel/ids"
	"github.com/OWNER/bothy/services/server/internal/kernel/jose"
	"github.com/OWNER/bothy/services/server/internal/platform/jsoncanon"
)

var (
	instanceID = ids.ID{1}
	began      = time.Date(2026, 11, 1, 8, 0, 0, 0, time.UTC)
)

type signer struct {
	key *ecdsa.PrivateKey
	kid string
}

func newSigner(t testing.TB) signer {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	jwk, err := jose.FromPublic(key.Public())
	if err != nil {
		t.Fatal(err)
	}
	kid, err := jwk.Thumbprint()
	if err != nil {
		t.Fatal(err)
	}
	return signer{key, kid}
}

func (s signer) trusted() map[string]crypto.PublicKey {
	return map[string]crypto.PublicKey{s.kid: s.key.Public()}
}

// record is a record in memory, as a database holds it.
type record struct {
	signer      signer
	rows        []domain.Row
	checkpoints []domain.Checkpoint
	// first is the first row that is left.
	first int64
	// exported is when it is exported.
	exported time.Time
}

// newRecord makes rows with a checkpoint behind every fourth.
func newRecord(t testing.TB, n int) *record {
	t.Helper()
	r := &record{signer: newSigner(t), first: 1, exported: began.Add(1000 * time.Hour)}
	r.grow(t, n)
	return r
}

func (r *record) grow(t testing.TB, n int) {
	t.Helper()
	prev := domain.Genesis(instanceID)
	if len(r.rows) > 0 {
		prev = r.rows[len(r.rows)-1].HashValue
	}
	for range n {
		seq := int64(len(r.rows)) + r.first
		row := domain.Row{
			Seq: seq, ID: ids.ID{15: byte(seq)}, OccurredAt: began.Add(time.Duration(seq) * time.Minute), Action: "grant.create",
			Outcome: "allow", Actor: domain.Actor{Kind: "person", ID: ids.ID{2}}, ResourceKind: "grant", ResourceID: ids.ID{3},
			Details: json.RawMessage(`{"level":"write"}`), PrevHash: prev,
		}
		r.add(t, row)
		prev = r.rows[len(r.rows)-1].HashValue
		if seq%4 == 0 {
			r.checkpoint(t)
		}
	}
}

func (r *record) add(t testing.TB, row domain.Row) {
	t.Helper()
	var err error
	if row.HashValue, err = row.Seal(row.PrevHash, jsoncanon.Transform); err != nil {
		t.Fatal(err)
	}
	r.rows = append(r.rows, row)
}

func (r *record) checkpoint(t testing.TB) {
	t.Helper()
	last := r.rows[len(r.rows)-1]
	c := domain.Checkpoint{Seq: last.Seq, FirstSeq: r.first, HashValue: last.HashValue, KID: r.signer.kid, CreatedAt: last.OccurredAt}
	if n := len(r.checkpoints); n > 0 {
		c.Previous = r.checkpoints[n-1].Digest()
	}
	payload, err := json.Marshal(domain.StatementOf(c, instanceID, ids.ID{9}))
	if err != nil {
		t.Fatal(err)
	}
	if c.JWS, err = jose.Sign(r.signer.key, jose.Header{Type: domain.CheckpointType, KeyID: r.signer.kid}, payload); err != nil {
		t.Fatal(err)
	}
	r.checkpoints = append(r.checkpoints, c)
}

// trim removes rows up to a checkpoint and leaves the anchor, as retention does.
func (r *record) trim(t testing.TB, through int64) {
	t.Helper()
	i := slices.IndexFunc(r.rows, func(row domain.Row) bool { return row.Seq == through })
	anchor := domain.Anchor{ThroughSeq: through, ThroughHash: r.rows[i].HashValue}
	details, err := json.Marshal(map[string]any{"through_seq": through, "through_hash": fmt.Sprintf("%x", anchor.ThroughHash), "count": i + 1})
	if err != nil {
		t.Fatal(err)
	}
	last := r.rows[len(r.rows)-1]
	r.add(t, domain.Row{
		Seq: last.Seq + 1, ID: ids.ID{14: 1}, OccurredAt: last.OccurredAt, Action: domain.ActionTrim, Outcome: "allow",
		Actor: domain.Actor{Kind: "system"}, Details: details, PrevHash: last.HashValue,
	})
	r.rows, r.first = r.rows[i+1:], through+1
}

// file writes the record as an export of the rows from a number on.
func (r *record) file(t testing.TB, from int64) []string {
	t.Helper()
	var out bytes.Buffer
	w := NewWriter(&out)
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	last := r.rows[len(r.rows)-1].Seq
	must(w.Header(app.ExportHeader{
		InstanceID: instanceID, FromSeq: from, ToSeq: last, FirstSeq: r.first, LastSeq: last, ExportedAt: r.exported,
	}))
	must(w.Key(app.ExportKey{KID: r.signer.kid, Key: r.signer.key.Public()}))
	checkpoints := r.checkpoints
	for len(checkpoints) > 1 && checkpoints[1].Seq < from {
		checkpoints = checkpoints[1:]
	}
	for _, row := range r.rows {
		for len(checkpoints) > 0 && checkpoints[0].Seq < max(row.Seq, from) {
			must(w.Checkpoint(checkpoints[0]))
			checkpoints = checkpoints[1:]
		}
		if row.Seq < from {
			continue
		}
		body, err := row.Canonical(jsoncanon.Transform)
		must(err)
		must(w.Row(row, body))
	}
	for _, c := range checkpoints {
		must(w.Checkpoint(c))
	}
	must(w.End())
	return strings.SplitAfter(strings.TrimSuffix(out.String(), "\n"), "\n")
}

func check(t testing.TB, lines []string, o CheckOptions) (Report, error) {
	t.Helper()
	o.Canonicalize = jsoncanon.Transform
	return Check(context.Background(), strings.NewReader(strings.Join(lines, "")), o)
}

func kinds(r Report) []string {
	var out []string
	for _, b := range r.Breaks {
		out = append(out, b.Kind+"@"+strconv.FormatInt(b.Seq, 10))
	}
	return out
}

func TestAnUntouchedExportIsIntact(t *testing.T) {
	r := newRecord(t, 14)
	for name, from := range map[string]int64{"all of it": 1, "behind a checkpoint": 9} {
		t.Run(name, func(t *testing.T) {
			got, err := check(t, r.file(t, from), CheckOptions{Trusted: r.signer.trusted()})
			if err != nil || !got.OK || !got.Signed || got.Checked != 15-from || !slices.Equal(got.Warnings, []string{"uncheckpointed_tail"}) {
				t.Fatalf("%+v, %v", got, err)
			}
		})
	}
	got, err := check(t, r.file(t, 7), CheckOptions{Trusted: r.signer.trusted()})
	if err != nil || !got.OK || !slices.Contains(got.Warnings, "unproven_beginning") {
		t.Errorf("a file that begins between two checkpoints: %+v, %v", got, err)
	}
	got, err = check(t, r.file(t, 1), CheckOptions{})
	if err != nil || !got.OK || got.Signed {
		t.Errorf("keys that came with the file vouch for nothing: %+v, %v", got, err)
	}
}

func TestARecordThatWasTrimmedIsIntact(t *testing.T) {
	r := newRecord(t, 14)
	r.trim(t, 8)
	got, err := check(t, r.file(t, 9), CheckOptions{Trusted: r.signer.trusted()})
	if err != nil || !got.OK || !slices.Contains(got.Warnings, "trimmed") {
		t.Fatalf("%+v, %v", got, err)
	}
}

// TestTamperingIsFoundAndNamed has the ways in which somebody with the file, or with the
// database before it was exported, would try.
func TestTamperingIsFoundAndNamed(t *testing.T) {
	other := newSigner(t)
	for name, c := range map[string]struct {
		// tamper changes the record before it is exported, edit the lines of the file.
		tamper func(t *testing.T, r *record)
		edit   func(lines []string) []string
		from   int64
		want   []string
	}{
		"changed row": {
			tamper: func(_ *testing.T, r *record) { r.rows[4].Outcome = "deny" }, want: []string{"hash@5"},
		},
		"changed row in the file": {
			edit: func(l []string) []string { return replace(l, 5, `"action":"grant.create"`, `"action":"grant.revoke"`) },
			want: []string{"hash@5"},
		},
		"member hidden beside a row": {
			edit: func(l []string) []string { return replace(l, 5, `"row":{`, `"row":{"note":"x",`) }, want: []string{"hash@5"},
		},
		"changed row with its hash made anew": {
			tamper: func(t *testing.T, r *record) {
				row := r.rows[4]
				row.Outcome = "deny"
				row.HashValue, _ = row.Seal(row.PrevHash, jsoncanon.Transform)
				r.rows[4] = row
			},
			want: []string{"link@6"},
		},
		"removed row": {
			tamper: func(_ *testing.T, r *record) { r.rows = slices.Delete(r.rows, 4, 5) }, want: []string{"gap@6"},
		},
		"removed row that a checkpoint covers": {
			tamper: func(_ *testing.T, r *record) { r.rows = slices.Delete(r.rows, 7, 8) },
			want:   []string{"checkpoint_hash@8", "gap@9"},
		},
		"removed beginning": {
			tamper: func(_ *testing.T, r *record) { r.rows, r.first = r.rows[8:], 9 }, from: 9, want: []string{"anchor@9"},
		},
		"inserted row": {
			tamper: func(_ *testing.T, r *record) { r.rows = slices.Insert(r.rows, 5, r.rows[4]) }, want: []string{"gap@5"},
		},
		"swapped rows": {
			tamper: func(_ *testing.T, r *record) { r.rows[4], r.rows[5] = r.rows[5], r.rows[4] },
			want:   []string{"gap@6", "gap@5", "gap@7"},
		},
		"swapped rows with their numbers": {
			tamper: func(_ *testing.T, r *record) {
				a, b := r.rows[4], r.rows[5]
				a.Seq, b.Seq = b.Seq, a.Seq
				r.rows[4], r.rows[5] = b, a
			},
			want: []string{"hash@5", "hash@6", "link@7"},
		},
		"cut file": {edit: func(l []string) []string { return l[:len(l)-4] }, want: []string{"cut@12"}},
		"cut tail with an end made anew": {
			edit: func(l []string) []string {
				return append(l[:len(l)-4], `{"type":"end","rows":12,"checkpoints":3}`)
			},
			want: []string{"cut@12"},
		},
		"cut tail behind which a checkpoint remains": {
			tamper: func(_ *testing.T, r *record) { r.rows = r.rows[:10] }, want: []string{"checkpoint_hash@12"},
		},
		"forged checkpoint": {
			tamper: func(t *testing.T, r *record) {
				own := r.signer
				r.signer = signer{other.key, own.kid}
				r.checkpoints = r.checkpoints[:2]
				r.checkpoint(t)
				r.signer = own
			},
			want: []string{"checkpoint_signature@14"},
		},
		"removed checkpoint": {
			tamper: func(_ *testing.T, r *record) { r.checkpoints = slices.Delete(r.checkpoints, 1, 2) }, want: []string{"checkpoint_hash@12"},
		},
		"checkpoint that is no checkpoint": {
			edit: func(l []string) []string {
				for i := range l {
					if strings.Contains(l[i], `"checkpoint"`) && strings.Contains(l[i], `"8"`) {
						l[i] = `{"type":"checkpoint","seq":"8","jws":"a.b.c"}` + "\n"
					}
				}
				return l
			},
			want: []string{"checkpoint_signature@8", "checkpoint_hash@12"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRecord(t, 14)
			trusted := r.signer.trusted()
			if c.tamper != nil {
				c.tamper(t, r)
			}
			lines := r.file(t, max(c.from, 1))
			if c.edit != nil {
				lines = c.edit(lines)
			}
			got, err := check(t, lines, CheckOptions{Trusted: trusted})
			if err != nil || got.OK || !slices.Equal(kinds(got), c.want) {
				t.Fatalf("found %v, %v; want %v", kinds(got), err, c.want)
			}
		})
	}
}

func replace(lines []string, row int, old, with string) []string {
	for i, l := range lines {
		if strings.Contains(l, fmt.Sprintf(`"seq":"%d","v"`, row)) || strings.Contains(l, fmt.Sprintf(`"seq":"%d"`, row)) && strings.Contains(l, `"type":"row"`) {
			lines[i] = strings.Replace(l, old, with, 1)
		}
	}
	return lines
}

// TestACheckpointOfAnUnknownKeyIsNoBreak is about an instance whose key rotated: the file fits
// together, and the verdict depends on which of its keys were brought.
func TestACheckpointOfAnUnknownKeyIsNoBreak(t *testing.T) {
	r := newRecord(t, 8)
	early, late := r.signer, newSigner(t)
	r.signer = late
	r.grow(t, 4)
	deposits := map[int64]string{12: r.checkpoints[2].JWS}
	both := early.trusted()
	maps.Copy(both, late.trusted())
	for name, c := range map[string]struct {
		trusted  map[string]crypto.PublicKey
		deposits map[int64]string
		from     int64
		signed   bool
		unknown  []audit.UnknownKey
		warnings []string
	}{
		"both":  {trusted: both, deposits: deposits, from: 1, signed: true},
		"early": {trusted: early.trusted(), from: 1, unknown: []audit.UnknownKey{{KID: late.kid, FirstSeq: 12, LastSeq: 12}}, warnings: []string{audit.WarnUnknownKey}},
		"early, with a deposit": {
			trusted: early.trusted(), deposits: deposits, from: 1,
			unknown: []audit.UnknownKey{{KID: late.kid, FirstSeq: 12, LastSeq: 12}}, warnings: []string{audit.WarnUnknownKey},
		},
		"late vouches for what stands before": {
			trusted: late.trusted(), from: 1, signed: true,
			unknown: []audit.UnknownKey{{KID: early.kid, FirstSeq: 4, LastSeq: 8}}, warnings: []string{audit.WarnUnknownKey},
		},
		"late, and nothing vouches for the beginning": {
			trusted: late.trusted(), from: 9, signed: true,
			unknown: []audit.UnknownKey{{KID: early.kid, FirstSeq: 8, LastSeq: 8}}, warnings: []string{audit.WarnUnknownKey, audit.WarnBeginning},
		},
		"neither": {
			trusted: newSigner(t).trusted(), from: 1, warnings: []string{audit.WarnUnknownKey},
			unknown: []audit.UnknownKey{{KID: early.kid, FirstSeq: 4, LastSeq: 8}, {KID: late.kid, FirstSeq: 12, LastSeq: 12}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := check(t, r.file(t, c.from), CheckOptions{Trusted: c.trusted, Deposits: c.deposits})
			if err != nil || !got.OK || got.Signed != c.signed || !slices.Equal(got.UnknownKeys, c.unknown) || !slices.Equal(got.Warnings, c.warnings) ||
				got.Deposits != len(c.deposits) {
				t.Fatalf("%+v, %v", got, err)
			}
		})
	}
}

// TestAnUnknownKeyHidesNoBreak has a tail that was rewritten and signed with another key.
func TestAnUnknownKeyHidesNoBreak(t *testing.T) {
	r := newRecord(t, 12)
	trusted, deposit := r.signer.trusted(), map[int64]string{12: r.checkpoints[2].JWS}
	r.rows, r.checkpoints, r.signer = r.rows[:9], r.checkpoints[:2], newSigner(t)
	r.rows[8].Outcome = "deny"
	r.rows[8].HashValue, _ = r.rows[8].Seal(r.rows[8].PrevHash, jsoncanon.Transform)
	r.grow(t, 3)
	got, err := check(t, r.file(t, 1), CheckOptions{Trusted: trusted})
	if err != nil || got.Signed || got.SignedSeq != 8 || got.UnknownSeq != 12 {
		t.Errorf("without deposits nothing vouches for the tail: %+v, %v", got, err)
	}
	got, err = check(t, r.file(t, 1), CheckOptions{Trusted: trusted, Deposits: deposit})
	if err != nil || got.OK || len(got.Breaks) == 0 || got.Breaks[0].Kind != BreakDeposit {
		t.Errorf("the deposit tells: %+v, %v", got, err)
	}
	r.rows[10].Outcome = "deny"
	r.rows[10].HashValue, _ = r.rows[10].Seal(r.rows[10].PrevHash, jsoncanon.Transform)
	r.rows = r.rows[:11]
	got, err = check(t, r.file(t, 1), CheckOptions{Trusted: trusted})
	if want := []string{"checkpoint_hash@12"}; err != nil || !slices.Equal(kinds(got), want) {
		t.Errorf("its rows must fit: %v, %v", kinds(got), err)
	}
}

// TestARecordThatWasRewrittenIsFoundByDeposits is about somebody who holds the database and the
// signing key: all that is in the file fits together.
func TestARecordThatWasRewrittenIsFoundByDeposits(t *testing.T) {
	r := newRecord(t, 14)
	deposits := map[int64]string{}
	for _, c := range r.checkpoints {
		deposits[c.Seq] = c.JWS
	}
	same, err := check(t, r.file(t, 1), CheckOptions{Trusted: r.signer.trusted(), Deposits: deposits})
	if err != nil || !same.OK || same.Deposits != 3 || same.Beyond != 0 {
		t.Fatalf("%+v, %v", same, err)
	}
	cut := &record{signer: r.signer, rows: r.rows[:6], checkpoints: r.checkpoints[:1], first: 1, exported: r.exported}
	got, err := check(t, cut.file(t, 1), CheckOptions{Trusted: r.signer.trusted(), Deposits: deposits})
	if want := []string{"deposit@8", "deposit@12"}; err != nil || !slices.Equal(kinds(got), want) {
		t.Errorf("a tail that was cut: %v, %v", kinds(got), err)
	}
	forged := newRecord(t, 4)
	forged.signer, forged.rows, forged.checkpoints = r.signer, forged.rows[:2], nil
	forged.grow(t, 12)
	got, err = check(t, forged.file(t, 1), CheckOptions{Trusted: r.signer.trusted(), Deposits: deposits})
	if err != nil || len(got.Breaks) == 0 || !strings.HasPrefix(kinds(got)[0], BreakDeposit) {
		t.Errorf("another history: %v, %v", kinds(got), err)
	}
}

func TestDepositsThatAreNewerThanTheFileAreNoFault(t *testing.T) {
	r := newRecord(t, 8)
	r.exported = r.rows[7].OccurredAt
	lines := r.file(t, 1)
	r.grow(t, 8)
	deposits := map[int64]string{}
	for _, c := range r.checkpoints {
		deposits[c.Seq] = c.JWS
	}
	got, err := check(t, lines, CheckOptions{Trusted: r.signer.trusted(), Deposits: deposits})
	if err != nil || !got.OK || got.Deposits != 2 || got.Beyond != 2 {
		t.Fatalf("%+v, %v", got, err)
	}
	got, err = check(t, lines, CheckOptions{Trusted: r.signer.trusted(), Deposits: map[int64]string{4: deposits[8], 8: "x"}})
	if want := []string{"deposit@4", "deposit@8"}; err != nil || !slices.Equal(kinds(got), want) {
		t.Errorf("deposits that say nothing of their row: %v, %v", kinds(got), err)
	}
}

func TestWhatIsNoExportIsAnErrorOfItsForm(t *testing.T) {
	lines := newRecord(t, 3).file(t, 1)
	for name, edited := range map[string][]string{
		"nothing":               nil,
		"text":                  {"hello\n"},
		"no header":             lines[1:],
		"another version":       append([]string{strings.Replace(lines[0], `"v":1`, `"v":2`, 1)}, lines[1:]...),
		"a member of the line":  append(slices.Clone(lines[:3]), strings.Replace(lines[3], `"type":"row"`, `"type":"row","x":1`, 1)),
		"an unknown line":       append(slices.Clone(lines[:3]), `{"type":"dance"}`),
		"something behind":      append(slices.Clone(lines), "\n"+lines[3]),
		"a line without an end": append(slices.Clone(lines[:3]), strings.Repeat("x", maxLine+1)),
	} {
		t.Run(name, func(t *testing.T) {
			_, err := check(t, edited, CheckOptions{})
			if name == "nothing" {
				if err == nil {
					t.Error("nothing was accepted")
				}
				return
			}
			if !errors.Is(err, ErrForm) {
				t.Errorf("%v", err)
			}
		})
	}
}

func FuzzAnythingIsReadWithoutPanic(f *testing.F) {
	r := newRecord(f, 5)
	f.Add([]byte(strings.Join(r.file(f, 1), "")))
	f.Add([]byte(`{"type":"header","v":1,"instance_id":"00000000-0000-0000-0000-000000000001","from_seq":"1","to_seq":"1","first_seq":"1","last_seq":"1","exported_at":"2026-11-01T08:00:00.000Z"}`))
	f.Fuzz(func(t *testing.T, file []byte) {
		got, err := Check(context.Background(), bytes.NewReader(file), CheckOptions{Canonicalize: jsoncanon.Transform, Trusted: r.signer.trusted()})
		if err != nil && got.OK {
			t.Fatal("an unreadable file is intact")
		}
		if got.Signed && !got.OK {
			t.Fatal("a broken file is signed")
		}
	})
}
