// SPDX-License-Identifier: Apache-2.0

// Package httpapi serves the REST operations of instance.
package httpapi

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/OWNER/bothy/services/server/api/rest"
	"github.com/OWNER/bothy/services/server/internal/instance/app"
	"github.com/OWNER/bothy/services/server/internal/instance/domain"
	"github.com/OWNER/bothy/services/server/internal/kernel/errs"
)

// Handlers has the operations of instance; internal/wire embeds it.
type Handlers struct{ Instance *app.Service }

// JWKSMaxAge is how long clients and proxies may keep the JWKS.
const JWKSMaxAge = 5 * time.Minute

// How long clients and proxies may keep what everybody may read.
var (
	discoveryCache = "max-age=60"
	jwksCache      = fmt.Sprintf("max-age=%d", int(JWKSMaxAge.Seconds()))
)

// GetDiscovery implements the operation of this name.
func (h Handlers) GetDiscovery(ctx context.Context, _ rest.GetDiscoveryRequestObject) (rest.GetDiscoveryResponseObject, error) {
	d, err := h.Instance.ReadDiscovery(ctx)
	if err != nil {
		return nil, err
	}
	body := toDiscovery(d)
	raw, err := json.Marshal(body)
	if err != nil {
		return nil, fmt.Errorf("encode discovery: %w", err)
	}
	sum := sha256.Sum256(raw)
	return rest.GetDiscovery200JSONResponse{Body: body, Headers: rest.GetDiscovery200ResponseHeaders{
		CacheControl: &discoveryCache, ETag: `"` + hex.EncodeToString(sum[:8]) + `"`,
	}}, nil
}

// GetJWKS implements the operation of this name.
func (h Handlers) GetJWKS(ctx context.Context, _ rest.GetJWKSRequestObject) (rest.GetJWKSResponseObject, error) {
	keys, err := h.Instance.JWKS(ctx)
	if err != nil {
		return nil, err
	}
	out := rest.JWKS{Keys: make([]rest.JWK, 0, len(keys))}
	for _, k := range keys {
		item := rest.JWK{Kty: k.KeyType, Kid: k.KeyID, Alg: string(k.Algorithm), Use: k.Use, Crv: k.Curve, X: k.X}
		if k.Y != "" {
			item.Y = &k.Y
		}
		out.Keys = append(out.Keys, item)
	}
	return rest.GetJWKS200JSONResponse{Body: out, Headers: rest.GetJWKS200ResponseHeaders{CacheControl: &jwksCache}}, nil
}

// GetInstance implements the operation of this name.
func (h Handlers) GetInstance(ctx context.Context, _ rest.GetInstanceRequestObject) (rest.GetInstanceResponseObject, error) {
	p, flags, err := h.Instance.ReadInstance(ctx)
	if err != nil {
		return nil, err
	}
	return rest.GetInstance200JSONResponse(toInstance(p, flags)), nil
}

func toInstance(p app.Public, flags map[string]bool) rest.Instance {
	return rest.Instance{
		ID: p.ID, Name: p.Name, ServerVersion: p.ServerVersion, SyncEpoch: p.SyncEpoch, Branding: toBranding(p.Branding),
		Flags: flags, PermissionVersion: p.PermissionVersion,
		Limits: rest.InstanceLimits{
			MaxJSONBodyBytes: p.Limits.MaxJSONBodyBytes, MaxFrameBytes: p.Limits.MaxFrameBytes,
			MaxMessageBytes: p.Limits.MaxMessageBytes, MaxAttachments: p.Limits.MaxAttachments,
			MaxUploadBytes: p.Limits.MaxUploadBytes, PageSizeDefault: p.Limits.PageSizeDefault, PageSizeMax: p.Limits.PageSizeMax,
		},
	}
}

// Snapshot gives the section instance of the snapshot.
func (h Handlers) Snapshot(readOnly, clientMetrics, installHint bool) func(ctx context.Context) (json.RawMessage, error) {
	mode := rest.MaintenanceModeOff
	if readOnly {
		mode = rest.MaintenanceModeReadOnly
	}
	return func(ctx context.Context) (json.RawMessage, error) {
		p, flags, err := h.Instance.ReadInstance(ctx)
		if err != nil {
			return nil, err
		}
		raw, err := json.Marshal(rest.SnapshotInstance{
			Instance: toInstance(p, flags), Maintenance: mode, Web: rest.SnapshotWeb{ClientMetrics: clientMetrics, InstallHint: installHint},
		})
		if err != nil {
			return nil, fmt.Errorf("encode the instance: %w", err)
		}
		return raw, nil
	}
}

// GetInstanceSettings implements the operation of this name.
func (h Handlers) GetInstanceSettings(ctx context.Context, _ rest.GetInstanceSettingsRequestObject) (rest.GetInstanceSettingsResponseObject, error) {
	v, err := h.Instance.ReadSettings(ctx)
	if err != nil {
		return nil, err
	}
	return rest.GetInstanceSettings200JSONResponse{
		Body: toSettings(v), Headers: rest.GetInstanceSettings200ResponseHeaders{ETag: etag(v.Version)},
	}, nil
}

// UpdateInstanceSettings implements the operation of this name.
func (h Handlers) UpdateInstanceSettings(ctx context.Context, req rest.UpdateInstanceSettingsRequestObject) (rest.UpdateInstanceSettingsResponseObject, error) {
	version, err := parseETag(req.Params.IfMatch)
	if err != nil {
		return nil, err
	}
	changes := make(map[string]json.RawMessage, len(*req.Body))
	for key, v := range *req.Body {
		if changes[key], err = json.Marshal(v); err != nil {
			return nil, fmt.Errorf("encode the setting %s: %w", key, err)
		}
	}
	v, err := h.Instance.UpdateSettings(ctx, changes, version)
	if err != nil {
		return nil, err
	}
	return rest.UpdateInstanceSettings200JSONResponse{
		Body: toSettings(v), Headers: rest.UpdateInstanceSettings200ResponseHeaders{ETag: etag(v.Version)},
	}, nil
}

func toDiscovery(d app.Discovery) rest.Discovery {
	out := rest.Discovery{
		InstanceID: d.Public.ID, Name: d.Public.Name, ProductName: d.Public.Branding.ProductName,
		ServerVersion: d.Public.ServerVersion, MinClientVersion: d.MinClient, APIBase: d.APIBase, GatewayURL: d.GatewayURL,
		JWKSURL: d.JWKSURL, SetupComplete: d.SetupComplete, LoginOptions: []rest.LoginOption{},
		PasswordPolicy: rest.PasswordPolicy{MinLength: d.PasswordPolicy.MinLength, MaxLength: d.PasswordPolicy.MaxLength},
		Branding:       toBranding(d.Public.Branding), APIVersion: d.APIVersion, Maintenance: rest.MaintenanceModeOff,
		Limits: rest.DiscoveryLimits{
			MaxJSONBodyBytes: d.Public.Limits.MaxJSONBodyBytes, MaxFrameBytes: d.Public.Limits.MaxFrameBytes,
			MaxMessageBytes: d.Public.Limits.MaxMessageBytes, MaxUploadBytes: d.Public.Limits.MaxUploadBytes,
		},
	}
	if d.ReadOnly {
		out.Maintenance = rest.MaintenanceModeReadOnly
	}
	for _, o := range d.LoginOptions {
		item := rest.LoginOption{Driver: o.Driver, Label: o.Label, ProviderID: o.ProviderID.Ptr()}
		if o.Icon != "" {
			item.Icon = &o.Icon
		}
		out.LoginOptions = append(out.LoginOptions, item)
	}
	return out
}

func toBranding(b app.Branding) rest.Branding {
	return rest.Branding{
		ProductName: b.ProductName, Accent: b.Accent, LoginMessage: b.LoginMessage, SupportURL: b.SupportURL,
		ImprintURL: b.ImprintURL, PrivacyURL: b.PrivacyURL, Version: b.Version,
	}
}

func toSettings(v app.SettingsView) rest.InstanceSettings {
	out := rest.InstanceSettings{Values: v.Values, Schema: make(map[string]rest.SettingSchema, len(v.Schema)), Version: v.Version}
	for _, s := range v.Schema {
		item := rest.SettingSchema{
			Type: rest.SettingSchemaType(s.Type), Default: domain.Written(s.Default), Sensitive: s.Sensitive, Module: s.Module,
		}
		if s.Min != nil || s.Max != nil || len(s.Values) > 0 {
			item.Range = &rest.SettingRange{Min: s.Min, Max: s.Max, Values: s.Values}
		}
		out.Schema[s.Key] = item
	}
	return out
}

func etag(version int64) string { return `"` + strconv.FormatInt(version, 10) + `"` }

func parseETag(s string) (int64, error) {
	text, quoted := strings.CutPrefix(s, `"`)
	text, closed := strings.CutSuffix(text, `"`)
	v, err := strconv.ParseInt(text, 10, 64)
	if !quoted || !closed || err != nil {
		return 0, errs.New(errs.CodeVersionConflict, "If-Match does not name a version of this.")
	}
	return v, nil
}
