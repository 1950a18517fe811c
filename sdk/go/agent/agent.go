// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	bothy "github.com/OWNER/bothy/sdk/go"
	"github.com/OWNER/bothy/sdk/go/api"
	"github.com/OWNER/bothy/sdk/go/gateway"
	"github.com/OWNER/bothy/sdk/go/invocation"
)

// ErrForeign means that the address leads to another instance, or the token to another agent, than at the set-up.
var ErrForeign = errors.New("not the instance or agent of the set-up")

// Config says for which agent an adapter works, within which bounds, and how. URL, Token, StateDir, Policy and Work
// are required.
type Config struct {
	// URL is the address of the instance, Token the API token of the agent.
	URL   string
	Token string
	// StateDir is a folder of this adapter's own. It must survive restarts.
	StateDir string
	Policy   Policy
	// InstanceID, when set, is the only instance that is spoken to. Otherwise the first one is pinned.
	InstanceID string
	// Concurrency bounds the runs at work at once, over all threads; 4 when 0.
	Concurrency int
	// Report is what the adapter tells about itself.
	Report Report
	// Work does one run. Its context ends when the run is cancelled or the adapter stops; context.Cause tells which.
	// nil completes the run with the streamed text as its answer, an error fails it with the error's text.
	Work func(context.Context, *Run) error
	// Interrupted hears, after a restart, of a run that was at work, with what Run.Keep stored, before the run ends as
	// failed. It is the place to end what the work left behind. It may be nil.
	Interrupted func(ctx context.Context, runID string, kept json.RawMessage)
	// StopPatience is how long runs at work have to be ended at the server when the adapter stops; 15 s when 0.
	StopPatience time.Duration
	// Log gets what happens, without texts and secrets; nothing when nil.
	Log *slog.Logger
	// Options changes how the REST client is made.
	Options []bothy.Option
	// Timing is for tests.
	Timing Timing
}

// Timing replaces waits in tests; zero values are right otherwise.
type Timing struct {
	Gateway gateway.Timing
	// FlushEvery is the least time between two updates of a run; 250 ms when 0.
	FlushEvery time.Duration
	// Backoff is the wait after n failed attempts of an update or an end.
	Backoff func(n int) time.Duration
}

// Policy is what the adapter is set up for, whatever the server says: an order that differs is refused.
type Policy struct {
	BillingMode api.BillingMode
	// HolderID is required with personal: the only person who may give orders.
	HolderID  string
	ToolClass api.ToolClass
	// AllowPeople and AllowChannels restrict who and where, when not empty.
	AllowPeople, AllowChannels []string
}

// Report is what an adapter tells about itself in every heartbeat.
type Report struct {
	Adapter        gateway.Program
	Runtime        string
	RuntimeVersion string
	// Evidence says by what the adapter knows how its work is paid for; never a key itself.
	Evidence *api.BillingEvidenceInput
	// Steer is true when Work takes up follow-ups while it runs.
	Steer bool
}

// Agent is an adapter at work. Make it with Open.
type Agent struct {
	cfg      Config
	client   *bothy.Client
	pin      pin
	journal  *journal
	replay   *invocation.Replay
	verifier *invocation.Verifier
	link     *gateway.Link
	workers  *workers

	mu       sync.Mutex
	degraded []string
}

// Open checks the configuration, locks the state folder, and makes sure that address and token lead where they did at
// the set-up. It returns ErrStateInUse, ErrForeign, or a *bothy.Problem when the server refuses the token.
func Open(ctx context.Context, cfg Config) (*Agent, error) {
	if err := cfg.complete(); err != nil {
		return nil, err
	}
	options := append([]bothy.Option{
		bothy.WithCredential(bothy.APIToken(cfg.Token)), bothy.WithUserAgent(cfg.Report.Adapter.Name + "/" + cfg.Report.Adapter.Version),
	}, cfg.Options...)
	client, err := bothy.New(cfg.URL, options...)
	if err != nil {
		return nil, err
	}
	j, err := openJournal(cfg.StateDir)
	if err != nil {
		return nil, err
	}
	a := &Agent{cfg: cfg, client: client, journal: j}
	if err := a.set(ctx); err != nil {
		return nil, errors.Join(err, a.Close())
	}
	return a, nil
}

func (cfg *Config) complete() error {
	const concurrency, patience = 4, 15 * time.Second
	if cfg.StopPatience <= 0 {
		cfg.StopPatience = patience
	}
	if cfg.Concurrency <= 0 {
		cfg.Concurrency = concurrency
	}
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	if cfg.Report.Adapter.Name == "" {
		cfg.Report.Adapter = gateway.Program{Name: "bothy-sdk-go", Version: "1"}
	}
	if cfg.Report.Runtime == "" {
		cfg.Report.Runtime = "custom"
	}
	modes := []api.BillingMode{api.BillingModePersonal, api.BillingModeOrganization, api.BillingModeLocal}
	classes := []api.ToolClass{api.ToolClassChat, api.ToolClassSandboxed, api.ToolClassHost}
	switch {
	case cfg.Token == "":
		return errors.New("agent: no token")
	case cfg.StateDir == "":
		return errors.New("agent: no state folder")
	case cfg.Work == nil:
		return errors.New("agent: no work")
	case !slices.Contains(modes, cfg.Policy.BillingMode):
		return fmt.Errorf("agent: billing mode %q is none of personal, organization, local", cfg.Policy.BillingMode)
	case !slices.Contains(classes, cfg.Policy.ToolClass):
		return fmt.Errorf("agent: tool class %q is none of chat, sandboxed, host", cfg.Policy.ToolClass)
	case cfg.Policy.BillingMode == api.BillingModePersonal && cfg.Policy.HolderID == "":
		return errors.New("agent: personal billing needs the ID of the holder")
	}
	return nil
}

// set pins the instance and the agent, or compares them with the pin.
func (a *Agent) set(ctx context.Context) error {
	discovery, err := a.client.Discovery(ctx)
	if err != nil {
		return fmt.Errorf("reach the instance: %w", err)
	}
	self, err := a.client.Self(ctx)
	if err != nil {
		return fmt.Errorf("who the token belongs to: %w", err)
	}
	if self.Kind != api.PrincipalKindAgent {
		return fmt.Errorf("the token belongs to a %s: %w", self.Kind, ErrForeign)
	}
	now := pin{InstanceID: discovery.InstanceID, Issuer: strings.TrimSuffix(strings.TrimRight(discovery.APIBase, "/"), "/api/v1"), AgentID: self.ID}
	if a.cfg.InstanceID != "" && a.cfg.InstanceID != now.InstanceID {
		return fmt.Errorf("instance %s instead of %s: %w", now.InstanceID, a.cfg.InstanceID, ErrForeign)
	}
	known, ok, err := a.journal.pinned()
	switch {
	case err != nil:
		return err
	case !ok:
		if err := a.journal.setPin(now); err != nil {
			return err
		}
	case known != now:
		return fmt.Errorf("instance %s (%s), agent %s instead of %s (%s), %s: %w",
			now.InstanceID, now.Issuer, now.AgentID, known.InstanceID, known.Issuer, known.AgentID, ErrForeign)
	}
	a.pin = now
	if a.replay, err = invocation.OpenReplay(filepath.Join(a.cfg.StateDir, "tokens.log")); err != nil {
		return err
	}
	p := a.cfg.Policy
	a.verifier = invocation.NewVerifier(invocation.Policy{
		Issuer: now.Issuer, InstanceID: now.InstanceID, AgentID: now.AgentID, BillingMode: p.BillingMode, HolderID: p.HolderID,
		ToolClass: p.ToolClass, AllowPeople: p.AllowPeople, AllowChannels: p.AllowChannels,
	}, a.client.JWKS, a.replay)
	return a.connect()
}

func (a *Agent) connect() error {
	store, err := gateway.NewFileStore(filepath.Join(a.cfg.StateDir, "cursor.json"))
	if err != nil {
		return err
	}
	a.link, err = gateway.New(gateway.Config{
		Client: a.client, Store: store, Handle: a.handle, Consumer: true, Heartbeat: a.report,
		Program: a.cfg.Report.Adapter, InstanceID: a.pin.InstanceID, Log: a.cfg.Log, Timing: a.cfg.Timing.Gateway,
		Connected: func(c gateway.Connection) {
			a.cfg.Log.Info("connected", "instance_id", c.InstanceID, "server_version", c.ServerVersion, "resumed", c.Resumed)
		},
		Failed: func(f api.ErrorFrame) { a.cfg.Log.Warn("frame refused", "op", f.Op, "code", f.Code) },
	})
	return err
}

// InstanceID and AgentID are what the adapter works for.
func (a *Agent) InstanceID() string { return a.pin.InstanceID }

// AgentID is the agent the adapter works for.
func (a *Agent) AgentID() string { return a.pin.AgentID }

// Client makes REST calls with the agent's token.
func (a *Agent) Client() *bothy.Client { return a.client }

// Run works until the context ends, which returns nil after every run at work was ended, or until an error that needs
// a person: those of gateway.Link.Run.
func (a *Agent) Run(ctx context.Context) error {
	a.workers = newWorkers(ctx, a)
	for _, r := range a.journal.all() {
		a.workers.add(r.RunID, "")
	}
	err := a.link.Run(ctx)
	if ctx.Err() != nil {
		err = nil
	}
	a.workers.stop()
	return err
}

// Close releases the state folder.
func (a *Agent) Close() error {
	var err error
	if a.replay != nil {
		err = a.replay.Close()
	}
	return errors.Join(err, a.journal.close())
}

// report is the body of a heartbeat.
func (a *Agent) report() *api.Heartbeat {
	a.mu.Lock()
	degraded := slices.Clone(a.degraded)
	a.mu.Unlock()
	p, r := a.cfg.Policy, a.cfg.Report
	mode := api.FollowupModeQueue
	if r.Steer {
		mode = api.FollowupModeSteer
	}
	const protocol = 1
	no, version := false, protocol
	runs := a.journal.runs()
	const most = 1000
	h := &api.Heartbeat{
		State: api.HeartbeatStateOnline, BillingMode: &p.BillingMode, ToolClass: &p.ToolClass,
		BillingModesSupported: []api.BillingMode{p.BillingMode}, BillingEvidence: r.Evidence,
		Details: &api.HeartbeatDetails{
			Capabilities: &api.AgentCapabilitiesInput{Followups: &mode, Components: &no, VoiceInput: &no, Title: &no, FilesOut: &no},
			ActiveRuns:   runs[:min(len(runs), most)], DegradedReasons: degraded, ProtocolVersion: &version,
			Adapter: &api.AdapterInput{Name: r.Adapter.Name, Version: r.Adapter.Version}, Runtime: &api.RuntimeInput{Name: r.Runtime},
		},
	}
	if r.RuntimeVersion != "" {
		h.RuntimeVersion = &r.RuntimeVersion
	}
	if len(degraded) > 0 {
		h.State = api.HeartbeatStateDegraded
	}
	return h
}

// degrade notes a reason why the adapter is less than fine, until it is restarted.
func (a *Agent) degrade(reason string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if !slices.Contains(a.degraded, reason) {
		a.degraded = append(a.degraded, reason)
	}
}

// handle takes one event. Returning nil acknowledges it, so everything is on disk by then.
func (a *Agent) handle(ctx context.Context, e gateway.Event) error {
	switch e.Type {
	case gateway.AgentInvocation:
		return a.invoked(ctx, e)
	case gateway.AgentFollowup:
		return a.followedUp(ctx, e)
	case gateway.RunCancelRequested:
		d, err := gateway.Data[api.RunCancelRequestedData](e)
		if err != nil {
			return err
		}
		a.workers.cancel(d.RunID, ErrCancelled)
	}
	return nil
}

func (a *Agent) invoked(ctx context.Context, e gateway.Event) error {
	d, err := gateway.Data[api.AgentInvocationData](e)
	if err != nil {
		return err
	}
	if known := a.journal.find(d.Run.ID); known != nil {
		return nil // delivered again; what was taken goes its way
	}
	token := d.Token
	d.Token = ""
	r := &record{RunID: d.Run.ID, EventID: e.ID, Seq: e.Seq, Phase: phaseAccepted, Order: *d, StartKey: bothy.NewID()}
	if _, err := a.verifier.Verify(ctx, token, e.ID, d.Run.ID); err != nil {
		var refused *invocation.Rejected
		if !errors.As(err, &refused) {
			return err
		}
		a.cfg.Log.WarnContext(ctx, "order refused", "run_id", d.Run.ID, "reason", refused.Reason)
		a.degrade("invocation_token_rejected")
		reason := api.FinishRunRequestEndReasonTokenRejected
		message := "The adapter refused the order: " + refused.Reason + "."
		r.Phase, r.Finish = phaseFinishing, &finish{Key: bothy.NewID(), Bare: true, Body: api.FinishRunRequest{
			State: api.FinishRunRequestStateFailed, EndReason: &reason, Error: &api.RunErrorInput{Code: "token_rejected", Message: &message},
		}}
	}
	for _, f := range d.Followups {
		r.Followups = append(r.Followups, Followup{ID: f.ID, Message: f.Message, EventID: e.ID + "/" + f.ID})
	}
	added, err := a.journal.add(r)
	if err != nil || !added {
		return err
	}
	a.workers.add(r.RunID, token)
	a.link.Beat()
	return nil
}

func (a *Agent) followedUp(ctx context.Context, e gateway.Event) error {
	d, err := gateway.Data[api.AgentFollowupData](e)
	if err != nil {
		return err
	}
	if a.journal.find(d.RunID) == nil || !a.cfg.Report.Steer {
		return nil // stays open at the server, which carries it into a run of its own
	}
	if _, err := a.verifier.Verify(ctx, d.Token, e.ID, d.RunID); err != nil {
		var refused *invocation.Rejected
		if !errors.As(err, &refused) {
			return err
		}
		a.cfg.Log.WarnContext(ctx, "follow-up refused", "run_id", d.RunID, "reason", refused.Reason)
		return nil
	}
	f := Followup{Message: d.Message, Correction: d.Correction, EventID: e.ID}
	if d.FollowupID != nil {
		f.ID = *d.FollowupID
	}
	taken := false
	err = a.journal.change(d.RunID, func(r *record) {
		taken = !slices.ContainsFunc(r.Followups, func(o Followup) bool {
			return o.EventID == f.EventID || o.ID == f.ID && f.ID != "" && !f.Correction
		})
		if taken {
			r.Followups = append(r.Followups, f)
		}
	})
	if err != nil {
		return err
	}
	if taken {
		a.workers.followUp(d.RunID, f)
	}
	return nil
}
