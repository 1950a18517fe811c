// SPDX-License-Identifier: Apache-2.0

package system

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"sync"
	"time"
)

// device proves every request with its key (RFC 9449).
type device struct {
	key  *ecdsa.PrivateKey
	x, y string

	mu    sync.Mutex
	nonce string
	token string
}

func newDevice() (*device, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	point, err := key.PublicKey.Bytes()
	if err != nil {
		return nil, err
	}
	const coordinate = 32
	return &device{key: key, x: encode(point[1 : 1+coordinate]), y: encode(point[1+coordinate:])}, nil
}

func encode(b []byte) string { return base64.RawURLEncoding.EncodeToString(b) }

func (d *device) sign(req *http.Request, url string) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	claims := map[string]any{"jti": NewID(), "htm": req.Method, "htu": url, "iat": time.Now().Unix()}
	if d.nonce != "" {
		claims["nonce"] = d.nonce
	}
	if d.token != "" {
		sum := sha256.Sum256([]byte(d.token))
		claims["ath"] = encode(sum[:])
		req.Header.Set("Authorization", "DPoP "+d.token)
	}
	header := map[string]any{"typ": "dpop+jwt", "alg": "ES256", "jwk": map[string]string{"kty": "EC", "crv": "P-256", "x": d.x, "y": d.y}}
	h, err := json.Marshal(header)
	if err != nil {
		return err
	}
	c, err := json.Marshal(claims)
	if err != nil {
		return err
	}
	signed := encode(h) + "." + encode(c)
	digest := sha256.Sum256([]byte(signed))
	r, s, err := ecdsa.Sign(rand.Reader, d.key, digest[:])
	if err != nil {
		return err
	}
	const half = 32
	var signature [2 * half]byte
	r.FillBytes(signature[:half])
	s.FillBytes(signature[half:])
	req.Header.Set("DPoP", signed+"."+encode(signature[:]))
	return nil
}

func (d *device) learn(h http.Header) {
	if nonce := h.Get("DPoP-Nonce"); nonce != "" {
		d.mu.Lock()
		d.nonce = nonce
		d.mu.Unlock()
	}
}

// Enroll redeems a code with a new device of a name and sets a password.
func (i *Installation) Enroll(ctx context.Context, code, device string, h *http.Client) (*Client, error) {
	return enroll(ctx, i.Address, code, device, h)
}

func enroll(ctx context.Context, address, code, device string, h *http.Client) (*Client, error) {
	d, err := newDevice()
	if err != nil {
		return nil, err
	}
	c := &Client{Address: address, device: d, http: h}
	var flow struct {
		FlowID string `json:"flow_id"`
	}
	err = c.Call(ctx, http.MethodPost, "/auth/login", map[string]any{
		"driver": "enrollment", "code": code,
		"device": map[string]any{"name": device, "platform": "linux", "client": "cli", "client_version": "1"},
	}, &flow)
	if err != nil {
		return nil, fmt.Errorf("begin the login: %w", err)
	}
	var result struct {
		AccessToken string `json:"access_token"`
		Principal   struct {
			ID string `json:"id"`
		} `json:"principal"`
	}
	err = c.Call(ctx, http.MethodPost, "/auth/login/"+flow.FlowID+"/complete", map[string]any{
		"credential": map[string]any{"kind": "password", "password": "heather-" + NewID()},
	}, &result)
	if err != nil {
		return nil, fmt.Errorf("complete the login: %w", err)
	}
	d.mu.Lock()
	d.token = result.AccessToken
	d.mu.Unlock()
	c.ID = result.Principal.ID
	return c, nil
}

// NewID makes a UUID of version 7.
func NewID() string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // never fails: the runtime ends the process instead
	ms := time.Now().UnixMilli()
	for i := range 6 {
		b[i] = byte(ms >> (8 * (5 - i)))
	}
	b[6] = b[6]&0x0f | 0x70
	b[8] = b[8]&0x3f | 0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
}
