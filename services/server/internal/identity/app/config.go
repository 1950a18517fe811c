// SPDX-License-Identifier: Apache-2.0

package app

import (
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"
)

// Config has the keys of identity. Fields without a key are set by the composition root.
type Config struct {
	CleanupInterval      time.Duration `key:"auth.cleanup_interval" default:"10m" min:"1m" max:"24h" doc:"How often expired logins and unused devices are removed."`
	SecurityRetention    time.Duration `key:"retention.security" default:"2160h" min:"0s" max:"87600h" doc:"How long ended sessions, revoked devices, tokens and passkeys and used codes are kept; 0 keeps them for ever, other values are at least 24h."`
	DevicePendingTTL     time.Duration `key:"auth.device_pending_ttl" default:"24h" min:"5m" max:"168h" doc:"How long a new device waits for approval."`
	DeviceInactiveRevoke time.Duration `key:"auth.device_inactive_revoke_after" default:"2160h" min:"24h" max:"87600h" doc:"A device nobody has used for so long is revoked; above auth.session_idle_ttl."`
	AccessTokenTTL       time.Duration `key:"auth.access_token_ttl" default:"10m" min:"1m" max:"1h" doc:"Lifetime of an access token."`
	StepUpTTL            time.Duration `key:"auth.step_up_ttl" default:"5m" min:"1m" max:"1h" doc:"How long a fresh proof of the person counts."`
	SessionIdleTTL       time.Duration `key:"auth.session_idle_ttl" default:"720h" min:"1h" max:"8760h" doc:"A session ends when it is unused for so long."`
	SessionMaxTTL        time.Duration `key:"auth.session_max_ttl" default:"4320h" min:"1h" max:"8760h" doc:"A session ends after this time, whatever happens."`
	RefreshReuseGrace    time.Duration `key:"auth.refresh_reuse_grace" default:"24h" min:"1m" max:"168h" doc:"How long an exchanged refresh token may be presented again because its answer was lost."`
	LoginFlowTTL         time.Duration `key:"auth.login_flow_ttl" default:"10m" min:"1m" max:"1h" doc:"How long a login that has begun may be completed."`
	PairingTTL           time.Duration `key:"auth.pairing_ttl" default:"10m" min:"1m" max:"1h" doc:"How long a device that asks to be let in waits, and how long it may take to come once it was."`
	EnrollmentTTL        time.Duration `key:"auth.enrollment_ttl" default:"72h" min:"1h" max:"720h" doc:"Lifetime of enrollment codes."`
	RecoveryTTL          time.Duration `key:"auth.recovery_ttl" default:"1h" min:"5m" max:"24h" doc:"Lifetime of recovery codes."`
	DPoPNonceTTL         time.Duration `key:"auth.dpop_nonce_ttl" default:"3m" min:"1m" max:"15m" doc:"How long a nonce of a DPoP proof is accepted."`
	ClockSkew            time.Duration `key:"auth.clock_skew" default:"60s" min:"0s" max:"5m" doc:"How far the clock of an identity provider may differ."`
	DPoPReplayMax        int           `key:"auth.dpop_replay_max" default:"200000" min:"1000" max:"10000000" doc:"Proofs remembered against repetition; beyond it the oldest nonces end early."`
	PasswordMinLength    int           `key:"auth.password_min_length" default:"12" min:"8" max:"64" doc:"Shortest acceptable password in characters."`
	LockoutDuration      time.Duration `key:"auth.lockout_duration" default:"15m" min:"1m" max:"24h" doc:"After twenty failures an account ignores passwords from unknown devices for so long."`
	MaxDevices           int           `key:"auth.max_devices" default:"50" min:"1" max:"1000" doc:"Devices of one person at most."`
	PATMaxTTL            time.Duration `key:"auth.pat_max_ttl" default:"8760h" min:"1h" max:"87600h" doc:"Longest lifetime of a person's API token."`
	PasskeyExtraOrigins  []string      `key:"auth.passkey.extra_origins" doc:"Further origins whose passkey ceremonies are accepted, for example of native apps."`
	RevalidateInterval   time.Duration `key:"auth.revalidate_interval" default:"30s" min:"1s" max:"10m" doc:"How often connections of agents and apps are checked anew."`
	CodeHMACKeyRef       string        `key:"auth.code_hmac_key_ref" default:"file:<secrets.dir>/auth_code_hmac_key" type:"ref" doc:"Secret of at least 32 bytes from which the keys of nonces and pseudonyms are derived; equal on all nodes."`
	HandleRenameInterval time.Duration `key:"identity.handle_rename_interval" default:"720h" min:"0s" max:"8760h" doc:"How long a person waits between two changes of her handle."`
	HandleHold           time.Duration `key:"identity.handle_hold" default:"2160h" min:"0s" max:"87600h" doc:"How long a former handle leads to its person and nobody else may take it."`

	// PublicURL is server.public_url: the issuer of tokens and the origin of proofs.
	PublicURL string
	// CodeHMACKey is what CodeHMACKeyRef resolves to.
	CodeHMACKey []byte
	// SingleNode says that this is the only process that accepts proofs, so nonces from
	// before its start are refused.
	SingleNode bool
}

// DefaultConfig is the configuration without any source.
func DefaultConfig() Config {
	return Config{
		CleanupInterval: 10 * time.Minute, SecurityRetention: 2160 * time.Hour, DevicePendingTTL: 24 * time.Hour, DeviceInactiveRevoke: 2160 * time.Hour,
		AccessTokenTTL: 10 * time.Minute, StepUpTTL: 5 * time.Minute, SessionIdleTTL: 720 * time.Hour, SessionMaxTTL: 4320 * time.Hour,
		RefreshReuseGrace: 24 * time.Hour, LoginFlowTTL: 10 * time.Minute, PairingTTL: 10 * time.Minute, EnrollmentTTL: 72 * time.Hour, RecoveryTTL: time.Hour,
		DPoPNonceTTL: 3 * time.Minute, DPoPReplayMax: 200_000, ClockSkew: time.Minute, PasswordMinLength: 12, LockoutDuration: 15 * time.Minute,
		MaxDevices: 50, PATMaxTTL: 8760 * time.Hour, RevalidateInterval: 30 * time.Second,
		CodeHMACKeyRef:       "file:<secrets.dir>/auth_code_hmac_key",
		HandleRenameInterval: 720 * time.Hour, HandleHold: 2160 * time.Hour,
	}
}

// CodeKeyMin is the shortest acceptable secret of the module, in bytes.
const CodeKeyMin = 32

// Validate checks what a single range cannot say.
func (c Config) Validate() error {
	u, err := url.Parse(c.PublicURL)
	switch {
	case err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http" || u.RawQuery != "" || u.Fragment != "":
		return fmt.Errorf("server.public_url: %q is no origin", c.PublicURL)
	case strings.TrimSuffix(u.Path, "/") != "":
		return fmt.Errorf("server.public_url: %q must have no path", c.PublicURL)
	case len(c.CodeHMACKey) < CodeKeyMin:
		return fmt.Errorf("auth.code_hmac_key_ref: the secret must have at least %d bytes", CodeKeyMin)
	}
	return errors.Join(c.CheckSecurityRetention(), c.CheckDeviceInactive(), c.CheckSessionTTLs())
}

// minSecurityRetention keeps what has ended for as long as somebody may ask why.
const minSecurityRetention = 24 * time.Hour

// CheckSecurityRetention checks retention.security, whose zero stands for ever.
func (c Config) CheckSecurityRetention() error {
	if c.SecurityRetention != 0 && c.SecurityRetention < minSecurityRetention {
		return errors.New("retention.security must be 0s, which keeps everything, or at least 24h")
	}
	return nil
}

// CheckDeviceInactive says whether an unused device outlives the sessions on it.
func (c Config) CheckDeviceInactive() error {
	if c.DeviceInactiveRevoke <= c.SessionIdleTTL {
		return errors.New("auth.device_inactive_revoke_after must be longer than auth.session_idle_ttl")
	}
	return nil
}

// CheckSessionTTLs says whether an unused session ends no later than a used one.
func (c Config) CheckSessionTTLs() error {
	if c.SessionIdleTTL > c.SessionMaxTTL {
		return errors.New("auth.session_idle_ttl must not be longer than auth.session_max_ttl")
	}
	return nil
}

// origin is the public address without a trailing slash.
func (c Config) origin() string { return strings.TrimSuffix(c.PublicURL, "/") }
