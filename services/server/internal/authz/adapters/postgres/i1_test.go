// SPDX-License-Identifier: Apache-2.0

package postgres_test

import (
	"context"
	"encoding/json"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/OWNER/bothy/services/server/internal/authz"
	"github.com/OWNER/bothy/services/server/internal/authz/app"
	"github.com/OWNER/bothy/services/server/internal/authz/domain"
	"github.com/OWNER/bothy/services/server/internal/kernel/actor"
	"github.com/OWNER/bothy/services/server/internal/kernel/authorize"
	"github.com/OWNER/bothy/services/server/internal/kernel/errs"
	"github.com/OWNER/bothy/services/server/internal/kernel/ids"
	"github.com/OWNER/bothy/services/server/internal/kernel/txn"
)

func (a agentPolicies) PersonalAgents(context.Context) ([]authz.AgentPolicy, error) {
	var out []authz.AgentPolicy
	for _, p := range a {
		if p.Active && p.BillingMode == "personal" {
			out = append(out, p)
		}
	}
	slices.SortFunc(out, func(x, y authz.AgentPolicy) int { return x.AgentID.Compare(y.AgentID) })
	return out, nil
}

func (a agentPolicies) SwitchToOrganization(ctx context.Context, list []ids.ID) error {
	for _, id := range list {
		if txn.PhaseOf(ctx) != txn.PhaseRights {
			return errs.Conflict("elsewhere", "The remedy belongs into the unit of the change.")
		}
		a[id] = authz.AgentPolicy{AgentID: id, BillingMode: "organization", Active: true}
	}
	return nil
}

// answered is the member i1 of an answer, as a client reads it.
type answered struct {
	Digest     string `json:"digest"`
	Violations []struct {
		AgentID     ids.ID  `json:"agent_id"`
		HolderID    ids.ID  `json:"holder_id"`
		PrincipalID *ids.ID `json:"principal_id"`
		Requested   bool    `json:"requested"`
		Target      struct{ Kind string }
		Path        []struct {
			Code      string
			Requested bool
		}
	} `json:"violations"`
	Options []struct {
		Strategy string
		Allowed  bool
		Reason   string
		Plan     []struct {
			Kind   string
			Severe bool
		}
	} `json:"options"`
}

func refusedByI1(t testing.TB, err error) answered {
	t.Helper()
	if !errs.Is(err, errs.CodeI1Violation) {
		t.Fatalf("got %v, want i1_violation", err)
	}
	raw, err := json.Marshal(errs.As(err).Extensions["i1"])
	if err != nil {
		t.Fatal(err)
	}
	var out answered
	if err := json.Unmarshal(raw, &out); err != nil {
		t.Fatal(err)
	}
	return out
}

// personal makes the helper spend the plan of ana, who may set it to work in the space.
func personal(t testing.TB) *bundle {
	t.Helper()
	b := setup(t)
	b.svc.SetRemedies(app.Remedies{Switch: b.agents})
	b.agents[b.helper] = authz.AgentPolicy{AgentID: b.helper, BillingMode: "personal", HolderID: b.ana, Active: true}
	b.give(b.helper, b.space, "space", "write")
	b.give(b.ana, b.space, "space", "trigger")
	return b
}

func (b *bundle) resolving(ctx context.Context, strategy, digest string) context.Context {
	return authz.WithResolution(ctx, authz.Resolution{Strategy: strategy, Digest: digest})
}

func TestAPersonalAgentStaysWithItsHolder(t *testing.T) {
	t.Parallel()
	b := personal(t)
	asked := newGrant(b.ben, "channel", b.open, "trigger", "pins.manage")
	_, _, err := b.svc.CreateGrant(b.as(b.owner), asked)
	got := refusedByI1(t, err)
	if len(got.Violations) != 1 || got.Violations[0].AgentID != b.helper || got.Violations[0].HolderID != b.ana || *got.Violations[0].PrincipalID != b.ben ||
		got.Violations[0].Target.Kind != "channel" || got.Violations[0].Path[0].Code != "grant_direct" || !got.Violations[0].Path[0].Requested {
		t.Errorf("%+v", got.Violations)
	}
	if len(got.Options) != 2 || !got.Options[0].Allowed || !got.Options[1].Allowed || got.Options[1].Plan[0].Kind != "reduce_request" {
		t.Errorf("%+v", got.Options)
	}
	if b.db.Count(t, "SELECT count(*) FROM grants WHERE principal_id = '"+b.ben.String()+"'") != 0 {
		t.Error("a refused grant was kept")
	}
	last := b.audit.denied[len(b.audit.denied)-1]
	if last.Action != "grant.create" || last.Reason != "i1_violation" || len(last.Details["i1_digest"].(string)) != 64 {
		t.Errorf("%+v", last)
	}
	_, _, err = b.svc.CreateGrant(b.as(b.owner), asked)
	if again := refusedByI1(t, err); again.Digest != got.Digest {
		t.Error("the same request has another digest")
	}
	_, _, err = b.svc.CreateGrant(b.resolving(b.as(b.owner), "reduce_rights", "of something else"), asked)
	refusedByI1(t, err)
	tired := actor.With(b.as(b.owner), actor.Actor{ID: b.owner, Kind: actor.KindPerson, SessionID: ids.New()})
	_, _, err = b.svc.CreateGrant(b.resolving(tired, "reduce_rights", got.Digest), asked)
	wantCode(t, err, errs.CodeStepUpRequired, "")

	g, _, err := b.svc.CreateGrant(b.resolving(b.as(b.owner), "reduce_rights", got.Digest), asked)
	if err != nil || g.Level.String() != "write" || len(g.Caps.Names()) != 1 {
		t.Fatalf("%+v, %v", g, err)
	}
	if stored, err := b.svc.Grant(b.as(b.owner), g.ID); err != nil || stored.Level != g.Level {
		t.Errorf("%+v, %v", stored, err)
	}
}

func TestWaysOutAreMadeWithTheChange(t *testing.T) {
	t.Parallel()
	b := personal(t)
	asked := newGrant(b.ben, "space", b.space, "trigger")
	_, _, err := b.svc.CreateGrant(b.as(b.owner), asked)
	got := refusedByI1(t, err)
	// A manager of the space learns of the ways out, but they are for owners.
	dora := b.person(authz.Principal{Kind: actor.KindPerson, Active: true})
	b.agents[b.helper] = authz.AgentPolicy{AgentID: b.helper, BillingMode: "organization", Active: true}
	b.give(dora, b.space, "space", "manage")
	b.agents[b.helper] = authz.AgentPolicy{AgentID: b.helper, BillingMode: "personal", HolderID: dora, Active: true}
	_, _, err = b.svc.CreateGrant(b.as(dora), newGrant(b.ben, "space", b.space, "trigger"))
	if theirs := refusedByI1(t, err); theirs.Options[0].Allowed || theirs.Options[1].Reason != "not_owner" {
		t.Errorf("%+v", theirs.Options)
	} else {
		_, _, err = b.svc.CreateGrant(b.resolving(b.as(dora), "switch_to_organization", theirs.Digest), asked)
		wantCode(t, err, errs.CodeForbidden, "not_owner")
	}
	_, _, err = b.svc.CreateGrant(b.as(b.owner), asked)
	if got = refusedByI1(t, err); len(got.Violations) != 1 {
		t.Errorf("what was there before counts: %+v", got.Violations)
	}
	if _, _, err := b.svc.CreateGrant(b.resolving(b.as(b.owner), "switch_to_organization", got.Digest), asked); err != nil {
		t.Fatal(err)
	}
	if b.agents[b.helper].BillingMode != "organization" {
		t.Error("the agent still spends somebody's plan")
	}
	wantCode(t, b.svc.Authorize(b.as(b.ben), authorize.ActionAgentInvoke,
		authorize.Resource{Kind: authorize.ResourceAgent, ID: b.helper, ChannelID: b.open}), "", "")
}

func TestEveryWayToAPersonalAgentIsSeen(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(b *bundle) error{
		"a grant on the instance": func(b *bundle) error { return b.tryGive(b.ben, ids.ID{}, "instance", "trigger") },
		"a grant on the space":    func(b *bundle) error { return b.tryGive(b.ben, b.space, "space", "manage") },
		"an explicit grant to an owner": func(b *bundle) error {
			return b.tryGive(b.owner, b.open, "channel", "trigger")
		},
		"another agent": func(b *bundle) error {
			other := b.person(authz.Principal{Kind: actor.KindAgent, Active: true})
			return b.tryGive(other, b.space, "space", "trigger")
		},
		"everyone": func(b *bundle) error {
			return b.do("grant.create", func(ctx context.Context) error {
				if _, err := b.svc.CreateEveryone(ctx); err != nil {
					return err
				}
				return b.svc.GrantEveryone(ctx, authz.Target{Kind: "space", ID: b.space}, "trigger", nil)
			})
		},
		"what the agent may read": func(b *bundle) error {
			b.give(b.ben, b.closed, "channel", "trigger")
			return b.tryGive(b.helper, b.closed, "channel", "read")
		},
		"another holder": func(b *bundle) error {
			return b.do("agent.credential_holder.set", func(context.Context) error {
				b.agents[b.helper] = authz.AgentPolicy{AgentID: b.helper, BillingMode: "personal", HolderID: b.ben, Active: true}
				return nil
			})
		},
		"somebody comes back": func(b *bundle) error {
			dora := authz.Principal{ID: ids.New(), Kind: actor.KindPerson}
			b.people.set(dora)
			if err := b.tryGive(dora.ID, b.space, "space", "trigger"); err != nil {
				b.t.Fatal(err)
			}
			return b.do("user.enable", func(context.Context) error {
				dora.Active = true
				b.people.set(dora)
				return nil
			}, dora.ID)
		},
		"a group": func(b *bundle) error {
			group := ids.New()
			b.db.Exec(b.t, "INSERT INTO groups (id, name, handle, kind, created_at, updated_at) VALUES ($1, 'Team', 'team', 'manual', now(), now())", group)
			b.db.Exec(b.t, "INSERT INTO group_memberships (id, group_id, principal_id, source, created_at) VALUES ($1, $2, $3, 'manual', now())", ids.New(), group, b.ben)
			g := newGrant(group, "space", b.space, "trigger")
			g.SubjectKind = app.SubjectGroup
			_, _, err := b.svc.CreateGrant(b.as(b.owner), g)
			return err
		},
		"a channel that inherits again": func(b *bundle) error {
			b.agents[b.helper] = authz.AgentPolicy{AgentID: b.helper, BillingMode: "organization", Active: true}
			b.give(b.ben, b.space, "space", "trigger")
			b.revoke(b.helper)
			b.give(b.helper, b.closed, "channel", "write")
			b.agents[b.helper] = authz.AgentPolicy{AgentID: b.helper, BillingMode: "personal", HolderID: b.ana, Active: true}
			return b.units.Do(b.as(b.owner), func(context.Context) error {
				b.places.channels[1].Inherits = true
				return nil
			}, txn.WithRightsChange(txn.RightsChange{Action: "channel.update", Targets: []txn.Target{{Kind: "channel", ID: b.closed}}}))
		},
		"the agent that answers": func(b *bundle) error {
			b.give(b.ben, b.closed, "channel", "trigger")
			return b.units.Do(b.as(b.owner), func(context.Context) error {
				b.places.channels[1].OperatorID = b.helper
				return nil
			}, txn.WithRightsChange(txn.RightsChange{Action: "channel.operator.set", Principals: []ids.ID{b.helper}, Targets: []txn.Target{{Kind: "channel", ID: b.closed}}}))
		},
		"a conversation of three": func(b *bundle) error {
			return b.units.Do(b.as(b.owner), func(context.Context) error {
				b.places.channels = append(b.places.channels, authz.ChannelState{
					ID: ids.New(), Direct: true, Inherits: true, OperatorID: b.helper, Participants: []ids.ID{b.ana, b.ben},
				})
				return nil
			}, txn.WithRightsChange(txn.RightsChange{Action: "dm.create", Everyone: true}))
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := refusedByI1(t, change(personal(t)))
			if len(got.Violations) == 0 || len(got.Violations[0].Path) == 0 {
				t.Errorf("%+v", got)
			}
		})
	}
}

func (b *bundle) tryGive(subject, target ids.ID, kind, level string) error {
	_, _, err := b.svc.CreateGrant(b.as(b.owner), newGrant(subject, kind, target, level))
	return err
}

func (b *bundle) do(action string, fn func(context.Context) error, affected ...ids.ID) error {
	return b.units.Do(b.as(b.owner), fn, txn.WithRightsChange(txn.RightsChange{Action: action, Principals: affected}))
}

func (b *bundle) revoke(principal ids.ID) {
	b.t.Helper()
	if err := b.do("grant.revoke", func(ctx context.Context) error { return b.svc.RevokeAll(ctx, principal) }); err != nil {
		b.t.Fatal(err)
	}
}

func TestWhatIsHarmlessIsLetThrough(t *testing.T) {
	t.Parallel()
	b := personal(t)
	b.give(b.ben, b.space, "space", "write")
	b.give(b.ben, b.closed, "channel", "trigger") // The agent does not see it.
	far := newGrant(b.owner, "channel", b.open, "trigger")
	far.ExpiresAt = time.Now().Add(time.Hour)
	_, _, err := b.svc.CreateGrant(b.as(b.owner), far)
	refusedByI1(t, err)
	list, err := b.svc.Triggerers(t.Context(), b.helper)
	if err != nil || len(list) != 1 || list[0].PrincipalID != b.ana || list[0].Target.Kind != "space" || list[0].Paths[0].Code != "grant_direct" {
		t.Errorf("%+v, %v", list, err)
	}
	b.agents[b.helper] = authz.AgentPolicy{AgentID: b.helper, BillingMode: "local", Active: true}
	b.give(b.ben, b.open, "channel", "trigger")
	if list, err = b.svc.Triggerers(t.Context(), b.helper); err != nil || len(list) != 2 {
		t.Errorf("%+v, %v", list, err)
	}
	if list, err = b.svc.Triggerers(t.Context(), ids.New()); err != nil || len(list) != 0 {
		t.Errorf("%+v, %v", list, err)
	}
}

// Two changes that are fine alone and violate the rule together: exactly one passes.
func TestOfTwoChangesThatMeetOnePasses(t *testing.T) {
	t.Parallel()
	b := personal(t)
	for range 8 {
		var wg sync.WaitGroup
		results := make([]error, 2)
		for i, subject := range []ids.ID{b.ben, b.helper} {
			level := []string{"trigger", "read"}[i]
			wg.Go(func() { results[i] = b.tryGive(subject, b.closed, "channel", level) })
		}
		wg.Wait()
		failed := 0
		for _, err := range results {
			if err != nil {
				refusedByI1(t, err)
				failed++
			}
		}
		if failed != 1 {
			t.Fatalf("%v", results)
		}
		b.revoke(b.ben)
		b.db.Exec(t, "DELETE FROM grants WHERE principal_id = $1 AND target_id = $2", b.helper, b.closed)
	}
}

// A login is never refused because of a personal agent: it leaves out the groups that would open
// one, and the record says so.
func TestALoginLeavesOutTheGroupsThatOpenAPersonalAgent(t *testing.T) {
	t.Parallel()
	b := personal(t)
	provider := ids.New()
	made := map[string]ids.ID{}
	for _, value := range []string{"opens", "reads"} {
		g, err := b.svc.CreateGroup(b.as(b.owner), app.NewGroup{Name: value, Handle: value, ProviderID: provider, ClaimValue: value})
		if err != nil {
			t.Fatal(err)
		}
		made[value] = g.ID
		grant := newGrant(g.ID, "space", b.space, map[string]string{"opens": "trigger", "reads": "write"}[value])
		grant.SubjectKind = app.SubjectGroup
		if _, _, err := b.svc.CreateGrant(b.as(b.owner), grant); err != nil {
			t.Fatal(err)
		}
	}
	claims := authz.Claims{PrincipalID: b.ben, ProviderID: provider, Values: []string{"opens", "reads"}, ValidFor: time.Hour}
	opts, err := b.svc.Declare(t.Context(), claims)
	if err != nil {
		t.Fatal(err)
	}
	if err := b.units.Do(t.Context(), func(ctx context.Context) error { return b.svc.Sync(ctx, claims) }, opts...); err != nil {
		t.Fatal(err)
	}
	if n := b.db.Count(t, "SELECT count(*) FROM group_memberships WHERE principal_id = '"+b.ben.String()+"' AND group_id = '"+made["reads"].String()+"'"); n != 1 {
		t.Errorf("%d memberships that are harmless", n)
	}
	if n := b.db.Count(t, "SELECT count(*) FROM group_memberships WHERE group_id = '"+made["opens"].String()+"'"); n != 0 {
		t.Errorf("%d memberships that open the agent", n)
	}
	last := b.audit.allowed[len(b.audit.allowed)-1]
	if skipped, _ := last.Details["i1_skipped"].([]ids.ID); len(skipped) != 1 || skipped[0] != made["opens"] {
		t.Errorf("%+v", last)
	}
}

// What a preview says is what the request is refused with, so that a way out can be taken at once.
func TestAPreviewSaysWhatTheRefusalWould(t *testing.T) {
	t.Parallel()
	b := personal(t)
	asked := newGrant(b.ben, "channel", b.open, "trigger")
	reach := newGrant(b.helper, "channel", b.closed, "read")
	b.give(b.ben, b.closed, "channel", "trigger")
	for name, c := range map[string]struct {
		change  app.Previewed
		refused error
	}{
		"a right":        {app.PreviewGrant{NewGrant: asked}, b.tryGive(b.ben, b.open, "channel", "trigger")},
		"what it reads":  {app.PreviewGrant{NewGrant: reach}, b.tryGive(b.helper, b.closed, "channel", "read")},
		"where it works": {app.PreviewPlace{ChannelID: b.closed, Apply: func(c domain.Channel) domain.Channel { c.Operator = b.helper; return c }}, nil},
	} {
		p, err := b.svc.Preview(b.as(b.owner), c.change)
		if err != nil || p.I1 == nil || len(p.I1.Violations) != 1 || len(p.I1.Options) != 2 {
			t.Errorf("%s: %+v, %v", name, p.I1, err)
			continue
		}
		if c.refused != nil && refusedByI1(t, c.refused).Digest != p.I1.Digest {
			t.Errorf("%s: the refusal has another digest", name)
		}
	}
	p, err := b.svc.Preview(b.as(b.owner), app.PreviewGrant{NewGrant: asked})
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := b.svc.CreateGrant(b.resolving(b.as(b.owner), "reduce_rights", p.I1.Digest), asked); err != nil {
		t.Error(err)
	}
	if p, err = b.svc.Preview(b.as(b.owner), app.PreviewGrant{NewGrant: newGrant(b.ben, "space", b.space, "write")}); err != nil || p.I1 != nil {
		t.Errorf("harmless: %+v, %v", p.I1, err)
	}
}
