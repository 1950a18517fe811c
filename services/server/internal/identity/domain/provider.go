// SPDX-License-Identifier: Apache-2.0

package domain

import (
	"net/url"
	"regexp"
	"slices"
	"strings"
)

// How the server proves itself to a provider.
const (
	ClientSecretBasic = "client_secret_basic"
	ClientSecretPost  = "client_secret_post"
	ClientPublic      = "none"
)

// Whether a first login by a provider makes a person.
const (
	ProvisionNone = "none"
	ProvisionAuto = "auto"
)

// Limits of what is kept of providers.
const (
	ProviderNameMax = 60
	ProviderIconMax = 32
	claimNameMax    = 100
)

// ClaimNames says which claim of a provider means what. An empty name is not read.
type ClaimNames struct {
	Subject       string `json:"subject"`
	Email         string `json:"email"`
	EmailVerified string `json:"email_verified"`
	Name          string `json:"name"`
	Handle        string `json:"handle"`
	Groups        string `json:"groups"`
	Locale        string `json:"locale"`
	MFA           string `json:"mfa"`
}

// StandardClaims are the names of the specification. Groups and the second factor have none.
func StandardClaims() ClaimNames {
	return ClaimNames{
		Subject: "sub", Email: "email", EmailVerified: "email_verified", Name: "name", Handle: "preferred_username", Locale: "locale",
	}
}

// Check gives the member that cannot be a claim, empty when all can.
func (c ClaimNames) Check() (member string, fault Fault) {
	if c.Subject == "" {
		return "subject", "required"
	}
	for member, name := range map[string]string{
		"subject": c.Subject, "email": c.Email, "email_verified": c.EmailVerified, "name": c.Name, "handle": c.Handle,
		"groups": c.Groups, "locale": c.Locale, "mfa": c.MFA,
	} {
		if fault := CheckOptional(name, claimNameMax); name != "" && fault != FaultNone {
			return member, fault
		}
	}
	return "", FaultNone
}

var (
	providerKey    = regexp.MustCompile(`^[a-z0-9-]{2,32}$`)
	providerIcon   = regexp.MustCompile(`^[a-z0-9-]{0,32}$`)
	secretRef      = regexp.MustCompile(`^file:<secrets\.dir>/oidc_[a-z0-9_-]{1,64}$`)
	scopeToken     = regexp.MustCompile(`^[\x21\x23-\x5b\x5d-\x7e]{1,64}$`)
	emailDomain    = regexp.MustCompile(`^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?(\.[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?)+$`)
	clientAuthWays = []string{ClientSecretBasic, ClientSecretPost, ClientPublic}
)

// CheckProviderKey tells whether a short name fits.
func CheckProviderKey(key string) Fault { return formatUnless(providerKey.MatchString(key)) }

// CheckProviderIcon tells whether the name of an icon fits; empty does.
func CheckProviderIcon(icon string) Fault { return formatUnless(providerIcon.MatchString(icon)) }

// CheckIssuer tells whether a text can be the address of a provider: absolute, without
// query, fragment and user. Whether the server may go there is another question.
func CheckIssuer(issuer string) Fault {
	u, err := url.Parse(issuer)
	ok := err == nil && (u.Scheme == "https" || u.Scheme == "http") && u.Host != "" && u.User == nil &&
		u.RawQuery == "" && !u.ForceQuery && !strings.Contains(issuer, "#")
	return formatUnless(ok)
}

// CheckClientAuth tells whether the way is known and has the secret that it needs, and no
// other. Only files with a name of their own in the folder of secrets can be named: with any
// other reference an owner could send a foreign secret of the server to a host of her choice.
func CheckClientAuth(way, ref string) (member string, fault Fault) {
	switch {
	case !slices.Contains(clientAuthWays, way):
		return "client_auth", "unknown"
	case way == ClientPublic && ref != "":
		return "client_secret_ref", "mismatch"
	case way != ClientPublic && ref == "":
		return "client_secret_ref", "required"
	case ref != "" && !secretRef.MatchString(ref):
		return "client_secret_ref", FaultFormat
	}
	return "", FaultNone
}

// CheckScope tells whether a text can be asked for.
func CheckScope(scope string) Fault { return formatUnless(scopeToken.MatchString(scope)) }

// WithOpenID puts the scope without which there is no ID token in front, and drops doubles.
func WithOpenID(scopes []string) []string {
	out := []string{"openid"}
	for _, s := range scopes {
		if !slices.Contains(out, s) {
			out = append(out, s)
		}
	}
	return out
}

// CheckDomain tells whether a text is a domain of addresses, in lower case.
func CheckDomain(name string) Fault {
	return formatUnless(len(name) <= 253 && emailDomain.MatchString(name))
}

// CheckProvisioning tells whether the rule is known.
func CheckProvisioning(rule string) Fault {
	if rule != ProvisionNone && rule != ProvisionAuto {
		return "unknown"
	}
	return FaultNone
}

func formatUnless(ok bool) Fault {
	if ok {
		return FaultNone
	}
	return FaultFormat
}
