// SPDX-License-Identifier: Apache-2.0

package domain

import (
	"encoding/json"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/OWNER/bothy/services/server/internal/kernel/ids"
)

// plain stands for the canonical form in tests of the chain: the members of a row have a
// fixed order, so their encoding is canonical enough.
func plain(text []byte) ([]byte, error) { return text, nil }

func drawRow(t *rapid.T, seq int64) Row {
	opt := func(name string) ids.ID {
		var id ids.ID
		if rapid.Bool().Draw(t, name) {
			id[0], id[15] = 1, rapid.Byte().Draw(t, name+" id")
		}
		return id
	}
	r := Row{
		Seq: seq, OccurredAt: time.UnixMicro(rapid.Int64Range(0, 1<<50).Draw(t, "at")).UTC(),
		Action: rapid.SampledFrom([]string{"grant.create", "grant.revoke"}).Draw(t, "action"), Outcome: "allow",
		Actor:        Actor{Kind: "person", ID: opt("actor"), SessionID: opt("session"), TokenID: opt("token")},
		ResourceKind: rapid.SampledFrom([]string{"", "grant"}).Draw(t, "kind"), ResourceID: opt("resource"),
		SpaceID: opt("space"), ChannelID: opt("channel"), CorrelationID: opt("correlation"),
		IPKeyID: opt("key"), IPPseudonym: rapid.SampledFrom([]string{"", "abc"}).Draw(t, "ip"),
		Details: json.RawMessage(rapid.SampledFrom([]string{"{}", `{"level":"read"}`}).Draw(t, "details")),
	}
	r.ID[15] = byte(seq)
	return r
}

func drawChain(t *rapid.T, n int) []Row {
	prev := Genesis(ids.ID{1})
	rows := make([]Row, n)
	for i := range rows {
		rows[i] = drawRow(t, int64(i+1))
		rows[i].PrevHash = prev
		rows[i].HashValue, _ = rows[i].Seal(prev, plain)
		prev = rows[i].HashValue
	}
	return rows
}

func breaks(t *rapid.T, rows []Row) []string {
	genesis := Genesis(ids.ID{1})
	c := NewChain(0, &genesis)
	var out []string
	for _, r := range rows {
		link, err := r.Link(plain)
		if err != nil {
			t.Fatal(err)
		}
		if kind := c.Next(link); kind != "" {
			out = append(out, kind)
		}
	}
	return out
}

func TestAnUntouchedChainVerifies(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		if got := breaks(t, drawChain(t, rapid.IntRange(0, 8).Draw(t, "n"))); len(got) > 0 {
			t.Fatalf("breaks %v", got)
		}
	})
}

func TestEveryTamperingIsFound(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rows := drawChain(t, rapid.IntRange(3, 8).Draw(t, "n"))
		i := rapid.IntRange(0, len(rows)-2).Draw(t, "row")
		switch rapid.SampledFrom([]string{"delete", "insert", "swap", "change", "hash", "link"}).Draw(t, "tampering") {
		case "delete":
			rows = append(rows[:i:i], rows[i+1:]...)
		case "insert":
			extra := rows[i]
			rows = append(rows[:i:i], append([]Row{extra}, rows[i:]...)...)
		case "swap":
			a, b := rows[i], rows[i+1]
			a.Seq, b.Seq = b.Seq, a.Seq
			rows[i], rows[i+1] = b, a
		case "change":
			tamper(t, &rows[i])
		case "hash":
			rows[i].HashValue[rapid.IntRange(0, HashSize-1).Draw(t, "byte")] ^= 1
		case "link":
			rows[i].PrevHash[rapid.IntRange(0, HashSize-1).Draw(t, "byte")] ^= 1
		}
		if len(breaks(t, rows)) == 0 {
			t.Fatal("nothing was found")
		}
	})
}

// tamper changes one column of a row by as little as it can.
func tamper(t *rapid.T, r *Row) {
	switch rapid.IntRange(0, 12).Draw(t, "column") {
	case 0:
		r.ID[3] ^= 1
	case 1:
		r.OccurredAt = r.OccurredAt.Add(time.Microsecond)
	case 2:
		r.Action += "x"
	case 3:
		r.Outcome = "deny"
	case 4:
		r.Reason = "not_owner"
	case 5:
		r.Actor.ID[0] ^= 1
	case 6:
		r.Actor.DeviceID[0] ^= 1
	case 7:
		r.ResourceID[2] ^= 1
	case 8:
		r.SpaceID[2] ^= 1
	case 9:
		r.Details = json.RawMessage(`{"level":"write"}`)
	case 10:
		r.CorrelationID[9] ^= 1
	case 11:
		r.IPPseudonym += "x"
	default:
		r.Actor.Kind = "system"
	}
}

func TestDetailsHoldNoText(t *testing.T) {
	at := time.Date(2026, 11, 30, 10, 0, 0, 5000, time.UTC)
	raw, faults := EncodeDetails([]string{"level", "target_id", "expires_at", "capabilities", "replaced"}, map[string]any{
		"level": "read", "target_id": ids.ID{15: 1}, "expires_at": at, "capabilities": []string{"files.upload"}, "replaced": true,
	})
	if len(faults) > 0 {
		t.Fatalf("faults %v", faults)
	}
	want := `{"capabilities":["files.upload"],"expires_at":"2026-11-30T10:00:00.000005Z","level":"read","replaced":true,` +
		`"target_id":"00000000-0000-0000-0000-000000000001"}`
	if string(raw) != want {
		t.Fatalf("details %s", raw)
	}
	for name, v := range map[string]any{
		"a name": "Ana Berger", "an address": "ana@example.org", "a secret": "Bearer eyJ", "a float": 1.5, "a map": map[string]any{},
		"a long list": make([]bool, 51), "a list of lists": [][]string{{"x"}}, "nothing": nil,
	} {
		raw, faults := EncodeDetails([]string{"level"}, map[string]any{"level": v})
		if len(faults) != 1 || string(raw) != `{"level":"invalid_value"}` {
			t.Errorf("%s: %s, faults %v", name, raw, faults)
		}
	}
	if raw, faults := EncodeDetails(nil, map[string]any{"level": "read"}); len(faults) != 1 || string(raw) != "{}" {
		t.Errorf("a key the action does not allow: %s, faults %v", raw, faults)
	}
}

func FuzzDetailsAreAlwaysCodes(f *testing.F) {
	for _, s := range []string{"read", "Ana", "", "a b", "x\x00", "ümlaut", "0123456789"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		raw, _ := EncodeDetails([]string{"k"}, map[string]any{"k": s})
		var out map[string]string
		if err := json.Unmarshal(raw, &out); err != nil {
			t.Fatalf("%q: %s: %v", s, raw, err)
		}
		if v := out["k"]; v != invalidValue && !codeForm.MatchString(v) {
			t.Fatalf("%q became %q", s, v)
		}
	})
}
