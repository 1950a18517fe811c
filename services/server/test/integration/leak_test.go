// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/OWNER/bothy/services/server/api/routes"
	"github.com/OWNER/bothy/services/server/internal/kernel/authorize"
	"github.com/OWNER/bothy/services/server/internal/kernel/reqmeta"
	"github.com/OWNER/bothy/services/server/internal/wire"
	"github.com/OWNER/bothy/services/server/test/harness"
)

// statements notes what the server sends to the database for each request.
type statements struct {
	mu   sync.Mutex
	sent map[string][]string
}

func (s *statements) note(ctx context.Context, sql string) {
	id := reqmeta.From(ctx).CorrelationID
	if id == "" {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sent[id] = append(s.sent[id], strings.TrimSpace(strings.Join(strings.Fields(sql), " ")))
}

// TraceQueryStart implements pgx.QueryTracer.
func (s *statements) TraceQueryStart(ctx context.Context, _ *pgx.Conn, d pgx.TraceQueryStartData) context.Context {
	s.note(ctx, d.SQL)
	return ctx
}

// TraceQueryEnd implements pgx.QueryTracer.
func (*statements) TraceQueryEnd(context.Context, *pgx.Conn, pgx.TraceQueryEndData) {}

// TraceBatchStart implements pgx.BatchTracer.
func (s *statements) TraceBatchStart(ctx context.Context, _ *pgx.Conn, d pgx.TraceBatchStartData) context.Context {
	for _, q := range d.Batch.QueuedQueries {
		s.note(ctx, q.SQL)
	}
	return ctx
}

// TraceBatchQuery implements pgx.BatchTracer.
func (*statements) TraceBatchQuery(context.Context, *pgx.Conn, pgx.TraceBatchQueryData) {}

// TraceBatchEnd implements pgx.BatchTracer.
func (*statements) TraceBatchEnd(context.Context, *pgx.Conn, pgx.TraceBatchEndData) {}

// of gives the statements of the request that an answer belongs to.
func (s *statements) of(r *harness.Response) []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.sent[r.Header.Get("Correlation-Id")])
}

// hiding is an instance in which something is made that some do not see.
type hiding struct {
	t    *testing.T
	s    *harness.Server
	sql  *statements
	team *team
	// insiders may do what a case says, strangers may not see what is hidden.
	insiders, strangers map[string]*harness.Client
	// open is a place that everybody sees.
	open harness.Place
	// hidden are the identifiers of what is made, missing those of nothing.
	hidden, missing map[string]string
	provider        string
	// sockets are connections of strangers and insiders, by their names.
	sockets map[string]*harness.Socket
}

func newHiding(t *testing.T, options ...harness.Option) *hiding {
	t.Helper()
	sql := &statements{sent: map[string][]string{}}
	provider := harness.StartProvider(t, "a-client-secret")
	s := harness.Start(t, append(options, harness.WithConfig(func(c *wire.Config) { c.PG.Tracer = sql }),
		harness.ReachProviders(t, provider), harness.WithSecret(t, "oidc_acme", provider.Secret))...)
	h := &hiding{t: t, s: s, sql: sql, missing: map[string]string{}}
	owner := s.Owner(t)
	owner.StepUp(t)
	// That people may sign in with it is public, so it is there from the beginning.
	h.provider = owner.Call(t, "createIdentityProvider", acme(provider, "acme")).OK(t).Str("id")
	guest := owner.Call(t, "createUser", harness.Body{"handle": s.Unique("gus"), "display_name": "Guest Gus", "guest": true, "issue_code": true}).OK(t)
	eve, rival := s.Person(t, "eve"), s.Agent(t, "rival")
	gus := s.Enroll(t, guest.Str("enrollment.code"))
	h.strangers = map[string]*harness.Client{"member": eve, "guest": gus, "agent": rival, "anonymous": s.Anonymous()}
	h.open = s.Space(t, "write", eve, gus, rival)
	return h
}

// hide makes what the strangers do not see.
func (h *hiding) hide() {
	t, s := h.t, h.s
	owner := s.Owner(t)
	h.team = newTeam(t, s)
	run, token, _ := h.team.started(t, "hide this")
	h.insiders = map[string]*harness.Client{"owner": owner, "caller": h.team.caller, "agent": h.team.agent}
	said := h.team.caller.Say(t, h.team.place.Thread, "hidden")
	pat := h.team.caller.Call(t, "createToken", harness.Body{"name": "x", "scopes": []string{"chat.read"}, "expires_at": s.In(60 * minute)}).OK(t)
	group := owner.Call(t, "createGroup", harness.Body{"handle": s.Unique("crew"), "name": s.Unique("Crew")}).OK(t)
	owner.Call(t, "putGroupMember", group.Str("id"), h.team.caller.ID, harness.Body{}).OK(t)
	h.hidden = map[string]string{
		"space": h.team.place.Space, "channel": h.team.place.Channel, "thread": h.team.place.Thread, "message": said.Str("id"),
		"run": run, "agent": h.team.agent.ID, "grant": h.team.right, "token": pat.Str("id"), "session": h.team.caller.Session,
		"person": h.team.caller.ID, "handle": h.team.caller.Handle, "group": group.Str("id"), "group handle": group.Str("handle"),
		"device": h.team.caller.Device, "provider": h.provider, "order": string(token), "epoch": owner.Call(t, "getInstance").OK(t).Str("sync_epoch"),
	}
	list := owner.Call(t, "listAuditEvents", harness.Query{"limit": "1"}).OK(t)
	h.hidden["audit event"] = list.Str("items.0.id")
	for name := range h.hidden {
		h.missing[name] = harness.NewID()
	}
	// Whoever got hold of the order of another has no more of it; the epoch is known to all.
	h.missing["order"], h.missing["epoch"] = h.hidden["order"], h.hidden["epoch"]
	h.missing["handle"], h.missing["group handle"] = s.Unique("nobody"), s.Unique("nobodies")
}

var placeholder = regexp.MustCompile(`\{[a-z ]+\}`)

// fill puts identifiers into the places of a case.
func fill(parts []any, by map[string]string) []any {
	put := func(text string) string {
		return placeholder.ReplaceAllStringFunc(text, func(name string) string { return by[strings.Trim(name, "{}")] })
	}
	var out []any
	for _, part := range parts {
		switch p := part.(type) {
		case string:
			part = put(p)
		case harness.Query:
			q := harness.Query{}
			for k, v := range p {
				q[k] = put(v)
			}
			part = q
		case harness.Invocation:
			part = harness.Invocation(put(string(p)))
		case harness.Body:
			raw, _ := json.Marshal(p)
			part = harness.Raw(put(string(raw)))
		}
		out = append(out, part)
	}
	return out
}

// of adds the caller to the identifiers.
func of(by *harness.Client, ids map[string]string) map[string]string {
	out := maps.Clone(ids)
	if out["me"] = by.ID; by.ID == "" {
		out["me"] = ids["person"]
	}
	return out
}

// points tells whether a case names something hidden.
func (l leak) points() bool {
	for _, part := range l.with {
		if placeholder.MatchString(fmt.Sprint(part)) {
			return true
		}
	}
	return false
}

// seen is an answer as it is compared: without what differs from request to request, and without
// the identifiers that were asked for.
type seen struct {
	status    int
	body      string
	headers   string
	statement []string
}

// changing are members and headers that tell the moment and nothing of what is hidden: positions
// and versions of the whole instance, and what belongs to the request.
var (
	changingMembers = regexp.MustCompile(`"(correlation_id|permission_version|head_seq|page_seq|seq|server_time|expires_at|last_seen_at|last_login_at|next_cursor|access_token|version)":("[^"]*"|[0-9]+)`)
	changingHeaders = []string{"Date", "Correlation-Id", "Dpop-Nonce", "Content-Length", "Sync-Seq", "Etag", "Www-Authenticate", "Ratelimit", "Traceparent"}
)

func (h *hiding) look(r *harness.Response, asked map[string]string) seen {
	body := changingMembers.ReplaceAllString(string(r.Body), `"$1":0`)
	for name, id := range asked {
		if name == "epoch" {
			continue
		}
		body = strings.ReplaceAll(body, id, "{"+name+"}")
	}
	var headers []string
	for name, values := range r.Header {
		if !slices.Contains(changingHeaders, name) {
			headers = append(headers, name+": "+strings.Join(values, ","))
		}
	}
	slices.Sort(headers)
	return seen{status: r.Status, body: body, headers: strings.Join(headers, "\n"), statement: h.sql.of(r)}
}

func (a seen) differs(b seen) string {
	switch {
	case a.status != b.status || a.body != b.body:
		return fmt.Sprintf("%d %s\nnot %d %s", a.status, a.body, b.status, b.body)
	case a.headers != b.headers:
		return fmt.Sprintf("the headers\n%s\nnot\n%s", a.headers, b.headers)
	case len(a.statement) != len(b.statement):
		return fmt.Sprintf("%d statements\n%s\nnot %d\n%s", len(a.statement), titles(a.statement), len(b.statement), titles(b.statement))
	default:
		return ""
	}
}

// titles shortens statements to what a reader recognises them by.
func titles(list []string) string {
	const most = 60
	var out []string
	for _, sql := range list {
		out = append(out, "    "+sql[:min(len(sql), most)])
	}
	return strings.Join(out, "\n")
}

// patience is how often two answers may differ in their statements before they count as different:
// the first request after a change reads into memory what the next ones find there.
const patience = 4

// alike asks for the hidden thing and for nothing until both take the same.
func (h *hiding) alike(t *testing.T, by *harness.Client, l leak) {
	t.Helper()
	var difference string
	for range patience {
		missing := h.look(by.Call(t, l.op, fill(l.with, of(by, h.missing))...), h.missing)
		hidden := h.look(by.Call(t, l.op, fill(l.with, of(by, h.hidden))...), h.hidden)
		if difference = hidden.differs(missing); difference == "" {
			return
		}
	}
	t.Errorf("what is hidden is answered with\n%s", difference)
}

// unchanged holds an answer against the one from before anything hidden was there.
func (h *hiding) unchanged(t *testing.T, by *harness.Client, l leak, before seen) {
	t.Helper()
	var difference string
	for range patience {
		after := h.look(by.Call(t, l.op, l.with...), nil)
		if difference = after.differs(before); difference == "" {
			return
		}
	}
	t.Errorf("since something hidden is there the answer is\n%s", difference)
}

// TestNothingHiddenShowsInAnAnswer asks every read operation as somebody who may see the thing, and
// then as strangers, who must be answered as if it were not there: the same status, the same body,
// the same headers and as many statements. Lists are asked before and after the hidden things are
// made.
func TestNothingHiddenShowsInAnAnswer(t *testing.T) {
	h := newHiding(t)
	cased := map[string]bool{}
	before := map[int]map[string]seen{}
	for i, l := range leaks {
		cased[l.op] = true
		if l.points() {
			continue
		}
		before[i] = map[string]seen{}
		for name, by := range h.strangers {
			if !l.skips(name) {
				by.Call(t, l.op, l.with...)
				before[i][name] = h.look(by.Call(t, l.op, l.with...), nil)
			}
		}
	}
	for _, op := range routes.Operations {
		spec, known := authorize.SpecOf(authorize.Action(op.Action))
		if known && spec.Effect == authorize.EffectRead && !op.AuthorizedInBand && !cased[op.ID] {
			t.Errorf("%s reads and has no case: add a line to leaks in leak_cases_test.go", op.ID)
		}
	}
	h.hide()
	for i, l := range leaks {
		t.Run(fmt.Sprintf("%s/%d", l.op, i), func(t *testing.T) {
			h.succeeds(t, l)
			for name, by := range h.strangers {
				switch {
				case l.skips(name):
				case l.points():
					t.Run(name, func(t *testing.T) { h.alike(t, by, l) })
				default:
					t.Run(name, func(t *testing.T) { h.unchanged(t, by, l, before[i][name]) })
				}
			}
		})
	}
}

// succeeds proves that the case asks for something that is there.
func (h *hiding) succeeds(t *testing.T, l leak) {
	t.Helper()
	by := h.insiders[l.by]
	if by == nil {
		by = h.strangers[l.by]
	}
	answer := by.Call(t, l.op, fill(l.with, of(by, h.hidden))...).OK(t)
	if want, _ := fill([]any{l.shows}, h.hidden)[0].(string); !strings.Contains(string(answer.Body), want) {
		t.Fatalf("the answer to %s does not show %s: %.2000s", l.by, l.shows, answer.Body)
	}
}

func mentions(raw any, ids map[string]string) string {
	text, _ := json.Marshal(raw)
	for name, id := range ids {
		if name == "epoch" || name == "provider" { // Known to all.
			continue
		}
		if len(id) >= len("00000000-0000-0000-0000-000000000000") && strings.Contains(string(text), id) {
			return name
		}
	}
	return ""
}
