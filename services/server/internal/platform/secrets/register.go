// SPDX-License-Identifier: Apache-2.0

package secrets

// Registered is one secret that the command "secrets init" knows.
type Registered struct {
	Name string
	// Bytes is how many random bytes are generated and written in unpadded base64url; zero for
	// secrets that only the operator
	// can give.
	Bytes int
}

// Register lists every secret of an installation. Those that a module needs are added here.
func Register() []Registered {
	return []Registered{
		{Name: "database_bootstrap_password", Bytes: 32},
		{Name: "database_owner_password", Bytes: 32},
		{Name: "database_app_password", Bytes: 32},
		{Name: "database_maint_password", Bytes: 32},
		{Name: "database_backup_password", Bytes: 32},
		{Name: "database_monitor_password", Bytes: 32},
		{Name: "telemetry_pseudonym_key", Bytes: 32},
		{Name: "audit_ip_key", Bytes: 32},
		{Name: "auth_code_hmac_key", Bytes: 32},
		{Name: "webhook_secret_key", Bytes: 32},
		{Name: "s3_access_key_id"},
		{Name: "s3_secret_access_key"},
		{Name: "backup_credentials"},
		{Name: "apns_private_key"},
		{Name: "fcm_service_account"},
		{Name: "otlp_headers"},
		{Name: "tls_key"},
	}
}
