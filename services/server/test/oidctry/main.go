// SPDX-License-Identifier: Apache-2.0

// Command oidctry follows the guide "Sign in with OpenID Connect" against a running server and
// the provider of ../oidcprovider: an owner connects the provider and has it tried, then a
// person signs in by it. It prints each step with what came back, for a person to read.
//
//	go run ./test/oidctry -server http://127.0.0.1:8090 -owner mira -password ...
package main

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/OWNER/bothy/services/server/internal/kernel/ids"
	"github.com/OWNER/bothy/services/server/internal/kernel/jose"
)

type body = map[string]any

var device = body{"name": "oidctry", "platform": "other", "client": "cli", "client_version": "1.0.0"}

func main() {
	server := flag.String("server", "http://127.0.0.1:8080", "public address of the server")
	owner := flag.String("owner", "", "handle of an owner")
	password := flag.String("password", "", "her password")
	issuer := flag.String("issuer", "http://127.0.0.1:9400", "address of the provider")
	person := flag.String("person", "ana", "who signs in at the provider")
	flag.Parse()
	if err := run(context.Background(), *server, *owner, *password, *issuer, *person); err != nil {
		fmt.Fprintln(os.Stderr, "oidctry:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, server, owner, password, issuer, person string) error {
	admin, err := newClient(server)
	if err != nil {
		return err
	}
	flow, err := admin.call(ctx, "POST", "/auth/login", body{"driver": "local", "device": device})
	if err != nil {
		return fmt.Errorf("begin the login of the owner: %w", err)
	}
	in, err := admin.call(ctx, "POST", "/auth/login/"+text(flow, "flow_id")+"/complete", body{"login": owner, "password": password})
	if err != nil {
		return fmt.Errorf("sign in as owner: %w", err)
	}
	if admin.token = text(in, "access_token"); admin.token == "" {
		return errors.New("the device of the owner waits for approval: approve it where she is signed in, or set auth.device_approval to off")
	}
	provider, err := connect(ctx, admin, issuer)
	if err != nil {
		return err
	}
	return signIn(ctx, server, provider, person)
}

// connect makes the provider, or finds the one that an earlier run has made, and tries it.
func connect(ctx context.Context, admin *client, issuer string) (string, error) {
	made, err := admin.call(ctx, "POST", "/identity-providers", body{
		"kind": "oidc", "key": "try", "display_name": "Test provider", "issuer": issuer, "client_id": "bothy",
		"client_auth": "client_secret_basic", "client_secret_ref": "file:<secrets.dir>/oidc_try", "provisioning": "auto",
		"claims": body{"groups": "groups"},
	})
	if err != nil && !strings.Contains(err.Error(), "key_taken") {
		return "", fmt.Errorf("connect the provider: %w", err)
	}
	if err != nil {
		list, err := admin.call(ctx, "GET", "/identity-providers", nil)
		if err != nil {
			return "", fmt.Errorf("list the providers: %w", err)
		}
		for _, one := range list["items"].([]any) {
			if p := one.(body); p["key"] == "try" {
				made = p
			}
		}
	}
	show("connected", made, "id", "key", "issuer", "redirect_uri")
	tried, err := admin.call(ctx, "POST", "/identity-providers/"+text(made, "id")+"/test", nil)
	if err != nil {
		return "", fmt.Errorf("try the provider: %w", err)
	}
	show("tried", tried, "keys", "problems")
	return text(made, "id"), nil
}

// signIn is a new device on which the person signs in by the provider.
func signIn(ctx context.Context, server, provider, person string) error {
	c, err := newClient(server)
	if err != nil {
		return err
	}
	flow, err := c.call(ctx, "POST", "/auth/login", body{"driver": "oidc", "provider_id": provider, "device": device})
	if err != nil {
		return fmt.Errorf("begin the login: %w", err)
	}
	show("begun", flow, "flow_id", "authorization_url")
	callback, err := c.follow(ctx, text(flow, "authorization_url")+"&person="+url.QueryEscape(person))
	if err != nil {
		return fmt.Errorf("at the provider: %w", err)
	}
	back, err := c.follow(ctx, callback)
	if err != nil {
		return fmt.Errorf("back at the server: %w", err)
	}
	fmt.Println("the browser ends at", back)
	_, query, _ := strings.Cut(back, "?")
	members, err := url.ParseQuery(query)
	if err != nil {
		return fmt.Errorf("read where the browser ends: %w", err)
	}
	in, err := c.call(ctx, "POST", "/auth/login/"+text(flow, "flow_id")+"/complete", body{"result_code": members.Get("result")})
	if err != nil {
		return fmt.Errorf("sign in: %w", err)
	}
	if text(in, "status") == "device_pending" {
		show("this device waits for approval", in, "verification_code")
		return nil
	}
	c.token = text(in, "access_token")
	self, err := c.call(ctx, "GET", "/me", nil)
	if err != nil {
		return fmt.Errorf("read who is signed in: %w", err)
	}
	show("signed in", self, "handle", "display_name", "email", "login")
	return nil
}

func text(b body, name string) string {
	s, _ := b[name].(string)
	return s
}

func show(what string, b body, members ...string) {
	fmt.Println(what)
	for _, m := range members {
		raw, _ := json.Marshal(b[m]) //nolint:errchkjson // It was read from JSON.
		fmt.Printf("  %s: %s\n", m, raw)
	}
}

// client is a device: it signs its requests and keeps the cookies of its browser.
type client struct {
	server, nonce, token string
	key                  *ecdsa.PrivateKey
	public               jose.JWK
	cookies              []*http.Cookie
	http                 *http.Client
}

func newClient(server string) (*client, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("make a key: %w", err)
	}
	public, err := jose.FromPublic(&key.PublicKey)
	return &client{server: strings.TrimSuffix(server, "/"), key: key, public: public, http: &http.Client{
		Timeout: 20 * time.Second, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}, err
}

// call sends a request, once more with the nonce that the server hands out.
func (c *client) call(ctx context.Context, method, path string, in body) (body, error) {
	out, status, err := c.once(ctx, method, path, in)
	if err == nil && text(out, "code") == "use_dpop_nonce" {
		out, status, err = c.once(ctx, method, path, in)
	}
	if err == nil && status >= http.StatusBadRequest {
		err = fmt.Errorf("%d %v %v: %v %v", status, out["code"], out["reason"], out["title"], out["errors"])
	}
	return out, err
}

func (c *client) once(ctx context.Context, method, path string, in body) (body, int, error) {
	raw, err := json.Marshal(in)
	if err != nil {
		return nil, 0, fmt.Errorf("encode: %w", err)
	}
	if in == nil {
		raw = nil
	}
	address := c.server + "/api/v1" + path
	r, err := http.NewRequestWithContext(ctx, method, address, bytes.NewReader(raw))
	if err != nil {
		return nil, 0, fmt.Errorf("make a request: %w", err)
	}
	if in != nil {
		r.Header.Set("Content-Type", "application/json")
	}
	if err := c.sign(r, method, address); err != nil {
		return nil, 0, err
	}
	answer, err := c.http.Do(r)
	if err != nil {
		return nil, 0, fmt.Errorf("send: %w", err)
	}
	defer func() { _ = answer.Body.Close() }()
	if nonce := answer.Header.Get("DPoP-Nonce"); nonce != "" {
		c.nonce = nonce
	}
	c.cookies = append(c.cookies, answer.Cookies()...)
	got, err := io.ReadAll(answer.Body)
	if err != nil {
		return nil, 0, fmt.Errorf("read: %w", err)
	}
	out := body{}
	if err := json.Unmarshal(got, &out); len(got) > 0 && err != nil {
		return nil, 0, fmt.Errorf("read the answer: %w", err)
	}
	return out, answer.StatusCode, nil
}

// sign adds the proof of the device (RFC 9449) and, once signed in, the access token.
func (c *client) sign(r *http.Request, method, address string) error {
	claims := body{"jti": ids.New().String(), "htm": method, "htu": address, "iat": time.Now().Unix()}
	if c.nonce != "" {
		claims["nonce"] = c.nonce
	}
	if c.token != "" {
		sum := sha256.Sum256([]byte(c.token))
		claims["ath"] = base64.RawURLEncoding.EncodeToString(sum[:])
		r.Header.Set("Authorization", "DPoP "+c.token)
	}
	payload, err := json.Marshal(claims)
	if err != nil {
		return fmt.Errorf("encode a proof: %w", err)
	}
	proof, err := jose.Sign(c.key, jose.Header{Type: "dpop+jwt", Key: &c.public}, payload)
	r.Header.Set("DPoP", proof)
	return err
}

// follow is the browser: it goes to an address and gives where it is sent from there.
func (c *client) follow(ctx context.Context, address string) (string, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, address, http.NoBody)
	if err != nil {
		return "", fmt.Errorf("make a request: %w", err)
	}
	if strings.HasPrefix(address, c.server) {
		for _, one := range c.cookies {
			r.AddCookie(one)
		}
	}
	answer, err := c.http.Do(r)
	if err != nil {
		return "", fmt.Errorf("go there: %w", err)
	}
	defer func() { _ = answer.Body.Close() }()
	if answer.StatusCode != http.StatusSeeOther {
		return "", fmt.Errorf("answers %d", answer.StatusCode)
	}
	return answer.Header.Get("Location"), nil
}
