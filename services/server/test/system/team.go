// SPDX-License-Identifier: Apache-2.0

package system

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"golang.org/x/sync/errgroup"
)

// Team is who and what a test works with.
type Team struct {
	// People have API tokens and may write in every channel of the space.
	People  []*Client
	SpaceID string
	// Channels are open to everyone.
	Channels []Channel
}

// Channel is a text channel with its main thread.
type Channel struct {
	ID       string `json:"id"`
	ThreadID string `json:"main_thread_id"`
}

// ownerScopes and personScopes are what the API tokens of a test may do.
var (
	personScopes = []string{
		"instance.read", "identity.read", "authz.read", "chat.read", "messaging.read", "messaging.write", "sync.read", "sync.write",
		"gateway.read", "gateway.write", "agents.read", "runs.read", "runs.write",
	}
	ownerScopes = append([]string{"instance.admin", "identity.admin", "identity.write", "authz.admin", "chat.admin", "agents.admin"}, personScopes...)
)

const (
	connections   = 128
	tokenLifetime = 30 * 24 * time.Hour
	// logins is how many people log in at once; a password costs tens of milliseconds of a core.
	logins = 2
)

// Populate logs the owner in and makes people with API tokens, a space, and channels that everybody may write in.
// A server must run.
func (i *Installation) Populate(ctx context.Context, people, channels int) (*Team, error) {
	h := NewHTTPClient(connections)
	session, err := enroll(ctx, i.Address, i.code, "load", h)
	if err != nil {
		return nil, fmt.Errorf("the owner: %w", err)
	}
	if i.Owner, err = tokenFor(ctx, session, ownerScopes); err != nil {
		return nil, fmt.Errorf("the owner: %w", err)
	}
	i.Owner.device = nil
	i.session = session
	team := &Team{People: make([]*Client, people)}
	group, inner := errgroup.WithContext(ctx)
	group.SetLimit(logins)
	for n := range people {
		group.Go(func() (err error) {
			if team.People[n], err = i.person(inner, n, h); err != nil {
				return fmt.Errorf("person %d: %w", n, err)
			}
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	var space struct {
		ID string `json:"id"`
	}
	if err := i.Owner.Call(ctx, http.MethodPost, "/spaces", map[string]any{"name": "Load"}, &space); err != nil {
		return nil, err
	}
	team.SpaceID = space.ID
	if _, err := i.GrantEveryone(ctx, "space", space.ID, "trigger"); err != nil {
		return nil, err
	}
	for n := range channels {
		c, err := i.AddChannel(ctx, space.ID, fmt.Sprintf("load-%d", n))
		if err != nil {
			return nil, err
		}
		team.Channels = append(team.Channels, c)
	}
	return team, nil
}

// AddChannel makes a text channel that takes the rights of its space.
func (i *Installation) AddChannel(ctx context.Context, spaceID, name string) (Channel, error) {
	var c Channel
	err := i.Owner.Call(ctx, http.MethodPost, "/spaces/"+spaceID+"/channels", map[string]any{"kind": "text", "name": name}, &c)
	return c, err
}

// person makes somebody, logs them in and gives them an API token.
func (i *Installation) person(ctx context.Context, n int, h *http.Client) (*Client, error) {
	var created struct {
		Enrollment struct {
			Code string `json:"code"`
		} `json:"enrollment"`
	}
	err := i.Owner.Call(ctx, http.MethodPost, "/users", map[string]any{
		"handle": fmt.Sprintf("person%d", n), "display_name": fmt.Sprintf("Person %d", n), "issue_code": true,
	}, &created)
	if err != nil {
		return nil, err
	}
	session, err := enroll(ctx, i.Address, created.Enrollment.Code, "load", h)
	if err != nil {
		return nil, err
	}
	return tokenFor(ctx, session, personScopes)
}

func tokenFor(ctx context.Context, session *Client, scopes []string) (*Client, error) {
	var token struct {
		Secret string `json:"secret"`
	}
	err := session.Call(ctx, http.MethodPost, "/tokens", map[string]any{
		"name": "load", "scopes": scopes, "expires_at": time.Now().Add(tokenLifetime).UTC().Format("2006-01-02T15:04:05.000Z"),
	}, &token)
	if err != nil {
		return nil, err
	}
	return &Client{Address: session.Address, ID: session.ID, Token: token.Secret, http: session.http}, nil
}

// GrantEveryone gives all people a right and returns the grant.
func (i *Installation) GrantEveryone(ctx context.Context, kind, id, level string) (string, error) {
	var groups struct {
		Items []struct {
			ID   string `json:"id"`
			Kind string `json:"kind"`
		} `json:"items"`
	}
	if err := i.Owner.Call(ctx, http.MethodGet, "/groups", nil, &groups); err != nil {
		return "", err
	}
	for _, g := range groups.Items {
		if g.Kind == "everyone" {
			return i.grant(ctx, "group", g.ID, kind, id, level)
		}
	}
	return "", fmt.Errorf("there is no group of everyone")
}

// Grant gives a principal a right and returns the grant.
func (i *Installation) Grant(ctx context.Context, principalID, kind, id, level string) (string, error) {
	return i.grant(ctx, "principal", principalID, kind, id, level)
}

func (i *Installation) grant(ctx context.Context, subjectKind, subject, kind, id, level string) (string, error) {
	var grant struct {
		ID string `json:"id"`
	}
	// Rights are given with the session: some of them ask for a fresh login, which a token never is.
	err := i.session.Call(ctx, http.MethodPost, "/grants", map[string]any{
		"subject": map[string]any{"kind": subjectKind, "id": subject}, "target": map[string]any{"kind": kind, "id": id}, "level": level,
	}, &grant)
	return grant.ID, err
}

// Revoke takes a right away.
func (i *Installation) Revoke(ctx context.Context, grantID string) error {
	var grant struct {
		Version int64 `json:"version"`
	}
	if err := i.session.Call(ctx, http.MethodGet, "/grants/"+grantID, nil, &grant); err != nil {
		return err
	}
	return i.session.Call(ctx, http.MethodDelete, "/grants/"+grantID, nil, nil)
}
