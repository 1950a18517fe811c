// SPDX-License-Identifier: Apache-2.0

package httpapi

import (
	"context"
	"io"
	"net/http"

	"github.com/OWNER/bothy/services/server/api/jsontype"
	"github.com/OWNER/bothy/services/server/api/rest"
	"github.com/OWNER/bothy/services/server/internal/instance/app"
	"github.com/OWNER/bothy/services/server/internal/instance/domain"
	"github.com/OWNER/bothy/services/server/internal/kernel/ids"
	"github.com/OWNER/bothy/services/server/internal/platform/httpserver"
)

// UpdateBranding implements the operation of this name.
func (h Handlers) UpdateBranding(ctx context.Context, req rest.UpdateBrandingRequestObject) (rest.UpdateBrandingResponseObject, error) {
	version, err := parseETag(req.Params.IfMatch)
	if err != nil {
		return nil, err
	}
	changes := map[string]*string{}
	for member, v := range map[string]jsontype.Nullable[string]{
		domain.BrandingProductName: req.Body.ProductName, domain.BrandingAccent: req.Body.Accent,
		domain.BrandingLoginMessage: req.Body.LoginMessage, domain.BrandingSupportURL: req.Body.SupportURL,
		domain.BrandingImprintURL: req.Body.ImprintURL, domain.BrandingPrivacyURL: req.Body.PrivacyURL,
	} {
		if v.Set {
			changes[member] = v.Ptr()
		}
	}
	b, err := h.Instance.UpdateBranding(ctx, changes, version)
	if err != nil {
		return nil, err
	}
	return rest.UpdateBranding200JSONResponse{
		Body: toBranding(b), Headers: rest.UpdateBranding200ResponseHeaders{ETag: etag(b.Version)},
	}, nil
}

// ListFeatureFlags implements the operation of this name.
func (h Handlers) ListFeatureFlags(ctx context.Context, _ rest.ListFeatureFlagsRequestObject) (rest.ListFeatureFlagsResponseObject, error) {
	list, err := h.Instance.ListFlags(ctx)
	if err != nil {
		return nil, err
	}
	out := rest.ListFeatureFlags200JSONResponse{Items: make([]rest.FeatureFlag, len(list))}
	for i, f := range list {
		out.Items[i] = toFlag(f)
	}
	return out, nil
}

// UpdateFeatureFlag implements the operation of this name.
func (h Handlers) UpdateFeatureFlag(ctx context.Context, req rest.UpdateFeatureFlagRequestObject) (rest.UpdateFeatureFlagResponseObject, error) {
	version, err := parseETag(req.Params.IfMatch)
	if err != nil {
		return nil, err
	}
	change := app.FlagChange{Percent: req.Body.Percent}
	if req.Body.State != nil {
		state := domain.FlagState(*req.Body.State)
		change.State = &state
	}
	if req.Body.People != nil {
		change.People = &req.Body.People
	}
	if req.Body.Groups != nil {
		change.Groups = &req.Body.Groups
	}
	f, err := h.Instance.UpdateFlag(ctx, req.Key, change, version)
	if err != nil {
		return nil, err
	}
	return rest.UpdateFeatureFlag200JSONResponse{
		Body: toFlag(f), Headers: rest.UpdateFeatureFlag200ResponseHeaders{ETag: etag(f.Version)},
	}, nil
}

func toFlag(f app.FlagView) rest.FeatureFlag {
	out := rest.FeatureFlag{
		Key: f.Flag.Key, Module: f.Registered.Module, Summary: f.Registered.Summary, Default: f.Registered.Default,
		State: rest.FlagState(f.State), People: append([]ids.ID{}, f.People...), Groups: append([]ids.ID{}, f.Groups...),
		Percent: f.Percent, Version: f.Version, UpdatedBy: f.UpdatedBy.Ptr(),
	}
	if !f.UpdatedAt.IsZero() && f.Version > 1 {
		at := jsontype.At(f.UpdatedAt)
		out.UpdatedAt = &at
	}
	return out
}

// ListSigningKeys implements the operation of this name.
func (h Handlers) ListSigningKeys(ctx context.Context, _ rest.ListSigningKeysRequestObject) (rest.ListSigningKeysResponseObject, error) {
	keys, err := h.Instance.ListKeys(ctx)
	if err != nil {
		return nil, err
	}
	return rest.ListSigningKeys200JSONResponse(h.toKeys(keys)), nil
}

// RotateSigningKey implements the operation of this name.
func (h Handlers) RotateSigningKey(ctx context.Context, req rest.RotateSigningKeyRequestObject) (rest.RotateSigningKeyResponseObject, error) {
	keys, err := h.Instance.RotateKey(ctx, req.Purpose, domain.RotationMode(req.Body.Mode))
	if err != nil {
		return nil, err
	}
	return rest.RotateSigningKey200JSONResponse(h.toKeys(keys)), nil
}

func (h Handlers) toKeys(keys []domain.SigningKey) rest.SigningKeyList {
	out := rest.SigningKeyList{Items: make([]rest.SigningKey, len(keys))}
	for i, k := range keys {
		item := rest.SigningKey{
			ID: k.ID, Kid: k.KID, Purpose: k.Purpose, Alg: string(k.Algorithm), State: rest.SigningKeyState(k.State),
			Published: h.Instance.Accepts(k), CreatedAt: jsontype.At(k.CreatedAt), ActivatedAt: jsontype.AtPtr(k.ActivatedAt),
			RetiredAt: jsontype.AtPtr(k.RetiredAt), UnpublishAt: jsontype.AtPtr(k.UnpublishAt),
		}
		if k.RetireReason != "" {
			reason := rest.SigningKeyRetireReason(k.RetireReason)
			item.RetireReason = &reason
		}
		out.Items[i] = item
	}
	return out
}

// The media types of a report: that of the header report-uri, and that of the Reporting API.
const (
	MediaOldReport = "application/csp-report"
	MediaReports   = "application/reports+json"
	// MaxReportBytes bounds a report.
	MaxReportBytes = 16 << 10
)

// SubmitCspReport takes what browsers send. The chain has checked media type and size.
func (h Handlers) SubmitCspReport(w http.ResponseWriter, r *http.Request) {
	if err := h.Instance.AllowReport(r.Context()); err != nil {
		httpserver.WriteError(w, r, err)
		return
	}
	if body, err := io.ReadAll(r.Body); err == nil {
		h.Instance.Report(r.Context(), domain.ReadViolations(body))
	}
	w.WriteHeader(http.StatusNoContent)
}
