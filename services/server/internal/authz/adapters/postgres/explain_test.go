// SPDX-License-Identifier: Apache-2.0

package postgres_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/OWNER/bothy/services/server/internal/authz"
	"github.com/OWNER/bothy/services/server/internal/authz/app"
	"github.com/OWNER/bothy/services/server/internal/authz/domain"
	"github.com/OWNER/bothy/services/server/internal/kernel/actor"
	"github.com/OWNER/bothy/services/server/internal/kernel/authorize"
	"github.com/OWNER/bothy/services/server/internal/kernel/errs"
	"github.com/OWNER/bothy/services/server/internal/kernel/ids"
)

// names call everybody by the part they play.
type names struct{ b *bundle }

func (n names) PrincipalNames(_ context.Context, list []ids.ID) (map[ids.ID]string, error) {
	known := map[ids.ID]string{n.b.owner: "Olga", n.b.ana: "Ana", n.b.ben: "Ben", n.b.helper: "Helper"}
	out := map[ids.ID]string{}
	for _, id := range list {
		out[id] = known[id]
	}
	return out, nil
}

func (n names) PlaceName(_ context.Context, t authz.Target) (string, error) {
	return map[ids.ID]string{n.b.space: "Engineering", n.b.open: "deploy", n.b.closed: "secret"}[t.ID], nil
}

func explained(t *testing.T, b *bundle, by, about, channel ids.ID, action authorize.Action) app.Explanation {
	t.Helper()
	x, err := b.svc.Explain(b.as(by), app.Question{PrincipalID: about, Target: domain.Target{Kind: domain.TargetChannel, ID: channel}, Action: action})
	if err != nil {
		t.Fatal(err)
	}
	return x
}

func TestAnExplanationIsUnderstood(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.svc.SetSources(app.Sources{PrincipalNames: names{b}, PlaceNames: names{b}})
	g := b.group("backend", "trigger")
	b.db.Exec(t, "UPDATE groups SET name = 'Backend'")
	until := time.Now().Add(48 * time.Hour).Truncate(time.Minute).UTC()
	b.join(g, b.ana, app.NewMember{ExpiresAt: until})
	b.give(b.ana, b.open, "channel", "read")
	b.give(b.ben, b.open, "channel", "read")
	b.give(b.ben, b.closed, "channel", "manage")

	x := explained(t, b, b.owner, b.ana, b.open, authorize.ActionMessageCreate)
	want := "Ana has `trigger` in #deploy. Ana is a member of group Backend until " + until.Format("2006-01-02 15:04") +
		" UTC, which has `trigger` on space Engineering. #deploy inherits it."
	if x.Summary != want || x.Denied != "" || len(x.Steps) != 2 {
		t.Errorf("explained %q (%s)\n%+v", x.Summary, x.Denied, x.Steps)
	}
	if x.Steps[0].Code != domain.CodeInheritedSpace || x.Steps[1].Text != "Ana was given `read` on #deploy." || !x.Steps[0].GrantShown {
		t.Errorf("steps %+v", x.Steps)
	}
	// About herself she is called you, and does not see the grant of the group.
	x = explained(t, b, b.ana, b.ana, b.open, "")
	if !strings.HasPrefix(x.Summary, "You have `trigger` in #deploy. You are a member of group Backend until ") || x.Steps[0].GrantShown || !x.Steps[1].GrantShown {
		t.Errorf("explained %q\n%+v", x.Summary, x.Steps)
	}
	// What is denied names what is missing and whom to ask.
	x = explained(t, b, b.ben, b.ben, b.open, authorize.ActionMessageCreate)
	if x.Denied != "level_insufficient" || x.Summary != "You have `read` in #deploy. You were given `read` on #deploy. message.create needs `write`. Ask Olga." {
		t.Errorf("explained %q (%s)", x.Summary, x.Denied)
	}
	if !slices.Equal(x.Ask, []ids.ID{b.owner}) || len(x.Needed) != 1 || x.Needed[0].Level != domain.Write {
		t.Errorf("needed %+v, ask %v", x.Needed, x.Ask)
	}
	// A manager asks about somebody who is kept out by a barrier.
	x = explained(t, b, b.ben, b.ana, b.closed, "")
	if x.Denied != "not_visible" || x.Steps[0].Code != domain.CodeBarrier || x.Steps[0].Counted ||
		!strings.Contains(x.Summary, "#secret does not inherit, so it adds nothing there.") {
		t.Errorf("explained %q (%s)", x.Summary, x.Denied)
	}
	if !slices.Equal(x.Ask, []ids.ID{b.ben, b.owner}) {
		t.Errorf("ask %v, want the manager of the channel before the owner", x.Ask)
	}
}

func TestQuestionsAreAnsweredToThoseWhoMayAsk(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.give(b.ana, b.space, "space", "read")
	ask := func(by, about ids.ID, kind string, target ids.ID) error {
		_, err := b.svc.Explain(b.as(by), app.Question{PrincipalID: about, Target: domain.Target{Kind: domain.TargetKind(kind), ID: target}})
		return err
	}
	list := func(by ids.ID, kind string, target ids.ID) error {
		_, _, err := b.svc.Holders(b.as(by), app.HolderQuery{Target: domain.Target{Kind: domain.TargetKind(kind), ID: target}, Limit: 10})
		return err
	}
	for what, c := range map[string]struct {
		err    error
		code   errs.Code
		reason string
	}{
		"about herself":                  {ask(b.ana, b.ana, "channel", b.open), "", ""},
		"about herself, hidden":          {ask(b.ana, b.ana, "channel", b.closed), errs.CodeNotFound, ""},
		"about herself, missing":         {ask(b.ana, b.ana, "channel", ids.New()), errs.CodeNotFound, ""},
		"about herself on the instance":  {ask(b.ana, b.ana, "instance", ids.ID{}), "", ""},
		"about another":                  {ask(b.ana, b.ben, "space", b.space), errs.CodeForbidden, "level_insufficient"},
		"about another on the instance":  {ask(b.ana, b.ben, "instance", ids.ID{}), errs.CodeForbidden, "level_insufficient"},
		"about another, hidden":          {ask(b.ben, b.ana, "space", b.space), errs.CodeNotFound, ""},
		"an owner about nobody":          {ask(b.owner, ids.New(), "space", b.space), errs.CodeNotFound, ""},
		"an owner about nothing":         {ask(b.owner, b.ana, "space", ids.New()), errs.CodeNotFound, ""},
		"an agent about itself":          {ask(b.helper, b.helper, "instance", ids.ID{}), errs.CodeForbidden, "subject_kind_not_allowed"},
		"who has access, as a reader":    {list(b.ana, "space", b.space), errs.CodeForbidden, "level_insufficient"},
		"who has access, hidden":         {list(b.ben, "space", b.space), errs.CodeNotFound, ""},
		"who has access to the instance": {list(b.ana, "instance", ids.ID{}), errs.CodeForbidden, "level_insufficient"},
		"an owner":                       {list(b.owner, "instance", ids.ID{}), "", ""},
	} {
		t.Run(what, func(t *testing.T) { wantCode(t, c.err, c.code, c.reason) })
	}
}

func TestHoldersAreListedWithTheirReasons(t *testing.T) {
	t.Parallel()
	b := setup(t)
	all, err := b.everyone()
	if err != nil {
		t.Fatal(err)
	}
	in := newGrant(all, "space", b.space, "read")
	in.SubjectKind = app.SubjectGroup
	if _, _, err := b.svc.CreateGrant(b.as(b.owner), in); err != nil {
		t.Fatal(err)
	}
	b.group("staff", "write", b.ana)
	b.give(b.helper, b.open, "channel", "write")
	guest := b.person(authz.Principal{Kind: actor.KindPerson, Active: true, Guest: true})
	b.give(guest, b.closed, "channel", "read")
	gone := b.person(authz.Principal{Kind: actor.KindPerson})
	b.give(gone, b.open, "channel", "manage")
	found := map[ids.ID]app.Holder{}
	var after ids.ID
	for more := true; more; {
		var page []app.Holder
		page, more, err = b.svc.Holders(b.as(b.owner), app.HolderQuery{Target: domain.Target{Kind: domain.TargetChannel, ID: b.open}, After: after, Limit: 1})
		if err != nil {
			t.Fatal(err)
		}
		for _, h := range page {
			found[h.PrincipalID], after = h, h.PrincipalID
		}
	}
	for id, want := range map[ids.ID]string{b.owner: "manage", b.ana: "write", b.ben: "read", b.helper: "write"} {
		h, ok := found[id]
		if !ok || h.Held.Level.String() != want || len(h.Reasons) == 0 {
			t.Errorf("%v holds %+v, want %s", id, h, want)
		}
	}
	if len(found) != 4 || len(found[b.ana].Reasons) != 2 {
		t.Errorf("holders %+v", found)
	}
	// The level that is explained is that of every decision.
	for id, h := range found {
		access, err := b.svc.PrincipalAccess(context.Background(), id, b.open)
		if err != nil || string(access.Level) != h.Held.Level.String() {
			t.Errorf("decided %v (%v), listed %v", access.Level, err, h.Held.Level)
		}
	}
	list, _, err := b.svc.Holders(b.as(b.owner), app.HolderQuery{
		Target: domain.Target{Kind: domain.TargetChannel, ID: b.open}, MinLevel: domain.Manage, Limit: 10,
	})
	if err != nil || len(list) != 1 || list[0].PrincipalID != b.owner {
		t.Errorf("managers %+v, %v", list, err)
	}
}

// A preview says what the change then does.
func TestAPreviewIsWhatComes(t *testing.T) {
	t.Parallel()
	b := setup(t)
	g := b.group("staff", "", b.ana, b.ben)
	b.give(b.ben, b.space, "space", "trigger")
	in := newGrant(g.ID, "space", b.space, "write")
	in.SubjectKind = app.SubjectGroup
	preview := func(c app.Previewed) app.Preview {
		t.Helper()
		version := b.db.Count(t, "SELECT value FROM sequence_counters WHERE name = 'permission_version'")
		p, err := b.svc.Preview(b.as(b.owner), c)
		if err != nil {
			t.Fatal(err)
		}
		if now := b.db.Count(t, "SELECT value FROM sequence_counters WHERE name = 'permission_version'"); now != version {
			t.Error("a preview has changed rights")
		}
		return p
	}
	p := preview(app.PreviewGrant{NewGrant: in})
	if p.Affected != 1 || len(p.Lines) != 1 || p.Lines[0].PrincipalID != b.ana || p.Lines[0].Target.ID != b.space ||
		!p.Lines[0].Before.Empty() || p.Lines[0].After.Level != domain.Write {
		t.Errorf("preview of a grant %+v", p)
	}
	before := len(*b.changes)
	given, _, err := b.svc.CreateGrant(b.as(b.owner), in)
	if err != nil {
		t.Fatal(err)
	}
	if done := (*b.changes)[before].Principals; len(done) != 1 || done[0].PrincipalID != b.ana {
		t.Errorf("done %+v", done)
	}
	for what, c := range map[string]struct {
		change app.Previewed
		who    ids.ID
		target ids.ID
		after  domain.Level
	}{
		"revoke":       {app.PreviewRevoke{GrantID: given.ID}, b.ana, b.space, domain.None},
		"leave":        {app.PreviewMember{GroupID: g.ID, PrincipalID: b.ana, Removed: true}, b.ana, b.space, domain.None},
		"join":         {app.PreviewMember{GroupID: g.ID, PrincipalID: b.helper}, b.helper, b.space, domain.Write},
		"delete group": {app.PreviewGroupDelete{GroupID: g.ID}, b.ana, b.space, domain.None},
		"disable":      {app.PreviewPerson{PrincipalID: b.ana, Apply: func(p domain.Principal) domain.Principal { p.Active = false; return p }}, b.ana, b.space, domain.None},
		"make owner":   {app.PreviewPerson{PrincipalID: b.ana, Apply: func(p domain.Principal) domain.Principal { p.Owner = true; return p }}, b.ana, b.space, domain.Manage},
		"close":        {app.PreviewPlace{ChannelID: b.open, Apply: func(c domain.Channel) domain.Channel { c.Inherits = false; return c }}, b.ana, b.open, domain.None},
		"operator":     {app.PreviewPlace{ChannelID: b.closed, Apply: func(c domain.Channel) domain.Channel { c.Operator = b.helper; return c }}, b.helper, b.closed, domain.Write},
	} {
		p := preview(c.change)
		i := slices.IndexFunc(p.Lines, func(l app.PreviewLine) bool { return l.PrincipalID == c.who && l.Target.ID == c.target })
		if i < 0 || p.Lines[i].After.Level != c.after {
			t.Errorf("%s: %+v", what, p)
		}
	}
	refused := func(by ids.ID, c app.Previewed, code errs.Code, reason string) {
		t.Helper()
		_, err := b.svc.Preview(b.as(by), c)
		wantCode(t, err, code, reason)
	}
	refused(b.ben, app.PreviewGrant{NewGrant: newGrant(b.ana, "space", b.space, "read")}, errs.CodeForbidden, "level_insufficient")
	refused(b.ana, app.PreviewGroupDelete{GroupID: g.ID}, errs.CodeForbidden, "not_owner")
	refused(b.ana, app.PreviewPerson{PrincipalID: b.ben}, errs.CodeForbidden, "not_owner")
	refused(b.ana, app.PreviewPlace{ChannelID: b.closed}, errs.CodeNotFound, "")
	refused(b.ana, app.PreviewPlace{ChannelID: b.open}, errs.CodeForbidden, "level_insufficient")
	refused(b.helper, app.PreviewGroupDelete{GroupID: g.ID}, errs.CodeForbidden, "subject_kind_not_allowed")
	refused(b.owner, app.PreviewRevoke{GrantID: ids.New()}, errs.CodeNotFound, "")
}
