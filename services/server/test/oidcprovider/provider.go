// SPDX-License-Identifier: Apache-2.0

package main

import (
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"html/template"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"sync"
	"time"
)

// claims are those of one person or token.
type claims map[string]any

// behaviour is what the provider does differently from a good one. The zero value is good.
type behaviour struct {
	// Claims replace those of the ID token; null removes one.
	Claims claims `json:"claims"`
	// UserInfo replaces the answer of userinfo.
	UserInfo claims `json:"userinfo"`
	// Metadata replaces members of the discovery document; null removes one.
	Metadata claims `json:"metadata"`
	// Algorithm signs with another algorithm: RS256, PS256, EdDSA, HS256 under the text of the
	// public key, or none.
	Algorithm string `json:"alg"`
	// KeyID replaces the kid, Unpublished signs with a key that nobody can fetch.
	KeyID       string `json:"kid"`
	Unpublished bool   `json:"unpublished"`
	// IssParam replaces the parameter iss of the callback; "-" leaves it out.
	IssParam string `json:"iss"`
	// Error is the answer of a person who says no.
	Error string `json:"error"`
	// Status is answered by the endpoints named in Broken: discovery, keys, token, userinfo.
	Status int      `json:"status"`
	Broken []string `json:"broken"`
	// HangMS delays the endpoints named in Slow, Large makes those named in it endless.
	HangMS int      `json:"hang_ms"`
	Slow   []string `json:"slow"`
	Large  []string `json:"large"`
	// Moved names endpoints that redirect.
	Moved []string `json:"moved"`
	// OffsetMS is how far the clock of the provider is ahead.
	OffsetMS int64 `json:"offset_ms"`
	// People are added to those the provider knows.
	People map[string]claims `json:"people"`
}

// grant is a code that was given out.
type grant struct {
	person, nonce, challenge, redirect string
	at                                 time.Time
}

type provider struct {
	issuer, client, secret string

	mu      sync.Mutex
	does    behaviour
	keys    *keyRing
	codes   map[string]grant
	tokens  map[string]string
	fetched map[string]int
}

func newProvider(issuer, client, secret string) (*provider, error) {
	keys, err := newKeyRing()
	return &provider{
		issuer: issuer, client: client, secret: secret, keys: keys, codes: map[string]grant{}, tokens: map[string]string{}, fetched: map[string]int{},
	}, err
}

// people are those every provider knows: one with everything, one without an address, and
// one whose address nobody verified.
func people() map[string]claims {
	return map[string]claims{
		"ana": {"email": "ana@example.org", "email_verified": true, "name": "Ana Lima", "preferred_username": "ana", "groups": []any{"eng", "ops"}, "locale": "pt-PT"},
		"bo":  {"name": "Bo", "preferred_username": "bo"},
		"cy":  {"email": "cy@example.org", "email_verified": false, "name": "Cy", "preferred_username": "cy@example.org"},
	}
}

func (p *provider) routes() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /.well-known/openid-configuration", p.guard("discovery", p.discovery))
	mux.HandleFunc("GET /keys", p.guard("keys", p.jwks))
	mux.HandleFunc("GET /authorize", p.authorize)
	mux.HandleFunc("POST /token", p.guard("token", p.token))
	mux.HandleFunc("GET /userinfo", p.guard("userinfo", p.userinfo))
	mux.HandleFunc("POST /control", p.control)
	mux.HandleFunc("POST /control/rotate", p.rotate)
	mux.HandleFunc("GET /control/fetched", p.counts)
	return mux
}

// guard counts a request and applies what is wrong with the endpoint.
func (p *provider) guard(name string, next http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		p.mu.Lock()
		p.fetched[name]++
		does := p.does
		p.mu.Unlock()
		switch {
		case slices.Contains(does.Slow, name):
			select {
			case <-r.Context().Done():
				return
			case <-time.After(time.Duration(does.HangMS) * time.Millisecond):
			}
			next(w, r)
		case slices.Contains(does.Broken, name):
			w.WriteHeader(does.Status)
		case slices.Contains(does.Moved, name):
			http.Redirect(w, r, "/elsewhere", http.StatusFound)
		case slices.Contains(does.Large, name):
			_, _ = w.Write(make([]byte, 1<<20))
		default:
			next(w, r)
		}
	}
}

func answer(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(v)
}

// override replaces members; null removes them.
func override(base, with claims) claims {
	out := maps.Clone(base)
	for name, value := range with {
		if value == nil {
			delete(out, name)
			continue
		}
		out[name] = value
	}
	return out
}

func (p *provider) discovery(w http.ResponseWriter, _ *http.Request) {
	p.mu.Lock()
	defer p.mu.Unlock()
	answer(w, http.StatusOK, override(claims{
		"issuer": p.issuer, "authorization_endpoint": p.issuer + "/authorize", "token_endpoint": p.issuer + "/token",
		"userinfo_endpoint": p.issuer + "/userinfo", "jwks_uri": p.issuer + "/keys", "response_types_supported": []string{"code"},
		"subject_types_supported": []string{"public"}, "id_token_signing_alg_values_supported": []string{"ES256", "RS256", "PS256", "EdDSA"},
		"token_endpoint_auth_methods_supported": []string{"client_secret_basic", "client_secret_post", "none"},
		"code_challenge_methods_supported":      []string{"S256"}, "authorization_response_iss_parameter_supported": true,
		"claims_supported": []string{"sub", "email", "email_verified", "name", "preferred_username", "groups", "locale"},
	}, p.does.Metadata))
}

func (p *provider) jwks(w http.ResponseWriter, _ *http.Request) {
	p.mu.Lock()
	defer p.mu.Unlock()
	answer(w, http.StatusOK, map[string]any{"keys": p.keys.published()})
}

var page = template.Must(template.New("").Parse(`<!doctype html><title>Test provider</title><h1>Sign in to {{.Client}}</h1>
<p>This provider is for tests. Choose who you are.</p><form>{{range $name, $values := .Query}}{{range $values}}
<input type="hidden" name="{{$name}}" value="{{.}}">{{end}}{{end}}{{range .People}}<p><button name="person" value="{{.}}">{{.}}</button></p>{{end}}</form>`))

// authorize shows the people, or sends the browser back as one of them.
func (p *provider) authorize(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	back, err := url.Parse(q.Get("redirect_uri"))
	if err != nil || back.Host == "" || q.Get("client_id") != p.client || q.Get("response_type") != "code" ||
		q.Get("code_challenge_method") != "S256" || q.Get("code_challenge") == "" || !slices.Contains(slices.Collect(fields(q.Get("scope"))), "openid") {
		http.Error(w, "this is no request of a client", http.StatusBadRequest)
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	known := people()
	maps.Copy(known, p.does.People)
	if q.Get("person") == "" {
		_ = page.Execute(w, map[string]any{"Client": p.client, "Query": q, "People": slices.Sorted(maps.Keys(known))})
		return
	}
	out := url.Values{"state": {q.Get("state")}}
	switch p.does.IssParam {
	case "":
		out.Set("iss", p.issuer)
	case "-":
	default:
		out.Set("iss", p.does.IssParam)
	}
	if p.does.Error != "" {
		out.Set("error", p.does.Error)
	} else {
		code := random()
		p.codes[code] = grant{
			person: q.Get("person"), nonce: q.Get("nonce"), challenge: q.Get("code_challenge"), redirect: q.Get("redirect_uri"), at: time.Now(),
		}
		out.Set("code", code)
	}
	back.RawQuery = out.Encode()
	http.Redirect(w, r, back.String(), http.StatusSeeOther)
}

func fields(text string) func(func(string) bool) {
	return func(yield func(string) bool) {
		for len(text) > 0 {
			i := 0
			for i < len(text) && text[i] != ' ' {
				i++
			}
			if i > 0 && !yield(text[:i]) {
				return
			}
			text = text[min(i+1, len(text)):]
		}
	}
}

func random() string {
	raw := make([]byte, 24)
	_, _ = rand.Read(raw)
	return base64.RawURLEncoding.EncodeToString(raw)
}

const codeTTL = time.Minute

// token trades a code once, for the client that began and nobody else.
func (p *provider) token(w http.ResponseWriter, r *http.Request) {
	if !p.proven(r) {
		answer(w, http.StatusUnauthorized, claims{"error": "invalid_client"})
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	code := r.PostFormValue("code")
	g, known := p.codes[code]
	delete(p.codes, code)
	verifier := sha256.Sum256([]byte(r.PostFormValue("code_verifier")))
	if !known || time.Since(g.at) > codeTTL || r.PostFormValue("grant_type") != "authorization_code" || r.PostFormValue("redirect_uri") != g.redirect ||
		base64.RawURLEncoding.EncodeToString(verifier[:]) != g.challenge {
		answer(w, http.StatusBadRequest, claims{"error": "invalid_grant"})
		return
	}
	id, err := p.idToken(g)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	access := random()
	p.tokens[access] = g.person
	answer(w, http.StatusOK, claims{"access_token": access, "token_type": "Bearer", "expires_in": 60, "id_token": id})
}

// proven checks the client: by header, by form, or by its name alone when it is public.
func (p *provider) proven(r *http.Request) bool {
	id, secret, basic := r.BasicAuth()
	if basic {
		id, _ = url.QueryUnescape(id)
		secret, _ = url.QueryUnescape(secret)
	} else {
		id, secret = r.PostFormValue("client_id"), r.PostFormValue("client_secret")
	}
	public := !basic && secret == "" && p.secret == ""
	return id == p.client && (public || p.secret != "" && subtle.ConstantTimeCompare([]byte(secret), []byte(p.secret)) == 1)
}

func (p *provider) person(name string) claims {
	all := people()
	maps.Copy(all, p.does.People)
	c := claims{"sub": "subject-of-" + name}
	maps.Copy(c, all[name])
	return c
}

func (p *provider) idToken(g grant) (string, error) {
	now := time.Now().Add(time.Duration(p.does.OffsetMS) * time.Millisecond)
	c := p.person(g.person)
	maps.Copy(c, claims{
		"iss": p.issuer, "aud": p.client, "iat": now.Unix(), "exp": now.Add(5 * time.Minute).Unix(), "nonce": g.nonce, "auth_time": now.Unix(),
	})
	token, err := p.keys.sign(override(c, p.does.Claims), p.does)
	if err != nil {
		return "", fmt.Errorf("sign: %w", err)
	}
	return token, nil
}

func (p *provider) userinfo(w http.ResponseWriter, r *http.Request) {
	p.mu.Lock()
	defer p.mu.Unlock()
	const scheme = "Bearer "
	header := r.Header.Get("Authorization")
	person, known := p.tokens[header[min(len(scheme), len(header)):]]
	if !known {
		answer(w, http.StatusUnauthorized, claims{"error": "invalid_token"})
		return
	}
	answer(w, http.StatusOK, override(p.person(person), p.does.UserInfo))
}

func (p *provider) control(w http.ResponseWriter, r *http.Request) {
	var next behaviour
	if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, 1<<20)).Decode(&next); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.does = next
}

func (p *provider) rotate(w http.ResponseWriter, _ *http.Request) {
	keys, err := newKeyRing()
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.keys = keys
}

func (p *provider) counts(w http.ResponseWriter, _ *http.Request) {
	p.mu.Lock()
	defer p.mu.Unlock()
	answer(w, http.StatusOK, p.fetched)
}
