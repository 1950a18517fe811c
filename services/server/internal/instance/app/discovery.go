// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"fmt"
	"strings"

	"github.com/OWNER/bothy/services/server/internal/instance"
	"github.com/OWNER/bothy/services/server/internal/kernel/authorize"
	"github.com/OWNER/bothy/services/server/internal/kernel/ids"
	"github.com/OWNER/bothy/services/server/internal/kernel/paging"
)

const (
	apiVersion = "1"
	apiPath    = "/api/v1"
)

// Branding is how the instance presents itself.
type Branding struct {
	ProductName  string  `json:"product_name"`
	Accent       string  `json:"accent"`
	LoginMessage string  `json:"login_message"`
	SupportURL   *string `json:"support_url"`
	ImprintURL   *string `json:"imprint_url"`
	PrivacyURL   *string `json:"privacy_url"`
	// Logo is nil: the instance has none of its own.
	Logo    *struct{} `json:"logo"`
	Version int64     `json:"version"`
}

// Limits are what clients keep by themselves.
type Limits struct {
	MaxJSONBodyBytes int64  `json:"max_json_body_bytes"`
	MaxFrameBytes    int64  `json:"max_frame_bytes"`
	MaxMessageBytes  int64  `json:"max_message_bytes"`
	MaxAttachments   int    `json:"max_attachments"`
	MaxUploadBytes   *int64 `json:"max_upload_bytes"`
	PageSizeDefault  int    `json:"page_size_default"`
	PageSizeMax      int    `json:"page_size_max"`
}

// Public is what every member may know of the instance, and the payload of its event.
type Public struct {
	ID                ids.ID   `json:"id"`
	Name              string   `json:"name"`
	ServerVersion     string   `json:"server_version"`
	SyncEpoch         ids.ID   `json:"sync_epoch"`
	Branding          Branding `json:"branding"`
	Limits            Limits   `json:"limits"`
	PermissionVersion int64    `json:"permission_version"`
}

type updatedPayload struct {
	Changed  []string `json:"changed"`
	Instance Public   `json:"instance"`
}

// Discovery is what a client needs before it has a session. It names no person and no count.
type Discovery struct {
	Public         Public
	MinClient      string
	APIBase        string
	GatewayURL     string
	JWKSURL        string
	SetupComplete  bool
	LoginOptions   []instance.LoginOption
	PasswordPolicy instance.PasswordPolicy
	APIVersion     string
	ReadOnly       bool
}

// ReadInstance gives the public data to a member, with the flags as they are for her.
func (s *Service) ReadInstance(ctx context.Context) (Public, map[string]bool, error) {
	if err := s.peers.Authorizer.Authorize(ctx, authorize.ActionInstanceRead, authorize.Instance()); err != nil {
		return Public{}, nil, err
	}
	public, err := s.public(ctx)
	if err != nil {
		return Public{}, nil, err
	}
	return public, s.flagsOf(ctx), nil
}

func (s *Service) public(ctx context.Context) (Public, error) {
	values, err := s.current(ctx)
	if err != nil {
		return Public{}, err
	}
	return s.publicWith(ctx, values)
}

func (s *Service) publicWith(ctx context.Context, values map[string]any) (Public, error) {
	info, err := s.Info(ctx)
	if err != nil {
		return Public{}, err
	}
	version, err := s.Current(ctx, instance.CounterPermissionVersion)
	if err != nil {
		return Public{}, fmt.Errorf("read the version of all rights: %w", err)
	}
	section, err := s.brandingSection(ctx)
	if err != nil {
		return Public{}, err
	}
	name, _ := values[instance.SettingName].(string)
	product, _ := values[settingProductName].(string)
	return Public{
		ID: info.ID, Name: name, ServerVersion: s.cfg.ServerVersion, SyncEpoch: info.SyncEpoch,
		Branding: brandingWith(section, product),
		Limits: Limits{
			MaxJSONBodyBytes: s.cfg.MaxJSONBodyBytes, MaxFrameBytes: s.cfg.MaxFrameBytes, MaxMessageBytes: s.cfg.MaxMessageBytes,
			MaxAttachments: s.cfg.MaxAttachments, MaxUploadBytes: s.cfg.MaxUploadBytes,
			PageSizeDefault: paging.DefaultLimit, PageSizeMax: paging.MaxLimit,
		},
		PermissionVersion: version,
	}, nil
}

// ReadDiscovery gives what a client needs before it has a session. Every address comes from
// the configuration, never from the request.
func (s *Service) ReadDiscovery(ctx context.Context) (Discovery, error) {
	if err := s.peers.Authorizer.Authorize(ctx, authorize.ActionInstanceDiscoveryRead, authorize.Instance()); err != nil {
		return Discovery{}, err
	}
	public, err := s.public(ctx)
	if err != nil {
		return Discovery{}, err
	}
	done, err := s.SetupComplete(ctx)
	if err != nil {
		return Discovery{}, err
	}
	d := Discovery{
		Public: public, MinClient: s.cfg.MinClientVersion, SetupComplete: done, APIVersion: apiVersion,
		APIBase: s.cfg.PublicURL + apiPath, GatewayURL: socketURL(s.cfg.PublicURL) + apiPath + "/gateway",
		JWKSURL:  s.cfg.PublicURL + "/.well-known/jwks.json",
		ReadOnly: s.cfg.ReadOnly != nil && s.cfg.ReadOnly(),
	}
	if s.peers.Login != nil {
		if d.LoginOptions, d.PasswordPolicy, err = s.peers.Login.LoginOptions(ctx); err != nil {
			return Discovery{}, fmt.Errorf("list the ways to sign in: %w", err)
		}
	}
	return d, nil
}

func socketURL(public string) string {
	if rest, secure := strings.CutPrefix(public, "https://"); secure {
		return "wss://" + rest
	}
	return "ws://" + strings.TrimPrefix(public, "http://")
}
