// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/OWNER/bothy/services/server/internal/agents"
	"github.com/OWNER/bothy/services/server/internal/agents/domain"
	"github.com/OWNER/bothy/services/server/internal/authz"
	"github.com/OWNER/bothy/services/server/internal/identity"
	"github.com/OWNER/bothy/services/server/internal/kernel/actor"
	"github.com/OWNER/bothy/services/server/internal/kernel/auditing"
	"github.com/OWNER/bothy/services/server/internal/kernel/authorize"
	"github.com/OWNER/bothy/services/server/internal/kernel/errs"
	"github.com/OWNER/bothy/services/server/internal/kernel/eventlog"
	"github.com/OWNER/bothy/services/server/internal/kernel/ids"
	"github.com/OWNER/bothy/services/server/internal/kernel/textcheck"
	"github.com/OWNER/bothy/services/server/internal/kernel/txn"
)

// Deps are the parts of the use cases.
type Deps struct {
	Units      txn.UnitOfWork
	Authorizer authorize.Authorizer
	Audit      auditing.Recorder
	Log        eventlog.Appender
	Directory  identity.Directory
	Principals identity.PrincipalWrites
	Tokens     identity.Tokens
	Holders    authz.TriggerHolders
	Rows       Repository
	Cursors    CursorRepository
	// Head is the present position of the event log, where a new agent begins to listen.
	Head    func(ctx context.Context) (int64, error)
	Present Presenter
	// Tracker overlays what this process has heard since the row was written; nil in
	// processes that hear from no adapter.
	Tracker *Tracker
}

// Service keeps the agents.
type Service struct{ d Deps }

// New makes the use cases.
func New(d Deps) *Service { return &Service{d: d} }

// Resource describes an agent for a check.
func Resource(agent ids.ID) authorize.Resource {
	return authorize.Resource{Kind: authorize.ResourceAgent, ID: agent, OwnerID: agent}
}

// NewAgent is the input of Create.
type NewAgent struct {
	Handle, DisplayName, ToolClass string
	domain.Billing
	Settings domain.Settings
	// Token asks for a first API token; nil for none.
	Token *NewToken
}

// NewToken describes a first API token; without an end it lasts until it is revoked.
type NewToken struct {
	Name      string
	ExpiresAt *time.Time
}

// FirstToken is a token that was made with an agent. The secret is not stored anywhere.
type FirstToken struct {
	ID ids.ID
	NewToken
	Secret string
	Scopes []string
}

// Create makes an agent and, when asked, the token of its adapter.
func (s *Service) Create(ctx context.Context, in NewAgent) (View, *FirstToken, error) {
	var (
		view  View
		token *FirstToken
	)
	err := s.d.Units.Do(ctx, func(ctx context.Context) error {
		view, token = View{}, nil
		if err := s.d.Authorizer.Authorize(ctx, authorize.ActionAgentCreate, authorize.Resource{Kind: authorize.ResourceAgent}); err != nil {
			return err
		}
		me, now := actor.From(ctx).ID, txn.Current(ctx).Now()
		a, err := domain.NewAgent(ids.ID{}, me, in.Billing, in.ToolClass, in.Settings, now)
		if err != nil {
			return err
		}
		if err := s.checkHolder(ctx, "/credential_holder_id", a.HolderID); err != nil {
			return err
		}
		p, err := s.d.Principals.Create(ctx, identity.NewPrincipal{Kind: actor.KindAgent, Handle: in.Handle, DisplayName: in.DisplayName, CreatedBy: me})
		if err != nil {
			return fmt.Errorf("create the principal of the agent: %w", err)
		}
		a.ID = p.ID
		if err := s.d.Rows.Insert(ctx, a); err != nil {
			return fmt.Errorf("insert the agent: %w", err)
		}
		head, err := s.d.Head(ctx)
		if err != nil {
			return fmt.Errorf("read the position of the log: %w", err)
		}
		if err := s.d.Cursors.Begin(ctx, a.ID, head, now); err != nil {
			return fmt.Errorf("begin the place of the agent: %w", err)
		}
		details := map[string]any{"billing_mode": a.BillingMode, "tool_class": a.ToolClass}
		if !a.HolderID.IsZero() {
			details["credential_holder_id"] = a.HolderID
		}
		if in.Token != nil {
			if token, err = s.firstToken(ctx, a.ID, *in.Token); err != nil {
				return err
			}
			details["token_id"] = token.ID
		}
		view = View{Record: Record{Agent: a, Presence: domain.StateUnknown}, Principal: p}
		return s.record(ctx, authorize.ActionAgentCreate, view, details)
	})
	return view, token, err
}

func (s *Service) firstToken(ctx context.Context, agent ids.ID, in NewToken) (*FirstToken, error) {
	scopes := RuntimeScopes()
	id, secret, err := s.d.Tokens.CreateFirst(ctx, agent, in.Name, scopes, in.ExpiresAt)
	if err != nil {
		return nil, fmt.Errorf("make the token of the agent: %w", err)
	}
	return &FirstToken{ID: id, NewToken: in, Secret: secret, Scopes: scopes}, nil
}

// RuntimeScopes are the scopes an adapter needs: those of every action that agents call.
func RuntimeScopes() []string {
	var out []string
	for _, spec := range authorize.Catalogue {
		if !slices.Contains(spec.Callers, authorize.CallerAgent) || spec.Scope == "" ||
			spec.Scope == authorize.ScopeSession || spec.Scope == authorize.ScopeNone || slices.Contains(out, spec.Scope) {
			continue
		}
		out = append(out, spec.Scope)
	}
	slices.Sort(out)
	return out
}

// record notes a change: the audit row and agent.updated.
func (s *Service) record(ctx context.Context, action authorize.Action, v View, details map[string]any) error {
	err := s.d.Audit.Allowed(ctx, auditing.Entry{Action: string(action), ResourceKind: "agent", ResourceID: v.ID, Details: details})
	if err != nil {
		return fmt.Errorf("audit the change of an agent: %w", err)
	}
	return s.d.Log.Append(ctx, eventlog.Event{
		Type: "agent.updated", Resource: eventlog.Resource{Type: "agent", ID: v.ID}, Payload: s.d.Present.Agent(v, false),
	})
}

// Update changes settings of an agent. version is the one the change was made from.
func (s *Service) Update(ctx context.Context, id ids.ID, version int64, displayName *string, in domain.Settings) (View, error) {
	var view View
	err := s.d.Units.Do(ctx, func(ctx context.Context) error {
		row, err := s.locked(ctx, authorize.ActionAgentUpdate, id)
		if err != nil {
			return err
		}
		if row.Version != version {
			return versionConflict(row.Version)
		}
		now := txn.Current(ctx).Now()
		changed, err := row.Agent.Configure(in, now)
		if err != nil {
			return err
		}
		p, err := s.principal(ctx, id)
		if err != nil {
			return err
		}
		if displayName != nil && *displayName != p.DisplayName {
			if textcheck.Name(*displayName) != nil {
				return errs.Invalid("/display_name", "invalid", "One line without control characters.")
			}
			if p, err = s.d.Principals.Rename(ctx, id, p.Handle, *displayName); err != nil {
				return fmt.Errorf("rename the agent: %w", err)
			}
			if len(changed) == 0 {
				row.Agent.Changed(now)
			}
			changed = append(changed, "display_name")
		}
		view = View{Record: row, Principal: p, Warnings: s.warnings(row)}
		if len(changed) == 0 {
			return nil
		}
		if err := s.d.Rows.Configure(ctx, row.Agent); err != nil {
			return fmt.Errorf("change the agent: %w", err)
		}
		return s.record(ctx, authorize.ActionAgentUpdate, view, map[string]any{"changed": changed})
	})
	return s.overlay(view), err
}

// Disable ends everything an agent does; its runs end in the same transaction.
func (s *Service) Disable(ctx context.Context, id ids.ID) (View, error) {
	return s.setActive(ctx, id, authorize.ActionAgentDisable, false)
}

// Enable lets a disabled agent work again. Its old tokens stay ended.
func (s *Service) Enable(ctx context.Context, id ids.ID) (View, error) {
	return s.setActive(ctx, id, authorize.ActionAgentEnable, true)
}

func (s *Service) setActive(ctx context.Context, id ids.ID, action authorize.Action, active bool) (View, error) {
	var view View
	err := s.d.Units.Do(ctx, func(ctx context.Context) error {
		row, err := s.locked(ctx, action, id)
		if err != nil {
			return err
		}
		p, err := s.principal(ctx, id)
		if err != nil {
			return err
		}
		view = View{Record: row, Principal: p, Warnings: s.warnings(row)}
		if p.Active() == active {
			return nil
		}
		if view.Principal, err = s.d.Principals.SetActive(ctx, id, active, string(action)); err != nil {
			return fmt.Errorf("set whether the agent is active: %w", err)
		}
		row.Agent.Changed(txn.Current(ctx).Now())
		if err := s.d.Rows.Configure(ctx, row.Agent); err != nil {
			return fmt.Errorf("count the change of the agent: %w", err)
		}
		view.Record = row
		if err := s.record(ctx, action, view, nil); err != nil || active {
			return err
		}
		return txn.Publish(ctx, agents.AgentDisabled{AgentID: id})
	}, txn.WithRightsChange(txn.RightsChange{Action: string(action), Principals: []ids.ID{id}}))
	return s.overlay(view), err
}

// locked authorizes and holds the row. The order keeps a missing agent and a hidden one alike.
func (s *Service) locked(ctx context.Context, action authorize.Action, id ids.ID) (Record, error) {
	if err := s.d.Authorizer.Authorize(ctx, action, Resource(id)); err != nil {
		return Record{}, err
	}
	row, err := s.d.Rows.Lock(ctx, id)
	if err != nil {
		return Record{}, fmt.Errorf("lock the agent: %w", err)
	}
	return row, nil
}

func (s *Service) principal(ctx context.Context, id ids.ID) (identity.Principal, error) {
	found, err := s.d.Directory.ByID(ctx, []ids.ID{id})
	if err != nil {
		return identity.Principal{}, fmt.Errorf("read the principal of the agent: %w", err)
	}
	p, ok := found[id]
	if !ok {
		return identity.Principal{}, errs.NotFound()
	}
	return p, nil
}

// Get reads one agent.
func (s *Service) Get(ctx context.Context, id ids.ID) (View, error) {
	if err := s.d.Authorizer.Authorize(ctx, authorize.ActionAgentRead, Resource(id)); err != nil {
		return View{}, err
	}
	return s.read(ctx, id)
}

// read gives an agent that the actor may see.
func (s *Service) read(ctx context.Context, id ids.ID) (View, error) {
	rows, err := s.d.Rows.ByID(ctx, []ids.ID{id})
	if err != nil {
		return View{}, fmt.Errorf("read the agent: %w", err)
	}
	row, ok := rows[id]
	if !ok {
		return View{}, errs.NotFound()
	}
	p, err := s.principal(ctx, id)
	if err != nil {
		return View{}, err
	}
	return s.overlay(View{Record: row, Principal: p, Warnings: s.warnings(row)}), nil
}

// List gives the agents the actor may see, behind after and in ascending order of ID. next
// is the place behind the last one, zero on the last page.
func (s *Service) List(ctx context.Context, f Filter, after ids.ID, limit int) (list []View, next ids.ID, err error) {
	if _, err := s.d.Authorizer.Scope(ctx, authorize.ActionAgentRead); err != nil {
		return nil, ids.ID{}, err
	}
	rows, more, err := s.visible(ctx, f, after, limit)
	if err != nil {
		return nil, ids.ID{}, err
	}
	people := make([]ids.ID, len(rows))
	for i, r := range rows {
		people[i] = r.ID
	}
	principals, err := s.d.Directory.ByID(ctx, people)
	if err != nil {
		return nil, ids.ID{}, fmt.Errorf("read the principals of agents: %w", err)
	}
	for _, r := range rows {
		list = append(list, s.overlay(View{Record: r, Principal: principals[r.ID], Warnings: s.warnings(r)}))
	}
	if more && len(rows) > 0 {
		next = rows[len(rows)-1].ID
	}
	return list, next, nil
}

// visible reads on until the page is full or nothing is left, since rows may be hidden.
func (s *Service) visible(ctx context.Context, f Filter, after ids.ID, limit int) (out []Record, more bool, err error) {
	for {
		rows, err := s.d.Rows.After(ctx, after, f, limit+1)
		if err != nil {
			return nil, false, fmt.Errorf("list agents: %w", err)
		}
		for _, r := range rows {
			ok, err := s.d.Authorizer.Allowed(ctx, authorize.ActionAgentRead, Resource(r.ID))
			if err != nil {
				return nil, false, err
			}
			if !ok {
				continue
			}
			if len(out) == limit {
				return out, true, nil
			}
			out = append(out, r)
		}
		if len(rows) <= limit {
			return out, false, nil
		}
		after = rows[len(rows)-1].ID
	}
}

func (s *Service) overlay(v View) View {
	if s.d.Tracker != nil && !v.ID.IsZero() {
		v.Record = s.d.Tracker.overlay(v.Record)
		v.Warnings = s.warnings(v.Record)
	}
	return v
}

// warnings are what a live adapter reports against its configuration.
func (s *Service) warnings(r Record) []string {
	out := []string{}
	if !r.Presence.Live() {
		return out
	}
	lasts := s.d.Tracker == nil || s.d.Tracker.lasts(r)
	if r.Report.BillingMode != "" && r.Report.BillingMode != r.BillingMode && lasts {
		out = append(out, "billing_mode_mismatch")
	}
	if len(r.Report.Modes) > 0 && r.Report.BillingMode == "" {
		out = append(out, "billing_mode_unsupported")
	}
	if r.Report.Evidence != nil && r.Report.Evidence.KeyType == "unknown" {
		out = append(out, "billing_evidence_unknown")
	}
	if r.Report.ToolClass != "" && r.Report.ToolClass != r.ToolClass {
		out = append(out, "tool_class_mismatch")
	}
	return out
}

// SnapshotAgents implements agents.Agents.
func (s *Service) SnapshotAgents(ctx context.Context, after ids.ID, limit int) ([]agents.SnapshotItem, error) {
	views, _, err := s.List(ctx, Filter{}, after, limit)
	if err != nil {
		return nil, err
	}
	out := make([]agents.SnapshotItem, 0, len(views))
	for _, v := range views {
		raw, err := json.Marshal(s.d.Present.Agent(v, true))
		if err != nil {
			return nil, fmt.Errorf("encode an agent: %w", err)
		}
		out = append(out, agents.SnapshotItem{ID: v.ID, Payload: raw})
	}
	return out, nil
}
