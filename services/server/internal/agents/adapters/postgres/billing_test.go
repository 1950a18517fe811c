// SPDX-License-Identifier: Apache-2.0

package postgres_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/OWNER/bothy/services/server/internal/agents/adapters/postgres"
	"github.com/OWNER/bothy/services/server/internal/agents/app"
	"github.com/OWNER/bothy/services/server/internal/agents/domain"
	"github.com/OWNER/bothy/services/server/internal/authz"
	"github.com/OWNER/bothy/services/server/internal/identity"
	"github.com/OWNER/bothy/services/server/internal/kernel/actor"
	"github.com/OWNER/bothy/services/server/internal/kernel/errs"
	"github.com/OWNER/bothy/services/server/internal/kernel/ids"
)

func (h *house) person(status identity.Status) ids.ID {
	id := ids.New()
	h.principals[id] = identity.Principal{ID: id, Kind: actor.KindPerson, Status: status}
	return id
}

func own(holder ids.ID) domain.Billing {
	return domain.Billing{BillingMode: "personal", HolderID: holder}
}

func TestWhoPaysIsChangedAndTold(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	id, ana, gone := h.make("builder"), h.person(identity.StatusActive), h.person(identity.StatusDisabled)
	v, err := h.service.SetBillingMode(h.asOwner(), id, 1, own(ana))
	if err != nil || v.Billing != own(ana) || v.Version != 2 {
		t.Fatalf("%+v, %v", v, err)
	}
	last := h.audit[len(h.audit)-1]
	if last.Action != "agent.billing_mode.set" || last.Details["billing_mode_before"] != "organization" || last.Details["holder_after"] != ana {
		t.Errorf("%+v", last)
	}
	if told := h.events[len(h.events)-1]; told.Type != "agent.updated" || told.Resource.ID != id {
		t.Errorf("%+v", told)
	}
	events := len(h.events)
	if v, err = h.service.SetBillingMode(h.asOwner(), id, 2, own(ana)); err != nil || v.Version != 2 || len(h.events) != events {
		t.Errorf("nothing was different, and yet: %+v, %v", v, err)
	}
	for name, holder := range map[string]ids.ID{"somebody disabled": gone, "an agent": id, "nobody known": ids.New()} {
		if _, err := h.service.SetCredentialHolder(h.asOwner(), id, holder); !errs.Is(err, errs.CodeValidationFailed) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := h.service.SetBillingMode(h.asOwner(), id, 1, domain.Billing{BillingMode: "local"}); !errs.Is(err, errs.CodeVersionConflict) {
		t.Errorf("%v", err)
	}
	ben := h.person(identity.StatusActive)
	if v, err = h.service.SetCredentialHolder(h.asOwner(), id, ben); err != nil || v.HolderID != ben {
		t.Errorf("%+v, %v", v, err)
	}
	if v, err = h.service.SetToolClass(h.asOwner(), id, 3, "host"); err != nil || v.ToolClass != "host" || v.Billing != own(ben) {
		t.Errorf("%+v, %v", v, err)
	}
	if v, err = h.service.Get(h.asOwner(), id); err != nil || v.Billing != own(ben) || v.ToolClass != "host" || v.Version != 4 {
		t.Errorf("%+v, %v", v, err)
	}
}

func TestOnlyActivePersonalAgentsAreListed(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	ana := h.person(identity.StatusActive)
	first, second, _ := h.make("first"), h.make("second"), h.make("third")
	for _, id := range []ids.ID{first, second} {
		if _, err := h.service.SetBillingMode(h.asOwner(), id, 1, own(ana)); err != nil {
			t.Fatal(err)
		}
	}
	active := map[ids.ID]bool{first: true}
	policies := app.NewPolicies(postgres.NewAgents(h.db.DB), func(context.Context, []ids.ID) (map[ids.ID]bool, error) { return active, nil })
	list, err := policies.PersonalAgents(t.Context())
	if err != nil || len(list) != 1 || list[0] != (authz.AgentPolicy{AgentID: first, BillingMode: "personal", HolderID: ana, Active: true}) {
		t.Errorf("%+v, %v", list, err)
	}
}

func TestAllAgentsAreSetAtOnceOrNone(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	ana := h.person(identity.StatusActive)
	all := []ids.ID{h.make("first"), h.make("second"), h.make("third")}
	slices.SortFunc(all, ids.ID.Compare)
	if _, err := h.service.SetBillingMode(h.asOwner(), all[1], 1, own(ana)); err != nil {
		t.Fatal(err)
	}
	if _, err := h.service.SetAllBillingModes(h.asOwner(), "personal", nil); !errs.Is(err, errs.CodeValidationFailed) {
		t.Errorf("%v", err)
	}
	if _, err := h.service.SetAllBillingModes(h.asOwner(), "local", []ids.ID{all[0], ids.New()}); !errs.Is(err, errs.CodeNotFound) {
		t.Errorf("%v", err)
	}
	if v, err := h.service.Get(h.asOwner(), all[0]); err != nil || v.BillingMode != "organization" {
		t.Errorf("half of it was kept: %+v, %v", v.Billing, err)
	}
	changed, err := h.service.SetAllBillingModes(h.asOwner(), "organization", nil)
	if err != nil || !slices.Equal(changed, all[1:2]) {
		t.Errorf("%v, %v", changed, err)
	}
	if changed, err = h.service.SetAllBillingModes(h.asOwner(), "local", nil); err != nil || !slices.Equal(changed, all) {
		t.Errorf("%v, %v", changed, err)
	}
}

type holders []authz.Triggerer

// Triggerers implements authz.TriggerHolders.
func (h *house) Triggerers(context.Context, ids.ID) ([]authz.Triggerer, error) {
	return slices.Clone(h.holders), nil
}

func TestWhoCanTriggerIsReadPageByPage(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	id := h.make("builder")
	var all holders
	for i := range 5 {
		kind := []string{"instance", "space", "channel"}[i%3]
		all = append(all, authz.Triggerer{PrincipalID: ids.ID{byte(i / 2)}, Target: authz.Target{Kind: kind, ID: ids.ID{byte(i)}}})
	}
	all[3].Target.Kind, all[2].Target.Kind = "channel", "space"
	h.holders = all
	var read []authz.Triggerer
	var after app.TriggererKey
	for more := true; more; {
		var page []authz.Triggerer
		var err error
		if page, more, err = h.service.Triggerers(h.asOwner(), id, after, 2); err != nil {
			t.Fatal(err)
		}
		read = append(read, page...)
		after = app.KeyOf(page[len(page)-1])
	}
	if len(read) != len(all) {
		t.Errorf("%d of %d: %+v", len(read), len(all), read)
	}
}

// Right after a change the adapter has not followed yet; who is warned then stops reading warnings.
func TestAnotherPayerIsWarnedOfWhenItLasts(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	h.alertAfter = 10 * time.Minute
	h.tracker = h.newTracker()
	h.service = h.newService()
	id := h.make("builder")
	warned := func() bool {
		t.Helper()
		v, err := h.service.Get(h.asOwner(), id)
		if err != nil {
			t.Fatal(err)
		}
		return slices.Contains(v.Warnings, "billing_mode_mismatch")
	}
	report := func(mode string, after time.Duration) {
		h.clock.Advance(after)
		h.beat(h.tracker, id, `{"state":"online","billing_mode":"`+mode+`"}`)
	}
	for _, step := range []struct {
		name, mode string
		after      time.Duration
		want       bool
	}{
		{"at once", "local", time.Minute, false},
		{"not for long", "local", 9 * time.Minute, false},
		{"for long", "local", time.Minute, true},
		{"as configured", "organization", time.Minute, false},
		{"again, for a moment", "local", time.Minute, false},
		{"again, for long", "local", 10 * time.Minute, true},
	} {
		report(step.mode, step.after)
		if warned() != step.want {
			t.Errorf("%s: warned is %v", step.name, !step.want)
		}
	}
	if _, err := h.service.SetBillingMode(h.asOwner(), id, 1, own(h.person(identity.StatusActive))); err != nil {
		t.Fatal(err)
	}
	if warned() {
		t.Error("warned at the change of the configuration")
	}
	if report("local", 10*time.Minute); !warned() {
		t.Error("not warned although it lasts")
	}
}
