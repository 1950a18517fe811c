// SPDX-License-Identifier: Apache-2.0

package harness

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/OWNER/bothy/services/server/internal/identity/adapters/identitytest"
	"github.com/OWNER/bothy/services/server/internal/kernel/ids"
)

const ownerHandle = "olga"

// password fits the policy and is that of everybody.
const password = "tre4sure-Kiln-vowel"

// device is how clients introduce themselves.
var device = Body{"name": "Firefox on Linux", "platform": "linux", "client": "app", "client_version": "1.0.0"}

type people struct {
	mu       sync.Mutex
	byHandle map[string]*Client
	serial   atomic.Int64
}

// Unique makes a name that no other test of the server uses.
func (s *Server) Unique(prefix string) string {
	return fmt.Sprintf("%s-%d", prefix, s.people.serial.Add(1))
}

// Owner is the first owner, signed in on her first device with a fresh step-up.
func (s *Server) Owner(t testing.TB) *Client {
	t.Helper()
	s.people.mu.Lock()
	defer s.people.mu.Unlock()
	if s.people.byHandle[ownerHandle] == nil {
		s.people.byHandle[ownerHandle] = s.Enroll(t, s.code)
	}
	return s.people.byHandle[ownerHandle]
}

// Enroll redeems a code with a new device and sets the password of everybody.
func (s *Server) Enroll(t testing.TB, code string) *Client {
	t.Helper()
	c := &Client{Server: s, DeviceKey: identitytest.NewKey(t), Password: password}
	flow := c.Call(t, "beginLogin", Body{"driver": "enrollment", "code": code, "device": device}).Is(t, 201)
	done := c.Call(t, "completeLogin", flow.Str("flow_id"), Body{"credential": Body{"kind": "password", "password": password}}).Is(t, 200)
	c.Adopt(done)
	return c
}

// Adopt takes over what a login or a step-up gave.
func (c *Client) Adopt(r *Response) {
	c.set(&c.access, r.Str("access_token"))
	if token := r.Str("refresh_token"); token != "" {
		c.set(&c.refresh, token)
		c.Session, c.Device = r.Str("session.id"), r.Str("device.id")
	}
	if id := r.Str("principal.id"); id != "" {
		c.ID, c.Handle = id, r.Str("principal.handle")
	}
}

// Login signs the person in on a further device.
func (c *Client) Login(t testing.TB) *Client {
	t.Helper()
	other := &Client{Server: c.Server, DeviceKey: identitytest.NewKey(t), Password: c.Password, ID: c.ID, Handle: c.Handle}
	flow := other.Call(t, "beginLogin", Body{"driver": "local", "device": device}).Is(t, 201)
	other.Adopt(other.Call(t, "completeLogin", flow.Str("flow_id"), Body{"login": c.Handle, "password": c.Password}).Is(t, 200))
	return other
}

// Renew exchanges the refresh token.
func (c *Client) Renew(t testing.TB) *Response {
	t.Helper()
	r := c.Call(t, "refreshToken", Body{"refresh_token": c.Refresh()})
	if r.Status == 200 {
		c.Adopt(r)
	}
	return r
}

// StepUp proves the presence of the person anew.
func (c *Client) StepUp(t testing.TB) {
	t.Helper()
	flow := c.Call(t, "beginStepUp", Body{"method": "password"}).OK(t)
	done := c.Call(t, "completeStepUp", flow.Str("flow_id"), Body{"password": c.Password}).OK(t)
	c.Adopt(done)
}

// Person makes a member and signs her in. The handle gets a number, so that every call makes
// another one.
func (s *Server) Person(t testing.TB, name string) *Client {
	t.Helper()
	made := s.Owner(t).Call(t, "createUser", Body{"handle": s.Unique(name), "display_name": "Member " + name, "issue_code": true}).OK(t)
	return s.Enroll(t, made.Str("enrollment.code"))
}

// WithAccess is the device with another access token, which it got without signing in.
func (c *Client) WithAccess(token, session string) *Client {
	other := &Client{Server: c.Server, DeviceKey: c.DeviceKey, ID: c.ID, Session: session, Device: c.Device}
	other.set(&other.access, token)
	return other
}

// Token makes an API token of the person.
func (c *Client) Token(t testing.TB, scopes ...string) *Client {
	t.Helper()
	r := c.Call(t, "createToken", Body{"name": c.Server.Unique("token"), "scopes": scopes, "expires_at": c.Server.In(24 * time.Hour)}).OK(t)
	return &Client{Server: c.Server, ID: c.ID, Handle: c.Handle, Bearer: r.Str("secret"), Session: ""}
}

// Agent makes an agent with a token for its adapter.
func (s *Server) Agent(t testing.TB, name string) *Client {
	t.Helper()
	owner := s.Owner(t)
	owner.StepUp(t)
	r := owner.Call(t, "createAgent", Body{
		"handle": s.Unique(name), "display_name": "Agent " + name, "billing_mode": "local", "tool_class": "chat",
		"token": Body{"name": "adapter"},
	}).OK(t)
	return &Client{Server: s, ID: r.Str("principal_id"), Handle: r.Str("handle"), Bearer: r.Str("token.secret")}
}

// Place is a channel with its main thread.
type Place struct{ Space, Channel, Thread string }

// Space makes a space of its own with a text channel, and gives the guests a level there.
func (s *Server) Space(t testing.TB, level string, members ...*Client) Place {
	t.Helper()
	owner := s.Owner(t)
	space := owner.Call(t, "createSpace", Body{"name": s.Unique("Space")}).OK(t).Str("id")
	p := s.Channel(t, space)
	for _, m := range members {
		s.Grant(t, m, level, "space", space)
	}
	return p
}

// Channel makes a text channel in the space.
func (s *Server) Channel(t testing.TB, space string) Place {
	t.Helper()
	channel := s.Owner(t).Call(t, "createChannel", space, Body{"kind": "text", "name": s.Unique("channel")}).OK(t)
	return Place{Space: space, Channel: channel.Str("id"), Thread: channel.Str("main_thread_id")}
}

// Grant gives a right and returns the identifier of the grant.
func (s *Server) Grant(t testing.TB, to *Client, level, kind, target string, capabilities ...string) string {
	t.Helper()
	owner := s.Owner(t)
	if level == "manage" || kind == "instance" {
		owner.StepUp(t)
	}
	body := Body{"subject": Body{"kind": "principal", "id": to.ID}, "target": targetOf(kind, target), "level": level}
	if len(capabilities) > 0 {
		body["capabilities"] = capabilities
	}
	return owner.Call(t, "createGrant", body).OK(t).Str("id")
}

func targetOf(kind, id string) Body {
	if id == "" {
		return Body{"kind": kind}
	}
	return Body{"kind": kind, "id": id}
}

// Say writes a message and returns it.
func (c *Client) Say(t testing.TB, thread, text string) *Response {
	t.Helper()
	return c.Call(t, "createMessage", thread, Message(text)).OK(t)
}

// Message is the body of a new message.
func Message(text string) Body { return Body{"client_msg_id": NewID(), "content": text} }

// NewID makes an identifier that nothing has.
func NewID() string { return ids.New().String() }

// In gives a time on the clock of the server as the contract writes it.
func (s *Server) In(d time.Duration) string {
	return s.Clock.Now().Add(d).UTC().Format("2006-01-02T15:04:05.000Z")
}
