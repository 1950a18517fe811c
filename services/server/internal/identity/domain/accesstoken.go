// SPDX-License-Identifier: Apache-2.0

package domain

import (
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/OWNER/bothy/services/server/internal/kernel/ids"
)

// Audience is the claim aud of access tokens.
const Audience = "bothy-api"

var (
	// ErrAccessToken means that the claims are not those of an access token of this
	// instance.
	ErrAccessToken = errors.New("not an access token of this instance")
	// ErrAccessTokenExpired means that the token was good and has ended.
	ErrAccessTokenExpired = errors.New("access token has expired")
	// ErrAccessTokenAddress means that the token was made when the instance had another
	// address. Its signature is this instance's, so its session is alive and a new token may
	// be had.
	ErrAccessTokenAddress = errors.New("access token of another address")
)

// AccessClaims are what an access token says. It holds no right, name or address: those
// are read anew at every request.
type AccessClaims struct {
	Issuer      string
	PrincipalID ids.ID
	SessionID   ids.ID
	DeviceID    ids.ID
	SessionKind string
	IssuedAt    time.Time
	ExpiresAt   time.Time
	TokenID     ids.ID
	AuthTime    time.Time
	AMR         []string
	Epoch       int
	JKT         Thumbprint
}

type accessJSON struct {
	Iss      string   `json:"iss"`
	Aud      string   `json:"aud"`
	Sub      ids.ID   `json:"sub"`
	Sid      ids.ID   `json:"sid"`
	Did      *ids.ID  `json:"did,omitempty"`
	Sk       string   `json:"sk"`
	Iat      int64    `json:"iat"`
	Exp      int64    `json:"exp"`
	Jti      ids.ID   `json:"jti"`
	AuthTime int64    `json:"auth_time"`
	AMR      []string `json:"amr"`
	Ep       int      `json:"ep"`
	Cnf      cnfJSON  `json:"cnf"`
}

type cnfJSON struct {
	JKT string `json:"jkt"`
}

// Encode gives the payload to be signed.
func (c AccessClaims) Encode() ([]byte, error) {
	raw, err := json.Marshal(accessJSON{
		Iss: c.Issuer, Aud: Audience, Sub: c.PrincipalID, Sid: c.SessionID, Did: c.DeviceID.Ptr(), Sk: c.SessionKind,
		Iat: c.IssuedAt.Unix(), Exp: c.ExpiresAt.Unix(), Jti: c.TokenID, AuthTime: c.AuthTime.Unix(), AMR: c.AMR,
		Ep: c.Epoch, Cnf: cnfJSON{JKT: c.JKT.String()},
	})
	if err != nil {
		return nil, fmt.Errorf("encode access token: %w", err)
	}
	return raw, nil
}

// ReadAccessClaims reads the payload of a token whose signature was verified. It fails
// with ErrAccessToken, ErrAccessTokenExpired or ErrAccessTokenAddress.
func ReadAccessClaims(payload []byte, issuer string, now time.Time) (AccessClaims, error) {
	var j accessJSON
	if err := json.Unmarshal(payload, &j); err != nil {
		return AccessClaims{}, ErrAccessToken
	}
	jkt, err := ParseThumbprint(j.Cnf.JKT)
	if err != nil || j.Aud != Audience || j.Sub.IsZero() || j.Sid.IsZero() {
		return AccessClaims{}, ErrAccessToken
	}
	if j.Iss != issuer {
		return AccessClaims{}, ErrAccessTokenAddress
	}
	c := AccessClaims{
		Issuer: j.Iss, PrincipalID: j.Sub, SessionID: j.Sid, DeviceID: ids.Deref(j.Did), SessionKind: j.Sk,
		IssuedAt: time.Unix(j.Iat, 0).UTC(), ExpiresAt: time.Unix(j.Exp, 0).UTC(), TokenID: j.Jti,
		AuthTime: time.Unix(j.AuthTime, 0).UTC(), AMR: j.AMR, Epoch: j.Ep, JKT: jkt,
	}
	if !now.Before(c.ExpiresAt) {
		return AccessClaims{}, ErrAccessTokenExpired
	}
	return c, nil
}
