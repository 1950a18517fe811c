// SPDX-License-Identifier: Apache-2.0

package httpapi

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"

	"github.com/OWNER/bothy/services/server/api/jsontype"
	"github.com/OWNER/bothy/services/server/api/rest"
	"github.com/OWNER/bothy/services/server/internal/identity/app"
	"github.com/OWNER/bothy/services/server/internal/identity/domain"
	"github.com/OWNER/bothy/services/server/internal/kernel/ids"
)

// ListPasskeys implements rest.StrictServerInterface.
func (h *Handlers) ListPasskeys(ctx context.Context, _ rest.ListPasskeysRequestObject) (rest.ListPasskeysResponseObject, error) {
	list, err := h.service.ListPasskeys(ctx)
	if err != nil {
		return nil, err
	}
	out := rest.ListPasskeys200JSONResponse{Items: make([]rest.Passkey, len(list))}
	for i, p := range list {
		out.Items[i] = passkey(p)
	}
	return out, nil
}

// BeginPasskey implements rest.StrictServerInterface.
func (h *Handlers) BeginPasskey(ctx context.Context, _ rest.BeginPasskeyRequestObject) (rest.BeginPasskeyResponseObject, error) {
	request, err := h.service.BeginPasskey(ctx)
	if err != nil {
		return nil, err
	}
	options, err := passkeyOptions(&request)
	return rest.BeginPasskey201JSONResponse{PasskeyOptions: options, ExpiresAt: jsontype.At(request.ExpiresAt)}, err
}

// RegisterPasskey implements rest.StrictServerInterface.
func (h *Handlers) RegisterPasskey(ctx context.Context, r rest.RegisterPasskeyRequestObject) (rest.RegisterPasskeyResponseObject, error) {
	p, err := h.service.RegisterPasskey(ctx, r.Body.Name, r.Body.Passkey)
	if err != nil {
		return nil, err
	}
	return rest.RegisterPasskey201JSONResponse(passkey(p)), nil
}

// RenamePasskey implements rest.StrictServerInterface.
func (h *Handlers) RenamePasskey(ctx context.Context, r rest.RenamePasskeyRequestObject) (rest.RenamePasskeyResponseObject, error) {
	p, err := h.service.RenamePasskey(ctx, r.PasskeyID, r.Body.Name)
	if err != nil {
		return nil, err
	}
	return rest.RenamePasskey200JSONResponse(passkey(p)), nil
}

// RevokePasskey implements rest.StrictServerInterface.
func (h *Handlers) RevokePasskey(ctx context.Context, r rest.RevokePasskeyRequestObject) (rest.RevokePasskeyResponseObject, error) {
	if err := h.service.RevokePasskey(ctx, ids.ID{}, r.PasskeyID); err != nil {
		return nil, err
	}
	return rest.RevokePasskey204Response{}, nil
}

// RevokeUserPasskey implements rest.StrictServerInterface.
func (h *Handlers) RevokeUserPasskey(ctx context.Context, r rest.RevokeUserPasskeyRequestObject) (rest.RevokeUserPasskeyResponseObject, error) {
	if err := h.service.RevokePasskey(ctx, r.UserID, r.PasskeyID); err != nil {
		return nil, err
	}
	return rest.RevokeUserPasskey204Response{}, nil
}

// RemovePassword implements rest.StrictServerInterface.
func (h *Handlers) RemovePassword(ctx context.Context, _ rest.RemovePasswordRequestObject) (rest.RemovePasswordResponseObject, error) {
	if err := h.service.RemovePassword(ctx); err != nil {
		return nil, err
	}
	return rest.RemovePassword204Response{}, nil
}

func passkey(p app.Passkey) rest.Passkey {
	return rest.Passkey{
		ID: p.ID, Name: p.Name, BackedUp: p.BackedUp, Transports: p.Transports, CreatedAt: jsontype.At(p.CreatedAt),
		LastUsedAt: jsontype.AtPtr(p.LastUsedAt),
	}
}

// bytesText is how WebAuthn writes bytes in JSON: base64url without padding.
type bytesText []byte

// MarshalText implements encoding.TextMarshaler.
func (b bytesText) MarshalText() ([]byte, error) {
	return base64.RawURLEncoding.AppendEncode(nil, b), nil
}

const publicKeyType = "public-key"

type credentialDescriptor struct {
	Type       string    `json:"type"`
	ID         bytesText `json:"id"`
	Transports []string  `json:"transports,omitempty"`
}

// requestOptions is PublicKeyCredentialRequestOptionsJSON of WebAuthn Level 3.
type requestOptions struct {
	Challenge        bytesText              `json:"challenge"`
	TimeoutMs        int64                  `json:"timeout"`
	RPID             string                 `json:"rpId"`
	AllowCredentials []credentialDescriptor `json:"allowCredentials"`
	UserVerification string                 `json:"userVerification"`
}

// creationOptions is PublicKeyCredentialCreationOptionsJSON of WebAuthn Level 3.
type creationOptions struct {
	RP                     relyingParty           `json:"rp"`
	User                   creationUser           `json:"user"`
	Challenge              bytesText              `json:"challenge"`
	PubKeyCredParams       []credentialParameter  `json:"pubKeyCredParams"`
	TimeoutMs              int64                  `json:"timeout"`
	ExcludeCredentials     []credentialDescriptor `json:"excludeCredentials"`
	AuthenticatorSelection authenticatorSelection `json:"authenticatorSelection"`
	Attestation            string                 `json:"attestation"`
}

type relyingParty struct {
	ID   string `json:"id"`
	Name string `json:"name"`
}

type creationUser struct {
	ID          bytesText `json:"id"`
	Name        string    `json:"name"`
	DisplayName string    `json:"displayName"`
}

type credentialParameter struct {
	Type string `json:"type"`
	Alg  int    `json:"alg"`
}

type authenticatorSelection struct {
	ResidentKey        string `json:"residentKey"`
	RequireResidentKey bool   `json:"requireResidentKey"`
	UserVerification   string `json:"userVerification"`
}

// passkeyOptions writes what a browser hands to the authenticator; nil without a request.
func passkeyOptions(r *app.PasskeyRequest) (json.RawMessage, error) {
	if r == nil {
		return nil, nil
	}
	var options any = requestOptions{
		Challenge: r.Challenge[:], TimeoutMs: domain.PasskeyTimeout.Milliseconds(), RPID: r.RelyingPartyID,
		AllowCredentials: descriptors(r.Known), UserVerification: "required",
	}
	if n := r.New; n != nil {
		options = creationOptions{
			RP:        relyingParty{ID: r.RelyingPartyID, Name: n.InstanceName},
			User:      creationUser{ID: domain.UserHandle(n.PrincipalID), Name: n.Handle, DisplayName: n.DisplayName},
			Challenge: r.Challenge[:], PubKeyCredParams: parameters(), TimeoutMs: domain.PasskeyTimeout.Milliseconds(),
			ExcludeCredentials:     descriptors(r.Known),
			AuthenticatorSelection: authenticatorSelection{ResidentKey: "required", RequireResidentKey: true, UserVerification: "required"},
			Attestation:            "none",
		}
	}
	raw, err := json.Marshal(options)
	if err != nil {
		return nil, fmt.Errorf("encode the options of a passkey: %w", err)
	}
	return raw, nil
}

func descriptors(known []app.Passkey) []credentialDescriptor {
	out := make([]credentialDescriptor, len(known))
	for i, p := range known {
		out[i] = credentialDescriptor{Type: publicKeyType, ID: p.CredentialID, Transports: p.Transports}
	}
	return out
}

func parameters() []credentialParameter {
	var out []credentialParameter
	for _, alg := range domain.PasskeyAlgorithms() {
		out = append(out, credentialParameter{Type: publicKeyType, Alg: alg})
	}
	return out
}
