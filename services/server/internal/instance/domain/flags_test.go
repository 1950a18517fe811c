// SPDX-License-Identifier: Apache-2.0

package domain

import (
	"errors"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/OWNER/bothy/services/server/internal/kernel/ids"
)

func TestAFlagIsOnForThoseItNames(t *testing.T) {
	me, group := ids.ID{1}, ids.ID{2}
	away := errors.New("away")
	in := func(answer bool, err error) Subject {
		return Subject{ID: me, Person: true, InGroup: func([]ids.ID) (bool, error) { return answer, err }}
	}
	agent := in(true, nil)
	agent.Person = false
	for name, c := range map[string]struct {
		flag Flag
		who  Subject
		want bool
		err  error
	}{
		"off":                   {Flag{State: FlagOff, People: []ids.ID{me}, Percent: 100}, in(true, nil), false, nil},
		"on":                    {Flag{State: FlagOn}, in(false, nil), true, nil},
		"named":                 {Flag{State: FlagRollout, People: []ids.ID{me}}, in(false, nil), true, nil},
		"in a group":            {Flag{State: FlagRollout, Groups: []ids.ID{group}}, in(true, nil), true, nil},
		"in none":               {Flag{State: FlagRollout, Groups: []ids.ID{group}}, in(false, nil), false, nil},
		"everybody":             {Flag{State: FlagRollout, Percent: 100}, in(false, nil), true, nil},
		"nobody":                {Flag{State: FlagRollout}, in(true, nil), false, nil},
		"an agent":              {Flag{State: FlagRollout, Percent: 100, Groups: []ids.ID{group}}, agent, false, nil},
		"an agent when it's on": {Flag{State: FlagOn}, agent, true, nil},
		"groups that are away":  {Flag{State: FlagRollout, Groups: []ids.ID{group}}, in(false, away), false, away},
	} {
		if got, err := c.flag.For(c.who); got != c.want || !errors.Is(err, c.err) {
			t.Errorf("%s: %v, %v", name, got, err)
		}
	}
}

// Raising the percentage only adds people, and flags do not pick the same ones.
func TestRolloutIsStableAndMonotone(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		id := ids.ID(rapid.SliceOfN(rapid.Byte(), 16, 16).Draw(t, "id"))
		key := rapid.StringMatching(`[a-z_]{1,20}`).Draw(t, "key")
		was := false
		for percent := range 101 {
			on, _ := Flag{Key: key, State: FlagRollout, Percent: percent}.For(Subject{ID: id, Person: true})
			if was && !on {
				t.Fatalf("lost at %d", percent)
			}
			was = on
		}
		if !was {
			t.Fatal("off at 100")
		}
	})
	const people = 10_000
	for _, percent := range []int{10, 50, 90} {
		n, both := 0, 0
		for i := range people {
			id := ids.ID{0: 1, 14: byte(i >> 8), 15: byte(i)}
			if FlagBucket("one", id) < percent {
				n++
				if FlagBucket("other", id) < percent {
					both++
				}
			}
		}
		if share := n * 100 / people; share < percent-2 || share > percent+2 {
			t.Errorf("%d%% became %d%%", percent, share)
		}
		if both == n {
			t.Error("two flags pick the same people")
		}
	}
}

func TestBrandingTakesHarmlessTextAlone(t *testing.T) {
	for _, c := range []struct {
		member, value string
		ok            bool
	}{
		{BrandingProductName, "Harbour", true},
		{BrandingProductName, "", false},
		{BrandingProductName, " Harbour", false},
		{BrandingProductName, strings.Repeat("x", 41), false},
		{BrandingProductName, "Har\u202ebour", false},
		{BrandingAccent, "loch", true},
		{BrandingAccent, "ember", false},
		{BrandingLoginMessage, "Welcome.\nAsk Ana.", true},
		{BrandingLoginMessage, strings.Repeat("x", 501), false},
		{BrandingSupportURL, "https://example.org/help?x=1", true},
		{BrandingSupportURL, "http://example.org", false},
		{BrandingImprintURL, "javascript:alert(1)", false},
		{BrandingImprintURL, "https://", false},
		{BrandingPrivacyURL, "https://user@example.org", false},
		{BrandingPrivacyURL, "https://exa mple.org", false},
	} {
		if fault := CheckBranding(c.member, c.value); (fault == nil) != c.ok {
			t.Errorf("%s %q: %v", c.member, c.value, fault)
		}
	}
}

func TestReportsOfBothFormsAreRead(t *testing.T) {
	for name, c := range map[string]struct {
		body string
		want []Violation
	}{
		"old form": {
			`{"csp-report":{"effective-directive":"script-src-elem","blocked-uri":"https://evil.example/x.js?token=1","document-uri":"https://chat.example.org/secret"}}`,
			[]Violation{{"script-src-elem", "https://evil.example"}},
		},
		"older form": {`{"csp-report":{"violated-directive":"img-src 'self'","blocked-uri":"data"}}`, []Violation{{"img-src", "data"}}},
		"new form": {
			`[{"type":"csp-violation","body":{"effectiveDirective":"style-src-attr","blockedURL":"inline"}},{"type":"deprecation","body":{}}]`,
			[]Violation{{"style-src-attr", "inline"}},
		},
		"invented": {`{"csp-report":{"effective-directive":"<b>","blocked-uri":"x"}}`, []Violation{{"other", "unknown"}}},
		"nothing":  {`{}`, nil},
		"no JSON":  {`hello`, nil},
	} {
		got := ReadViolations([]byte(c.body))
		if len(got) != len(c.want) || len(got) > 0 && got[0] != c.want[0] {
			t.Errorf("%s: %v", name, got)
		}
	}
}

func FuzzReportsBecomeKnownWords(f *testing.F) {
	f.Add([]byte(`{"csp-report":{"effective-directive":"script-src","blocked-uri":"https://a.example/x"}}`))
	f.Add([]byte(`[{"type":"csp-violation","body":{"effectiveDirective":"img-src","blockedURL":"blob"}}]`))
	f.Fuzz(func(t *testing.T, body []byte) {
		list := ReadViolations(body)
		if len(list) > maxViolations {
			t.Fatalf("%d violations", len(list))
		}
		for _, v := range list {
			if len(v.Origin) > maxOrigin+3 || strings.ContainsAny(v.Directive, " <>\n") {
				t.Fatalf("%+v", v)
			}
		}
	})
}
