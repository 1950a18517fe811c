// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"errors"
	"time"

	agentsapp "github.com/OWNER/bothy/services/server/internal/agents/app"
	"github.com/OWNER/bothy/services/server/internal/audit/adapters/filesink"
	auditapp "github.com/OWNER/bothy/services/server/internal/audit/app"
	authzapp "github.com/OWNER/bothy/services/server/internal/authz/app"
	chatapp "github.com/OWNER/bothy/services/server/internal/chat/app"
	"github.com/OWNER/bothy/services/server/internal/identity/adapters/argon2"
	identityapp "github.com/OWNER/bothy/services/server/internal/identity/app"
	"github.com/OWNER/bothy/services/server/internal/instance"
	instancehttp "github.com/OWNER/bothy/services/server/internal/instance/adapters/httpapi"
	instanceapp "github.com/OWNER/bothy/services/server/internal/instance/app"
	"github.com/OWNER/bothy/services/server/internal/messaging/adapters/markdown"
	messagingapp "github.com/OWNER/bothy/services/server/internal/messaging/app"
	"github.com/OWNER/bothy/services/server/internal/platform/config"
	runsapp "github.com/OWNER/bothy/services/server/internal/runs/app"
)

// moduleConfig has the keys of the modules, one field per Config struct.
type moduleConfig struct {
	// Flags are the feature flags of all modules; no key of the configuration, because owners
	// turn them.
	Flags []instance.Flag

	Instance  instanceapp.Config
	Audit     auditConfig
	Authz     authzapp.Config
	Identity  identityapp.Config
	Argon2    argon2.Config
	Chat      chatapp.Config
	Messaging messagingapp.Config
	Markdown  markdown.Config
	Agents    agentsapp.Config
	Runs      runsapp.Config
}

// auditConfig adds to the module what the composition root resolves and schedules for it.
type auditConfig struct {
	App                auditapp.Config
	KeyRef             string        `key:"audit.ip_key_wrap_ref" default:"file:<secrets.dir>/audit_ip_key" type:"ref" doc:"Secret under which the keys of address pseudonyms are kept."`
	CheckpointInterval time.Duration `key:"audit.checkpoint_interval" default:"1h" min:"1m" max:"168h" doc:"How often what is new in the record is verified and signed."`
	RetentionInterval  time.Duration `key:"retention.job_interval" default:"1h" min:"1m" max:"24h" doc:"How often what is older than its retention is removed."`
	CheckpointSink     string        `key:"audit.checkpoint_sink" default:"none" doc:"Where signed checkpoints are kept outside the database: none, or file: and an absolute folder. There they prove what the record was, even to somebody who could rewrite all of it."`
}

func (m *moduleConfig) defaults() {
	m.Audit.App = auditapp.DefaultConfig()
	m.Instance = instanceapp.DefaultConfig()
	m.Authz = authzapp.DefaultConfig()
	m.Identity = identityapp.DefaultConfig()
}

func (m *moduleConfig) bind(s *config.Schema) {
	s.Bind("instance", &m.Instance)
	s.Bind("audit", &m.Audit)
	s.Bind("authz", &m.Authz)
	s.Bind("identity", &m.Identity)
	s.Bind("identity", &m.Argon2)
	s.Bind("chat", &m.Chat)
	s.Bind("messaging", &m.Messaging)
	s.Bind("messaging", &m.Markdown)
	s.Bind("agents", &m.Agents)
	s.Bind("runs", &m.Runs)
}

// derive copies what one key decides for several modules.
func (m *moduleConfig) derive(c *Config) {
	m.Instance.PublicURL = c.HTTP.PublicURL
	m.Instance.MaxJSONBodyBytes = c.HTTP.MaxJSONBodyBytes
	m.Instance.MaxFrameBytes = int64(c.Gateway.MaxFrameBytes)
	m.Instance.MaxMessageBytes = m.Markdown.MaxContentBytes
	m.Instance.ReadOnly = c.HTTP.ReadOnly
	m.Instance.AccessTokenTTL = m.Identity.AccessTokenTTL
	m.Instance.InvocationTokenTTL = m.Runs.TokenTTL
	m.Identity.PublicURL = c.HTTP.PublicURL
	m.Chat.ClusterMaxRunes = m.Markdown.MaxClusterPoints
	m.Runs.PresenceTimeout, m.Runs.PersistInterval = m.Agents.PresenceTimeout, m.Agents.PersistInterval
	m.Messaging.PublicURL = c.HTTP.PublicURL
	m.Runs.MessageBytes, m.Runs.PublicURL = int(m.Markdown.MaxContentBytes), c.HTTP.PublicURL
	c.Gateway.RevalidateEvery = m.Identity.RevalidateInterval
}

func (m *moduleConfig) crossChecks(s *config.Schema, c *Config) {
	s.Check("presence_timeout_above_heartbeat_interval", []string{"agent.presence_timeout", "sync.heartbeat_interval"}, func() error {
		if m.Agents.PresenceTimeout <= c.Gateway.HeartbeatInterval {
			return errors.New("agent.presence_timeout must be longer than sync.heartbeat_interval")
		}
		return nil
	})
	s.Check("next_lead_above_cache", []string{"signing_key.next_lead", "signing_key.rotation_interval"}, func() error {
		switch {
		case m.Instance.NextLead <= 2*instancehttp.JWKSMaxAge:
			return errors.New("signing_key.next_lead must be longer than twice the time that the JWKS may be kept")
		case m.Instance.RotationInterval < 2*m.Instance.NextLead:
			return errors.New("signing_key.rotation_interval must be at least twice signing_key.next_lead")
		}
		return nil
	})
	s.Check("audit_outlasts_pseudonyms", []string{"retention.audit", "audit.ip_key_ttl"}, func() error {
		if kept := m.Audit.App.Retention; kept != 0 && kept <= m.Audit.App.IPKeyTTL {
			return errors.New("retention.audit must be longer than audit.ip_key_ttl, or 0s to keep everything")
		}
		return nil
	})
	// Each check reads the struct when it runs; a method value would have copied it unloaded.
	s.Check("security_retention_a_day", []string{"retention.security"}, func() error { return m.Identity.CheckSecurityRetention() })
	s.Check("device_outlasts_idle_session", []string{"auth.device_inactive_revoke_after", "auth.session_idle_ttl"}, func() error { return m.Identity.CheckDeviceInactive() })
	s.Check("idle_within_session", []string{"auth.session_idle_ttl", "auth.session_max_ttl"}, func() error { return m.Identity.CheckSessionTTLs() })
	s.Check("checkpoint_sink_form", []string{"audit.checkpoint_sink"}, func() error {
		_, err := filesink.Parse(m.Audit.CheckpointSink)
		return err
	})
	s.Check("json_body_above_message", []string{"http.max_json_body_bytes", "message.max_content_bytes"}, func() error {
		if c.HTTP.MaxJSONBodyBytes <= m.Markdown.MaxContentBytes {
			return errors.New("http.max_json_body_bytes must be larger than message.max_content_bytes")
		}
		return nil
	})
	s.Check("queued_age_below_retention", []string{"run.queued_max_age", "sync.event_retention"}, func() error {
		if m.Runs.QueuedMaxAge >= c.Sync.Partitions.Retention {
			return errors.New("run.queued_max_age must be shorter than sync.event_retention")
		}
		return nil
	})
	s.Check("patch_below_frame", []string{"run.patch_max_bytes", "gateway.max_frame_bytes"}, func() error {
		if m.Runs.PatchBytes >= c.Gateway.MaxFrameBytes {
			return errors.New("run.patch_max_bytes must be smaller than gateway.max_frame_bytes")
		}
		return nil
	})
}
