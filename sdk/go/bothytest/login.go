// SPDX-License-Identifier: Apache-2.0

package bothytest

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"math/big"
	"net/http"
	"strings"
	"time"

	bothy "github.com/OWNER/bothy/sdk/go"
	"github.com/OWNER/bothy/sdk/go/api"
)

// nonce makes a nonce for proofs. The caller holds the lock.
func (s *Server) nonce() string {
	n := bothy.NewID()
	s.nonces[n] = true
	return n
}

// ForgetNonces makes every proof of earlier nonces stale.
func (s *Server) ForgetNonces() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.nonces = map[string]bool{}
	s.nonce()
}

// ExpireAccess ends the access token of the person; the session goes on.
func (s *Server) ExpireAccess() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.access = ""
}

// EndSession ends the session of the person.
func (s *Server) EndSession() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.access, s.refresh = "", ""
}

type proof struct {
	Type  string            `json:"typ"`
	Alg   string            `json:"alg"`
	Key   map[string]string `json:"jwk"`
	ID    string            `json:"jti"`
	Verb  string            `json:"htm"`
	URL   string            `json:"htu"`
	At    int64             `json:"iat"`
	Nonce string            `json:"nonce"`
	Hash  string            `json:"ath"`
}

// read checks the signature of a proof, its method, its URL and that it was not used before.
func (s *Server) read(compact, method, url string) (proof, bool) {
	var p proof
	parts := strings.Split(compact, ".")
	if len(parts) != 3 {
		return p, false
	}
	for _, part := range parts[:2] {
		text, err := base64.RawURLEncoding.DecodeString(part)
		if err != nil || json.Unmarshal(text, &p) != nil {
			return p, false
		}
	}
	point := []byte{4}
	for _, name := range []string{"x", "y"} {
		n, err := base64.RawURLEncoding.DecodeString(p.Key[name])
		if err != nil {
			return p, false
		}
		point = append(point, n...)
	}
	key, err := ecdsa.ParseUncompressedPublicKey(elliptic.P256(), point)
	signature, sigErr := base64.RawURLEncoding.DecodeString(parts[2])
	if err != nil || sigErr != nil || len(signature) != 64 {
		return p, false
	}
	digest := sha256.Sum256([]byte(parts[0] + "." + parts[1]))
	ok := ecdsa.Verify(key, digest[:], new(big.Int).SetBytes(signature[:32]), new(big.Int).SetBytes(signature[32:])) &&
		p.Type == "dpop+jwt" && p.Alg == "ES256" && p.Verb == method && p.URL == url && !s.proofs[p.ID] && p.ID != ""
	s.proofs[p.ID] = true
	return p, ok
}

// proven checks a proof for a token.
func (s *Server) proven(compact, method, url, token string) bool {
	p, ok := s.read(compact, method, url)
	sum := sha256.Sum256([]byte(token))
	return ok && s.nonces[p.Nonce] && p.Hash == b64(sum[:]) && token == s.access && token != ""
}

// demand checks the proof of a request; it answers the problem if something is wrong.
func (s *Server) demand(r *http.Request, token string) *api.Problem {
	p, ok := s.read(r.Header.Get("DPoP"), r.Method, s.http.URL+r.URL.Path)
	sum := sha256.Sum256([]byte(token))
	switch {
	case !ok, token != "" && p.Hash != b64(sum[:]):
		s.broken("invalid proof for %s %s", r.Method, r.URL.Path)
		return problem(http.StatusUnauthorized, api.ErrorCodeInvalidDpopProof, "")
	case !s.nonces[p.Nonce]:
		if len(s.nonces) == 0 {
			s.nonce()
		}
		return problem(http.StatusUnauthorized, api.ErrorCodeUseDpopNonce, "")
	}
	return nil
}

func (s *Server) authenticate(r *http.Request) *api.Problem {
	scheme, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	switch {
	case scheme == "Bearer" && token == s.Token:
		return nil
	case scheme == "DPoP":
		if p := s.demand(r, token); p != nil {
			return p
		}
		if token == s.access && token != "" {
			return nil
		}
		return problem(http.StatusUnauthorized, api.ErrorCodeTokenExpired, "")
	}
	return problem(http.StatusUnauthorized, api.ErrorCodeUnauthenticated, "")
}

func (s *Server) beginLogin(r *http.Request, body []byte) (int, any) {
	if p := s.demand(r, ""); p != nil {
		return p.Status, p
	}
	var in api.BeginLoginRequest
	if err := strict(body, &in); err != nil {
		s.broken("beginLogin: %v", err)
		return http.StatusBadRequest, problem(http.StatusBadRequest, api.ErrorCodeValidationFailed, "")
	}
	return http.StatusCreated, api.LoginFlow{FlowID: bothy.NewID(), ExpiresAt: time.Now().Add(time.Minute)}
}

// Password is what the person's login takes.
const Password = "correct horse battery"

func (s *Server) completeLogin(r *http.Request, body []byte) (int, any) {
	if p := s.demand(r, ""); p != nil {
		return p.Status, p
	}
	var in api.CompleteLoginRequest
	if err := strict(body, &in); err != nil {
		s.broken("completeLogin: %v", err)
		return http.StatusBadRequest, problem(http.StatusBadRequest, api.ErrorCodeValidationFailed, "")
	}
	if in.Password != nil && *in.Password != Password {
		return http.StatusUnauthorized, problem(http.StatusUnauthorized, api.ErrorCodeUnauthenticated, "login_failed")
	}
	return http.StatusOK, s.tokens()
}

func (s *Server) tokens() api.LoginResult {
	s.access, s.refresh = "access-"+bothy.NewID(), "bothy_rt_"+bothy.NewID()
	return api.LoginResult{
		AccessToken: s.access, RefreshToken: s.refresh, ExpiresInMs: 600000, Status: api.LoginResultStatusOk,
		Principal: &api.DirectoryEntry{ID: s.PersonID, Kind: api.PrincipalKindPerson},
		Device:    api.DeviceRef{ID: bothy.NewID()}, Session: api.SessionTimes{ID: bothy.NewID()},
	}
}

func (s *Server) refreshToken(r *http.Request, body []byte) (int, any) {
	if p := s.demand(r, ""); p != nil {
		return p.Status, p
	}
	var in api.RefreshRequest
	if err := strict(body, &in); err != nil || in.RefreshToken != s.refresh || s.refresh == "" {
		return http.StatusUnauthorized, problem(http.StatusUnauthorized, api.ErrorCodeUnauthenticated, "session_ended")
	}
	return http.StatusOK, s.tokens()
}

func (s *Server) createMessage(r *http.Request, body []byte) (int, any) {
	var in api.CreateMessageRequest
	if err := strict(body, &in); err != nil || in.ClientMsgID == "" {
		s.broken("createMessage: %v", err)
		return http.StatusBadRequest, problem(http.StatusBadRequest, api.ErrorCodeValidationFailed, "")
	}
	m := api.MessageWritten{ID: bothy.NewID(), ThreadID: r.PathValue("thread"), Content: in.Content, ClientMsgID: &in.ClientMsgID, CreatedAt: time.Now().UTC(), Version: 1}
	s.append(entry{envelope: api.EventEnvelope{
		EventID: bothy.NewID(), Type: "message.created", OccurredAt: m.CreatedAt, Actor: api.EventActor{Kind: api.ActorKindPerson, ID: &s.PersonID},
		Data: encode(map[string]any{"message": m}),
	}})
	return http.StatusCreated, m
}
