// SPDX-License-Identifier: Apache-2.0

package identitytest

import (
	"context"
	"log/slog"
	"net/netip"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/OWNER/bothy/services/server/internal/identity"
	"github.com/OWNER/bothy/services/server/internal/identity/adapters/argon2"
	"github.com/OWNER/bothy/services/server/internal/identity/adapters/postgres"
	"github.com/OWNER/bothy/services/server/internal/identity/adapters/webauthn"
	"github.com/OWNER/bothy/services/server/internal/identity/app"
	"github.com/OWNER/bothy/services/server/internal/kernel/actor"
	"github.com/OWNER/bothy/services/server/internal/kernel/clock/clocktest"
	"github.com/OWNER/bothy/services/server/internal/kernel/errs"
	"github.com/OWNER/bothy/services/server/internal/kernel/ids"
	"github.com/OWNER/bothy/services/server/internal/kernel/reqmeta"
	"github.com/OWNER/bothy/services/server/internal/kernel/txn"
	"github.com/OWNER/bothy/services/server/internal/platform/pg"
	"github.com/OWNER/bothy/services/server/internal/platform/pg/pgtest"
)

// Origin is the public address of the instance under test; Password fits its policy.
const (
	Origin   = "https://chat.example"
	Password = "tre4sure-Kiln-vowel"
)

// Start is where the clock of a fixture begins: an odd moment in a leap year.
var Start = time.Date(2028, 2, 29, 23, 58, 1, 234_000_000, time.UTC)

// Fixture is the module identity on a database, with fakes for what it stands on.
type Fixture struct {
	DB         *pgtest.DB
	Units      txn.UnitOfWork
	Clock      *clocktest.Fake
	Config     app.Config
	Service    *app.Service
	Auth       *app.Authenticator
	Sources    *app.Sources
	Proofs     *app.Proofs
	Seen       *app.Seen
	Ceremonies app.PasskeyCeremonies
	// OnHash is told of every computation of a password hash, before it begins.
	OnHash     func(ctx context.Context)
	Authorizer *Authorizer
	Audit      *Audit
	Events     *Events
	Instance   *Instance
	Grants     *Grants
	Throttle   *Throttle
	OpenID     *OpenID
	Claims     *GroupClaims
	Secrets    Secrets
	Published  *Published
	// TokensEnded counts what the module told about ended tokens, by principal.
	TokensEnded sync.Map
	// IP is the address requests come from.
	IP netip.Addr
	// Maintenance makes the instance read-only.
	Maintenance atomic.Bool
}

// Published keeps the in-transaction events of identity.
type Published struct {
	mu      sync.Mutex
	Setup   []identity.SetupCompleted
	Ended   []identity.SessionEnded
	Revoked []identity.DeviceRevoked
}

// OnSetup is a subscriber, as are OnEnded and OnRevoked.
func (p *Published) OnSetup(_ context.Context, e identity.SetupCompleted) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.Setup = append(p.Setup, e)
	return nil
}

// OnEnded notes the end of a session.
func (p *Published) OnEnded(_ context.Context, e identity.SessionEnded) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.Ended = append(p.Ended, e)
	return nil
}

// OnRevoked notes the end of a device.
func (p *Published) OnRevoked(_ context.Context, e identity.DeviceRevoked) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.Revoked = append(p.Revoked, e)
	return nil
}

// New builds the module on a database. change may edit the configuration.
func New(t testing.TB, db *pgtest.DB, change ...func(*app.Config)) *Fixture {
	t.Helper()
	f := &Fixture{
		DB: db, Clock: clocktest.New(Start), Config: app.DefaultConfig(), Audit: &Audit{}, Events: &Events{}, Instance: &Instance{},
		Grants: &Grants{}, Throttle: &Throttle{}, OpenID: &OpenID{}, Claims: &GroupClaims{}, Secrets: Secrets{}, Published: &Published{}, IP: netip.MustParseAddr("192.0.2.7"),
	}
	f.Config.PublicURL, f.Config.CodeHMACKey, f.Config.SingleNode = Origin, []byte("a secret of at least thirty-two bytes"), true
	for _, c := range change {
		c(&f.Config)
	}
	registry := txn.NewRegistry()
	txn.Subscribe(registry, f.Published.OnSetup)
	txn.Subscribe(registry, f.Published.OnEnded)
	txn.Subscribe(registry, f.Published.OnRevoked)
	registry.Seal()
	f.Units = pg.NewUnits(db.DB, registry, f.Clock, pg.UnitConfig{Maintenance: f.Maintenance.Load})
	f.build(t)
	return f
}

func (f *Fixture) build(t testing.TB) {
	t.Helper()
	store := postgres.New(f.DB.DB)
	log := slog.New(slog.DiscardHandler)
	hasher, err := argon2.New(argon2.Config{MemoryKiB: 19456, Iterations: 2, Parallelism: 1, MaxConcurrent: 4}, f.Clock)
	must(t, err)
	f.Ceremonies, err = webauthn.New(Origin, f.Config.PasskeyExtraOrigins)
	must(t, err)
	f.Proofs, err = app.NewProofs(f.Config, f.Clock)
	must(t, err)
	f.Seen, err = app.NewSeen(f.Config, f.Units, store, log)
	must(t, err)
	memory, keys := app.NewMemory(f.Clock), &SigningKeys{}
	f.Sources = app.NewSources(store, f.Clock)
	f.Authorizer = &Authorizer{Credentials: f.Sources, Clock: f.Clock, Hide: map[ids.ID]bool{}}
	f.Auth = app.NewAuthenticator(f.Config, f.Clock, store, keys, f.Proofs, memory, f.Seen)
	f.Service, err = app.New(f.Config, app.Deps{
		Units: f.Units, Clock: f.Clock, Log: log, Authorizer: f.Authorizer, Audit: f.Audit, Events: f.Events, Keys: keys,
		Instance: f.Instance, Settings: f.Instance, Grants: f.Grants, Groups: f.Grants, Store: store, Hasher: watched{hasher, f},
		Ceremonies: f.Ceremonies, OpenID: f.OpenID, Secrets: f.Secrets, ClaimGroups: f.Claims,
		Throttle: f.Throttle, Proofs: f.Proofs, Memory: memory,
		CredentialEnded: func(principal ids.ID) { f.TokensEnded.Store(principal, true) },
	})
	must(t, err)
}

// watched tells the fixture of computations.
type watched struct {
	app.Hasher
	f *Fixture
}

func (w watched) Hash(ctx context.Context, password string) (string, error) {
	w.told(ctx)
	return w.Hasher.Hash(ctx, password)
}

func (w watched) Verify(ctx context.Context, hash, password string) (fits, weak bool, err error) {
	w.told(ctx)
	return w.Hasher.Verify(ctx, hash, password)
}

func (w watched) told(ctx context.Context) {
	if w.f.OnHash != nil {
		w.f.OnHash(ctx)
	}
}

// Request gives a context as an anonymous request carries it.
func (f *Fixture) Request() context.Context {
	return reqmeta.With(context.Background(), reqmeta.Meta{ClientIP: f.IP})
}

// Proof makes the proof of a request without an access token, with a fresh nonce.
func (f *Fixture) Proof(t testing.TB, key *Key, path string) app.ProofInput {
	t.Helper()
	url := Origin + "/api/v1" + path
	return app.ProofInput{
		Compact: key.Proof(t, Claims{Method: "POST", URL: url, Nonce: f.Proofs.Nonce(), IssuedAt: f.Clock.Now()}),
		Method:  "POST", URL: url,
	}
}

// Device is how the clients of a fixture introduce themselves.
var Device = app.DeviceInfo{Name: "Firefox on Linux", Platform: "linux", Client: "app", ClientVersion: "1.0.0"}

// Client is a signed-in device of a person.
type Client struct {
	f      *Fixture
	Key    *Key
	Person ids.ID
	Handle string
	app.LoginResult
}

// Enroll redeems a code with a new device.
func (f *Fixture) Enroll(t testing.TB, code string) *Client {
	t.Helper()
	key := NewKey(t)
	begun, err := f.Service.BeginLogin(f.Request(), app.BeginLoginInput{
		Proof: f.Proof(t, key, "/auth/login"), Driver: app.DriverEnrollment, Code: code, Device: Device,
	})
	must(t, err)
	result, err := f.Service.CompleteLogin(f.Request(), app.CompleteLoginInput{
		Proof: f.Proof(t, key, "/auth/login/complete"), FlowID: begun.Flow.ID, CredentialKind: "password", NewPassword: Password,
	})
	must(t, err)
	return f.client(key, result)
}

// Login signs in by password with the key.
func (f *Fixture) Login(t testing.TB, key *Key, login, password string) (*Client, error) {
	t.Helper()
	begun, err := f.Service.BeginLogin(f.Request(), app.BeginLoginInput{
		Proof: f.Proof(t, key, "/auth/login"), Driver: app.DriverLocal, Device: Device,
	})
	must(t, err)
	result, err := f.Service.CompleteLogin(f.Request(), app.CompleteLoginInput{
		Proof: f.Proof(t, key, "/auth/login/complete"), FlowID: begun.Flow.ID, Login: login, Password: password,
	})
	if err != nil {
		return nil, err
	}
	return f.client(key, result), nil
}

func (f *Fixture) client(key *Key, r app.LoginResult) *Client {
	return &Client{f: f, Key: key, Person: r.Session.PrincipalID, Handle: r.Account.Handle, LoginResult: r}
}

// Owner bootstraps the instance and gives its signed-in owner.
func (f *Fixture) Owner(t testing.TB, handle string) *Client {
	t.Helper()
	code, err := f.Service.BootstrapOwner(context.Background(), app.BootstrapInput{Handle: handle, DisplayName: "Owner " + handle})
	must(t, err)
	return f.Enroll(t, code.Code)
}

// Member has the owner create a person, who enrolls and signs in.
func (f *Fixture) Member(t testing.TB, owner *Client, handle string) *Client {
	t.Helper()
	_, code, err := f.Service.CreateUser(owner.Context(t), app.CreateUserInput{Handle: handle, DisplayName: "Member " + handle, IssueCode: true})
	must(t, err)
	return f.Enroll(t, code.Code)
}

// Agent makes an agent with an API token.
func (f *Fixture) Agent(t testing.TB, owner *Client, handle string, scopes ...string) (id, token ids.ID, secret string) {
	t.Helper()
	ctx := owner.Context(t)
	must(t, f.Units.Do(ctx, func(ctx context.Context) error {
		p, err := f.Service.Create(ctx, identity.NewPrincipal{Kind: actor.KindAgent, Handle: handle, DisplayName: "Agent " + handle, CreatedBy: owner.Person})
		if err != nil {
			return err
		}
		id = p.ID
		token, secret, err = f.Service.CreateFirst(ctx, id, "first", scopes, nil)
		return err
	}))
	return id, token, secret
}

// Credentials are what a request of the client presents.
func (c *Client) Credentials(t testing.TB) actor.Credentials {
	t.Helper()
	url := Origin + "/api/v1/me"
	proof := c.Key.Proof(t, Claims{
		Method: "GET", URL: url, Nonce: c.f.Proofs.Nonce(), AccessToken: c.AccessToken, IssuedAt: c.f.Clock.Now(),
	})
	return actor.Credentials{Authorization: "DPoP " + c.AccessToken, Proof: proof, Method: "GET", URL: url}
}

// Authenticate verifies a request of the client.
func (c *Client) Authenticate(t testing.TB) (actor.Actor, error) {
	t.Helper()
	return c.f.Auth.Authenticate(c.f.Request(), c.Credentials(t))
}

// Context gives a context as a verified request of the client carries it.
func (c *Client) Context(t testing.TB) context.Context {
	t.Helper()
	a, err := c.Authenticate(t)
	must(t, err)
	return actor.With(c.f.Request(), a)
}

// Refresh exchanges a refresh token with the client's key.
func (c *Client) Refresh(t testing.TB, token string) (app.LoginResult, error) {
	t.Helper()
	return c.f.Service.Refresh(c.f.Request(), c.f.Proof(t, c.Key, "/auth/token"), token)
}

// StepUp gives a fresh proof by password; the client goes on with the new access token.
func (c *Client) StepUp(t testing.TB) {
	t.Helper()
	begun, err := c.f.Service.BeginStepUp(c.Context(t), "password")
	must(t, err)
	result, err := c.f.Service.CompleteStepUp(c.Context(t), begun.Flow.ID, app.StepUpProof{Password: Password})
	must(t, err)
	c.AccessToken = result.AccessToken
}

// Bearer authenticates with an API token.
func (f *Fixture) Bearer(secret string) (actor.Actor, error) {
	return f.Auth.Authenticate(f.Request(), actor.Credentials{Authorization: "Bearer " + secret, Method: "GET", URL: Origin + "/api/v1/me"})
}

// Is fails the test unless the error has the code and, when given, the reason.
func Is(t testing.TB, err error, code errs.Code, reason string) {
	t.Helper()
	if err == nil {
		t.Fatalf("no error, want %s (%s)", code, reason)
	}
	if e := errs.As(err); e.Code != code || reason != "" && e.Reason != reason {
		t.Fatalf("%v, want %s (%s)", err, code, reason)
	}
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatalf("identitytest: %v", err)
	}
}
