// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"maps"
	"strings"
	"testing"
)

// Conditions over several keys see what was loaded, at their border and one beyond it.
func TestConditionsOverSeveralKeysSeeTheLoadedValues(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		keys  map[string]string
		check string
	}{
		"budgets that fit":           {map[string]string{"shutdown.total_timeout": "50s"}, ""},
		"budgets beyond":             {map[string]string{"shutdown.total_timeout": "49s"}, "shutdown_budget"},
		"whole seconds":              {map[string]string{"http.unavailable_retry_after": "2s"}, ""},
		"half a second":              {map[string]string{"http.unavailable_retry_after": "1500ms"}, "unavailable_whole_seconds"},
		"certificate alone":          {map[string]string{"server.tls.certificate_file": "/tls.pem"}, "tls_pair"},
		"key alone":                  {map[string]string{"server.tls.key_ref": "file:/tls.key"}, "tls_pair"},
		"listeners on one port":      {map[string]string{"server.listen_addr": ":80", "server.internal_listen_addr": "127.0.0.1:80"}, "listeners_differ"},
		"body as large as a text":    {map[string]string{"http.max_json_body_bytes": "65536", "message.max_content_bytes": "65536"}, "json_body_above_message"},
		"presence before a beat":     {map[string]string{"agent.presence_timeout": "30s", "sync.heartbeat_interval": "30s"}, "presence_timeout_above_heartbeat_interval"},
		"waiting past the log":       {map[string]string{"run.queued_max_age": "24h", "sync.event_retention": "24h"}, "queued_age_below_retention"},
		"several reminders":          {map[string]string{"authz.expiry_reminder_before": "24h,168h,1h"}, ""},
		"no reminders":               {map[string]string{"authz.expiry_reminder_before": ""}, ""},
		"security kept for ever":     {map[string]string{"retention.security": "0s"}, ""},
		"security kept a day":        {map[string]string{"retention.security": "24h"}, ""},
		"security kept less":         {map[string]string{"retention.security": "23h"}, "security_retention_a_day"},
		"device above idle":          {map[string]string{"auth.device_inactive_revoke_after": "721h"}, ""},
		"device as idle":             {map[string]string{"auth.device_inactive_revoke_after": "720h"}, "device_outlasts_idle_session"},
		"idle as the session":        {map[string]string{"auth.session_idle_ttl": "720h", "auth.session_max_ttl": "720h"}, ""},
		"idle beyond the session":    {map[string]string{"auth.session_idle_ttl": "721h", "auth.session_max_ttl": "720h"}, "idle_within_session"},
		"keys outlast the record":    {map[string]string{"retention.audit": "2160h", "audit.ip_key_ttl": "2160h"}, "audit_outlasts_pseudonyms"},
		"the record kept":            {map[string]string{"retention.audit": "0s"}, ""},
		"buffers of a small cluster": {map[string]string{"database.embedded.shared_buffers": "32MiB"}, ""},
		"buffers below":              {map[string]string{"database.embedded.shared_buffers": "31MiB"}, "shared_buffers_enough"},
		"too few partitions":         {map[string]string{"sync.event_log_partition_size": "10000"}, "partitions_outlast_maintenance"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			keys := map[string]string{"server.public_url": "http://localhost:8080", "secrets.signing_key_dir": "/keys"}
			maps.Copy(keys, tc.keys)
			_, _, err := LoadConfig(Sources{Flags: keys})
			switch {
			case tc.check == "" && err != nil:
				t.Errorf("refused: %v", err)
			case tc.check != "" && err == nil:
				t.Error("accepted")
			case tc.check != "" && !strings.Contains(err.Error(), tc.check):
				t.Errorf("got %v, want the check %s", err, tc.check)
			}
		})
	}
}
