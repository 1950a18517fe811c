// SPDX-License-Identifier: Apache-2.0

package secrets

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// services names what each service of an installation uses. A service gets copies of these
// and of nothing else.
var services = map[string][]string{
	"server": {
		"database_app_password", "telemetry_pseudonym_key", "audit_ip_key", "auth_code_hmac_key", "webhook_secret_key",
		"s3_access_key_id", "s3_secret_access_key", "apns_private_key", "fcm_service_account", "otlp_headers", "tls_key",
	},
	"migrate": {
		"database_bootstrap_password", "database_owner_password", "database_app_password", "database_maint_password",
		"database_backup_password", "database_monitor_password", "audit_ip_key", "auth_code_hmac_key",
	},
	"postgres":  {"database_bootstrap_password"},
	"backupd":   {"database_backup_password", "s3_access_key_id", "s3_secret_access_key", "backup_credentials"},
	"collector": {"database_monitor_password", "otlp_headers"},
}

var errOwner = errors.New("must be SERVICE=UID:GID")

// ParseOwner reads SERVICE=UID:GID for a service of an installation.
func ParseOwner(text string) (Owner, error) {
	service, who, ok := strings.Cut(text, "=")
	if !ok {
		return Owner{}, errOwner
	}
	uid, gid, ok := strings.Cut(who, ":")
	if !ok {
		return Owner{}, errOwner
	}
	list, known := services[service]
	if !known {
		return Owner{}, fmt.Errorf("there is no service %q; known are %s", service, strings.Join(slices.Sorted(maps.Keys(services)), ", "))
	}
	o := Owner{Service: service, Secrets: list}
	for _, number := range []struct {
		text string
		to   *int
	}{{uid, &o.UID}, {gid, &o.GID}} {
		n, err := strconv.ParseUint(number.text, 10, 31)
		if err != nil {
			return Owner{}, errOwner
		}
		*number.to = int(n)
	}
	return o, nil
}
