// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"

	agentsapp "github.com/OWNER/bothy/services/server/internal/agents/app"
	agentsdomain "github.com/OWNER/bothy/services/server/internal/agents/domain"
	chatapp "github.com/OWNER/bothy/services/server/internal/chat/app"
	chatdomain "github.com/OWNER/bothy/services/server/internal/chat/domain"
	identityapp "github.com/OWNER/bothy/services/server/internal/identity/app"
	"github.com/OWNER/bothy/services/server/internal/instance"
	"github.com/OWNER/bothy/services/server/internal/kernel/actor"
	"github.com/OWNER/bothy/services/server/internal/kernel/ids"
	"github.com/OWNER/bothy/services/server/internal/kernel/jose"
)

// demoTeam is who a look around meets.
type demoTeam struct {
	// Owner, Member and Agent are handles.
	Owner, Member, Agent string
	// AgentToken is set when the agent was made just now; later starts have it in a file.
	AgentToken string
}

// seedDemo makes the demo team with the use cases that the API uses, so that demo data is
// ordinary data. A team that exists is left alone.
func (r *commandRun) seedDemo(ctx context.Context, password string) (*demoTeam, error) {
	team := &demoTeam{Owner: "mira", Member: "jonas", Agent: "echo"}
	done, err := r.instance.service.SetupComplete(ctx)
	if err != nil || done {
		return team, err
	}
	code, err := r.identity.service.BootstrapOwner(ctx, identityapp.BootstrapInput{Handle: team.Owner, DisplayName: "Mira Sand"})
	if err != nil {
		return nil, fmt.Errorf("prepare the owner: %w", err)
	}
	owner, err := r.enroll(ctx, code.Code, password)
	if err != nil {
		return nil, fmt.Errorf("enroll the owner: %w", err)
	}
	if err := r.skipApproval(owner); err != nil {
		return nil, err
	}
	_, invited, err := r.identity.service.CreateUser(owner, identityapp.CreateUserInput{Handle: team.Member, DisplayName: "Jonas Weil", IssueCode: true})
	if err != nil {
		return nil, fmt.Errorf("make the member: %w", err)
	}
	member, err := r.enroll(ctx, invited.Code, password)
	if err != nil {
		return nil, fmt.Errorf("enroll the member: %w", err)
	}
	if team.AgentToken, err = r.demoAgent(owner, team.Agent); err != nil {
		return nil, err
	}
	return team, r.demoTalk(owner, member)
}

// skipApproval lets anybody who knows the password of the demo sign in on any device: nobody
// sits at the first device of a demo person to approve the next.
func (r *commandRun) skipApproval(owner context.Context) error {
	settings, err := r.instance.service.ReadSettings(owner)
	if err != nil {
		return fmt.Errorf("read the settings: %w", err)
	}
	off := map[string]json.RawMessage{instance.SettingDeviceApproval: json.RawMessage(`"off"`)}
	if _, err := r.instance.service.UpdateSettings(owner, off, settings.Version); err != nil {
		return fmt.Errorf("let further devices in without approval: %w", err)
	}
	return nil
}

// demoAgent makes the agent and lets it answer in the first channel when it is mentioned.
func (r *commandRun) demoAgent(owner context.Context, handle string) (token string, err error) {
	agent, first, err := r.agents.service.Create(owner, agentsapp.NewAgent{
		Handle: handle, DisplayName: "Echo", ToolClass: "chat", Billing: agentsdomain.Billing{BillingMode: agentsdomain.BillingLocal},
		Token: &agentsapp.NewToken{Name: "demo"},
	})
	if err != nil {
		return "", fmt.Errorf("make the demo agent: %w", err)
	}
	channel, err := r.firstChannel(owner)
	if err != nil {
		return "", err
	}
	if _, err := r.chat.channels.SetOperator(owner, channel.ID, channel.Version, chatdomain.OperatorOwn, agent.ID); err != nil {
		return "", fmt.Errorf("make the demo agent operator: %w", err)
	}
	return first.Secret, nil
}

func (r *commandRun) firstChannel(ctx context.Context) (chatdomain.Channel, error) {
	channels, err := r.chat.channels.List(ctx, chatapp.ChannelQuery{Limit: 1})
	if err != nil {
		return chatdomain.Channel{}, fmt.Errorf("find the first channel: %w", err)
	}
	if len(channels) == 0 {
		return chatdomain.Channel{}, fmt.Errorf("find the first channel: there is none")
	}
	return channels[0], nil
}

// enroll redeems a code with a password, as a browser does, and gives the context of the
// person who has just signed in.
func (r *commandRun) enroll(ctx context.Context, code, password string) (context.Context, error) {
	ctx = actor.With(ctx, actor.Anonymous())
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("make a device key: %w", err)
	}
	login := r.identity.proofs.Origin() + "/api/v1/auth/login"
	proof, err := r.proof(key, "POST", login, "")
	if err != nil {
		return nil, err
	}
	begun, err := r.identity.service.BeginLogin(ctx, identityapp.BeginLoginInput{
		Proof: proof, Driver: "enrollment", Code: code,
		Device: identityapp.DeviceInfo{Name: "Demo", Platform: "other", Client: "cli", ClientVersion: "1.0.0"},
	})
	if err != nil {
		return nil, err
	}
	if proof, err = r.proof(key, "POST", login+"/"+begun.Flow.ID.String()+"/complete", ""); err != nil {
		return nil, err
	}
	result, err := r.identity.service.CompleteLogin(ctx, identityapp.CompleteLoginInput{
		Proof: proof, FlowID: begun.Flow.ID, CredentialKind: "password", NewPassword: password,
	})
	if err != nil {
		return nil, err
	}
	me := r.identity.proofs.Origin() + "/api/v1/me"
	if proof, err = r.proof(key, "GET", me, result.AccessToken); err != nil {
		return nil, err
	}
	who, err := r.identity.authenticator.Authenticate(ctx, actor.Credentials{
		Authorization: "DPoP " + result.AccessToken, Proof: proof.Compact, Method: "GET", URL: me,
	})
	if err != nil {
		return nil, err
	}
	return actor.With(ctx, who), nil
}

// proof makes a DPoP proof (RFC 9449) for one request.
func (r *commandRun) proof(key *ecdsa.PrivateKey, method, url, token string) (identityapp.ProofInput, error) {
	public, err := jose.FromPublic(key.Public())
	if err != nil {
		return identityapp.ProofInput{}, fmt.Errorf("read the device key: %w", err)
	}
	claims := map[string]any{
		"jti": ids.New().String(), "htm": method, "htu": url, "iat": r.clock.Now().Unix(), "nonce": r.identity.proofs.Nonce(),
	}
	if token != "" {
		sum := sha256.Sum256([]byte(token))
		claims["ath"] = base64.RawURLEncoding.EncodeToString(sum[:])
	}
	payload, err := json.Marshal(claims)
	if err != nil {
		return identityapp.ProofInput{}, fmt.Errorf("encode the proof: %w", err)
	}
	public.Algorithm = ""
	compact, err := jose.Sign(key, jose.Header{Type: "dpop+jwt", Key: &public}, payload)
	if err != nil {
		return identityapp.ProofInput{}, fmt.Errorf("sign the proof: %w", err)
	}
	return identityapp.ProofInput{Compact: compact, Method: method, URL: url}, nil
}
