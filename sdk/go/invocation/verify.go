// SPDX-License-Identifier: Apache-2.0

package invocation

import (
	"context"
	"crypto/ecdsa"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"math/big"
	"slices"
	"strings"
	"time"

	"github.com/OWNER/bothy/sdk/go/api"
)

const (
	algorithm = "ES256"
	tokenType = "invocation+jwt"
	purpose   = "invocation"
	// skew is how far the clocks of adapter and server may differ.
	skew = time.Minute
	// maxToken bounds what is read at all.
	maxToken = 16 << 10
)

// Policy is what the adapter is set up for. A token that says otherwise is refused.
type Policy struct {
	// Issuer and InstanceID were pinned when the adapter was set up.
	Issuer, InstanceID string
	// AgentID is the agent the adapter works for.
	AgentID string
	// BillingMode says who pays. With personal, only HolderID may give orders.
	BillingMode api.BillingMode
	HolderID    string
	// ToolClass is what the runtime can do. An order that allows less is refused.
	ToolClass api.ToolClass
	// AllowPeople and AllowChannels restrict who and where, when not empty.
	AllowPeople, AllowChannels []string
}

// Claims is what a token says.
type Claims struct {
	Issuer        string          `json:"iss"`
	Audience      audience        `json:"aud"`
	Subject       string          `json:"sub"`
	IssuedAt      int64           `json:"iat"`
	NotBefore     int64           `json:"nbf"`
	ExpiresAt     int64           `json:"exp"`
	ID            string          `json:"jti"`
	InstanceID    string          `json:"instance_id"`
	Purpose       string          `json:"purpose"`
	EventID       string          `json:"event_id"`
	RunID         string          `json:"run_id"`
	InteractionID string          `json:"interaction_id"`
	ThreadID      string          `json:"thread_id"`
	ChannelID     string          `json:"channel_id"`
	RootRunID     string          `json:"root_run_id"`
	Chain         []string        `json:"chain"`
	BillingMode   api.BillingMode `json:"billing_mode"`
	ToolClass     api.ToolClass   `json:"tool_class"`
	// May says what the rights allow now. It informs; the server decides at each call.
	May []string `json:"may"`
}

// Expires is the end of the token.
func (c *Claims) Expires() time.Time { return time.Unix(c.ExpiresAt, 0) }

// audience reads one name or a list of names.
type audience []string

// UnmarshalJSON implements json.Unmarshaler.
func (a *audience) UnmarshalJSON(text []byte) error {
	var one string
	if json.Unmarshal(text, &one) == nil {
		*a = audience{one}
		return nil
	}
	var many []string
	if err := json.Unmarshal(text, &many); err != nil {
		return err
	}
	*a = many
	return nil
}

// Rejected means that a token is not acceptable, whatever one waits for.
type Rejected struct {
	// Reason is a word for logs, such as "expired" or "billing_mode". It holds nothing of the token.
	Reason string
}

// Error implements error.
func (e *Rejected) Error() string { return "invocation token rejected: " + e.Reason }

func rejected(reason string) error { return &Rejected{Reason: reason} }

// Verifier verifies tokens for one agent.
type Verifier struct {
	policy Policy
	keys   keys
	replay *Replay
	now    func() time.Time
}

// NewVerifier verifies by the policy, with keys from fetch, and remembers used tokens in replay.
func NewVerifier(policy Policy, fetch Fetch, replay *Replay) *Verifier {
	v := &Verifier{policy: policy, replay: replay, now: time.Now}
	v.keys = keys{fetch: fetch, now: func() time.Time { return v.now() }}
	return v
}

// Verify checks the token that came with the event for the run.
func (v *Verifier) Verify(ctx context.Context, token, eventID, runID string) (*Claims, error) {
	parsed, err := parse(token)
	if err != nil {
		return nil, err
	}
	key, err := v.keys.key(ctx, parsed.keyID)
	if err != nil {
		return nil, err
	}
	if key == nil {
		return nil, rejected("unknown_key")
	}
	if !parsed.signedBy(key) {
		return nil, rejected("signature")
	}
	c := &parsed.claims
	if reason := v.fault(c, eventID, runID); reason != "" {
		return nil, rejected(reason)
	}
	fresh, err := v.replay.take(c.ID, eventID, c.Expires().Add(skew))
	if err != nil {
		return nil, err
	}
	if !fresh {
		return nil, rejected("replayed")
	}
	return c, nil
}

// fault is the first reason to refuse verified claims, or "".
func (v *Verifier) fault(c *Claims, eventID, runID string) string {
	p, now := v.policy, v.now()
	for _, check := range []struct {
		ok     bool
		reason string
	}{
		{c.Purpose == purpose, "purpose"},
		{c.Issuer == p.Issuer, "issuer"},
		{c.InstanceID == p.InstanceID, "instance"},
		{len(c.Audience) == 1 && c.Audience[0] == p.AgentID, "audience"},
		{c.ExpiresAt > 0 && now.Before(time.Unix(c.ExpiresAt, 0).Add(skew)), "expired"},
		{!now.Before(time.Unix(c.NotBefore, 0).Add(-skew)), "not_yet_valid"},
		{c.ID != "" && c.Subject != "", "incomplete"},
		{c.EventID == eventID, "event"},
		{c.RunID == runID, "run"},
		{c.BillingMode == p.BillingMode, "billing_mode"},
		{p.BillingMode != api.BillingModePersonal || c.Subject == p.HolderID, "holder"},
		{rank(p.ToolClass) <= rank(c.ToolClass), "tool_class"},
		{len(p.AllowPeople) == 0 || slices.Contains(p.AllowPeople, c.Subject), "person_not_allowed"},
		{len(p.AllowChannels) == 0 || slices.Contains(p.AllowChannels, c.ChannelID), "channel_not_allowed"},
	} {
		if !check.ok {
			return check.reason
		}
	}
	return ""
}

// rank orders tool classes by what they can do. An unknown class of a claim allows nothing; Policies have known ones.
func rank(class api.ToolClass) int {
	return slices.Index([]api.ToolClass{api.ToolClassChat, api.ToolClassSandboxed, api.ToolClassHost}, class)
}

// parsedToken is a token that was read and not yet believed.
type parsedToken struct {
	keyID     string
	signed    string
	signature []byte
	claims    Claims
}

func parse(token string) (*parsedToken, error) {
	if len(token) > maxToken {
		return nil, rejected("malformed")
	}
	parts := strings.Split(token, ".")
	const jwsParts = 3
	if len(parts) != jwsParts {
		return nil, rejected("malformed")
	}
	var header struct {
		Algorithm string          `json:"alg"`
		Type      string          `json:"typ"`
		KeyID     string          `json:"kid"`
		Critical  json.RawMessage `json:"crit"`
	}
	p := &parsedToken{signed: parts[0] + "." + parts[1]}
	signature, err := base64.RawURLEncoding.DecodeString(parts[2])
	if err := errors.Join(err, decodePart(parts[0], &header), decodePart(parts[1], &p.claims)); err != nil {
		return nil, rejected("malformed")
	}
	switch {
	case header.Algorithm != algorithm:
		return nil, rejected("algorithm")
	case !strings.EqualFold(header.Type, tokenType):
		return nil, rejected("type")
	case header.KeyID == "" || header.Critical != nil:
		return nil, rejected("malformed")
	}
	p.keyID, p.signature = header.KeyID, signature
	return p, nil
}

func decodePart(part string, v any) error {
	text, err := base64.RawURLEncoding.DecodeString(part)
	if err != nil {
		return err
	}
	return json.Unmarshal(text, v)
}

func (p *parsedToken) signedBy(key *ecdsa.PublicKey) bool {
	const half = 32
	if len(p.signature) != 2*half {
		return false
	}
	r, s := new(big.Int).SetBytes(p.signature[:half]), new(big.Int).SetBytes(p.signature[half:])
	digest := sha256.Sum256([]byte(p.signed))
	return ecdsa.Verify(key, digest[:], r, s)
}
