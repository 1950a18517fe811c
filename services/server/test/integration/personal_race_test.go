// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"context"
	"math/rand/v2"
	"strconv"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/OWNER/bothy/services/server/internal/kernel/ids"
	"github.com/OWNER/bothy/services/server/test/harness"
	"github.com/OWNER/bothy/services/server/test/permissions"
)

// crew is an instance in which everybody changes rights at once.
type crew struct {
	s              *harness.Server
	owner          *harness.Client
	people, agents []string
	groups, places []string
	space          string
}

func newCrew(t *testing.T) *crew {
	t.Helper()
	s := harness.Start(t)
	c := &crew{s: s, owner: s.Owner(t)}
	c.people = []string{c.owner.ID}
	for _, name := range []string{"ana", "ben", "cleo"} {
		c.people = append(c.people, s.Person(t, name).ID)
	}
	for _, name := range []string{"aida", "abel"} {
		c.agents = append(c.agents, s.Agent(t, name).ID)
	}
	for range 2 {
		c.groups = append(c.groups, c.owner.Call(t, "createGroup", harness.Body{"name": s.Unique("Group"), "handle": s.Unique("g")}).OK(t).Str("id"))
	}
	first := s.Space(t, "read")
	c.space = first.Space
	c.places = []string{first.Channel, s.Channel(t, first.Space).Channel}
	c.owner.StepUp(t)
	for i, agent := range c.agents {
		body := harness.Body{"billing_mode": "personal", "credential_holder_id": c.people[i+1]}
		c.owner.Call(t, "setAgentBillingMode", agent, c.owner.Call(t, "getAgent", agent).Version(t), body).OK(t)
	}
	return c
}

func oneOf[T any](r *rand.Rand, list []T) T { return list[r.IntN(len(list))] }

// act does one random change and gives the answer; many are refused, and that is fine.
func (c *crew) act(t *testing.T, r *rand.Rand) *harness.Response {
	switch r.IntN(12) {
	case 0, 1, 2, 3:
		return c.give(t, r)
	case 4:
		return c.owner.Call(t, "putGroupMember", oneOf(r, c.groups), oneOf(r, c.people), harness.Body{})
	case 5:
		return c.owner.Call(t, "removeGroupMember", oneOf(r, c.groups), oneOf(r, c.people))
	case 6, 7:
		agent := oneOf(r, c.agents)
		body := harness.Body{"billing_mode": "local"}
		if r.IntN(12) > 0 {
			body = harness.Body{"billing_mode": "personal", "credential_holder_id": oneOf(r, c.people)}
		}
		return c.owner.Call(t, "setAgentBillingMode", agent, c.owner.Call(t, "getAgent", agent).Version(t), body)
	case 8:
		return c.owner.Call(t, "setAgentCredentialHolder", oneOf(r, c.agents), harness.Body{"person_id": oneOf(r, c.people)})
	case 9:
		channel := oneOf(r, c.places)
		body := harness.Body{"mode": "own", "agent_id": oneOf(r, c.agents)}
		if r.IntN(3) == 0 {
			body = harness.Body{"mode": "none"}
		}
		return c.owner.Call(t, "setChannelOperator", channel, c.owner.Call(t, "getChannel", channel).Version(t), body)
	case 10:
		channel := oneOf(r, c.places)
		return c.owner.Call(t, "updateChannel", channel, c.owner.Call(t, "getChannel", channel).Version(t), harness.Body{"inherits": r.IntN(2) == 0})
	default:
		return c.owner.Call(t, oneOf(r, []string{"disableAgent", "enableAgent", "enableAgent"}), oneOf(r, c.agents))
	}
}

// give grants something, or takes away what the subject has on the target already.
func (c *crew) give(t *testing.T, r *rand.Rand) *harness.Response {
	subject := harness.Body{"kind": "principal", "id": oneOf(r, append(append([]string{}, c.people...), c.agents...))}
	if r.IntN(3) == 0 {
		subject = harness.Body{"kind": "group", "id": oneOf(r, c.groups)}
	}
	target := harness.Body{"kind": "space", "id": c.space}
	if r.IntN(2) == 0 {
		target = harness.Body{"kind": "channel", "id": oneOf(r, c.places)}
	}
	made := c.owner.Call(t, "createGrant", harness.Body{
		"subject": subject, "target": target, "level": oneOf(r, []string{"read", "write", "trigger", "trigger", "manage"}),
	})
	if present := made.Str("grant_id"); made.Code() == "conflict" && present != "" {
		return c.owner.Call(t, "revokeGrant", present)
	}
	return made
}

// world reads what rights depend on, past all caches.
func (c *crew) world(t *testing.T) *permissions.World {
	t.Helper()
	w := &permissions.World{Now: c.s.Clock.Now()}
	rows(t, c.s, `SELECT p.id, p.kind, p.status = 'active', o.principal_id IS NOT NULL, coalesce(u.guest, false),
		coalesce(a.credential_holder_id, '00000000-0000-0000-0000-000000000000')
		FROM principals p LEFT JOIN owners o ON o.principal_id = p.id LEFT JOIN users u ON u.principal_id = p.id
		LEFT JOIN agents a ON a.principal_id = p.id`, func(scan func(...any) error) error {
		var p permissions.Principal
		w.Principals = append(w.Principals, &p)
		return scan(&p.ID, &p.Kind, &p.Active, &p.Owner, &p.Guest, &p.Holder)
	})
	rows(t, c.s, "SELECT id, kind = 'everyone' FROM groups", func(scan func(...any) error) error {
		var g permissions.Group
		w.Groups = append(w.Groups, &g)
		return scan(&g.ID, &g.Everyone)
	})
	rows(t, c.s, "SELECT group_id, principal_id FROM group_memberships", func(scan func(...any) error) error {
		var m permissions.Membership
		w.Memberships = append(w.Memberships, &m)
		return scan(&m.Group, &m.Principal)
	})
	rows(t, c.s, "SELECT id, principal_id, group_id, target_kind, target_id, level FROM grants", func(scan func(...any) error) error {
		var g permissions.Grant
		var principal, group, target *ids.ID
		w.Grants = append(w.Grants, &g)
		err := scan(&g.ID, &principal, &group, &g.Target.Kind, &target, &g.Level)
		g.Principal, g.Group, g.Target.ID = ids.Deref(principal), ids.Deref(group), ids.Deref(target)
		return err
	})
	rows(t, c.s, "SELECT id FROM spaces", func(scan func(...any) error) error {
		var s permissions.Space
		w.Spaces = append(w.Spaces, &s)
		return scan(&s.ID)
	})
	rows(t, c.s, "SELECT id, space_id, inherits, operator_agent_id FROM channels WHERE kind <> 'dm'", func(scan func(...any) error) error {
		var ch permissions.Channel
		var operator *ids.ID
		w.Channels = append(w.Channels, &ch)
		err := scan(&ch.ID, &ch.Space, &ch.Inherits, &operator)
		ch.Operator = ids.Deref(operator)
		return err
	})
	return w
}

func rows(t *testing.T, s *harness.Server, sql string, each func(scan func(...any) error) error) {
	t.Helper()
	list, err := s.DB.Pool.Query(context.Background(), sql)
	harness.Must(t, err)
	_, err = pgx.CollectRows(list, func(row pgx.CollectableRow) (struct{}, error) { return struct{}{}, each(row.Scan) })
	harness.Must(t, err)
}

// Whatever is changed at once, nobody but the holder can set a personal agent to work after it.
func TestPersonalAgentsStayClosedUnderConcurrentChanges(t *testing.T) {
	const rounds, atOnce = 30, 6
	c := newCrew(t)
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	var done, refused, personal int
	for round := range rounds {
		random := make([]*rand.Rand, atOnce)
		for i := range random {
			random[i] = rand.New(rand.NewPCG(seed, uint64(round*atOnce+i)))
		}
		for _, r := range together(atOnce, func(i int) *harness.Response { return c.act(t, random[i]) }) {
			switch r.Code() {
			case "":
				done++
			case "i1_violation":
				refused++
			case "conflict", "version_conflict", "not_found", "validation_failed":
			default:
				t.Errorf("%s was answered with %s", r.Operation, strconv.Itoa(r.Status)+" "+r.Code())
			}
		}
		w := c.world(t)
		if open := w.Violations(); len(open) > 0 {
			t.Fatalf("after round %d personal agents are open to %+v", round, open)
		}
		for _, p := range w.Principals {
			if p.Active && !p.Holder.IsZero() {
				personal++
			}
		}
	}
	if done == 0 || refused == 0 || personal == 0 {
		t.Errorf("the rule was not put to the test: %d done, %d refused, %d times a personal agent", done, refused, personal)
	}
	t.Logf("%d done, %d refused, %d times a personal agent", done, refused, personal)
}
