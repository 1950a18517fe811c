// SPDX-License-Identifier: Apache-2.0

package domain

import (
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// External is a person as a provider describes her, after everything was verified.
type External struct {
	Issuer        string `json:"issuer"`
	Subject       string `json:"subject"`
	Email         string `json:"email,omitempty"`
	EmailVerified bool   `json:"email_verified,omitempty"`
	Name          string `json:"name,omitempty"`
	Handle        string `json:"handle,omitempty"`
	Locale        string `json:"locale,omitempty"`
	ACR           string `json:"acr,omitempty"`
	// MFA is what the provider says; whether it is believed is a setting of the provider.
	MFA bool `json:"mfa,omitempty"`
	// Groups is nil when the provider told none, and when it only marked that there are too
	// many; an empty list means that there are none.
	Groups []string `json:"groups"`
}

// Bounds of group claims.
const (
	claimGroupsMax     = 1000
	claimGroupBytesMax = 256
)

// ReadPerson maps the claims of a provider. It fails with TokenSubject when the claim that
// names the person is missing. Whatever else cannot be used counts as absent.
func ReadPerson(issuer string, c ClaimValues, names ClaimNames) (External, error) {
	e := External{
		Issuer: issuer, Subject: c.text(names.Subject), Name: c.text(names.Name), Handle: c.text(names.Handle),
		ACR: c.text("acr"), MFA: c.secondFactor(names.MFA), Groups: c.groups(names.Groups),
	}
	if e.Subject == "" || len(e.Subject) > subjectMax || !utf8.ValidString(e.Subject) {
		return External{}, TokenSubject
	}
	if email := c.text(names.Email); CheckEmail(email) == FaultNone {
		e.Email, e.EmailVerified = email, c.truth(names.EmailVerified)
	}
	if CheckName(e.Name, DisplayNameMax) != FaultNone {
		e.Name = ""
	}
	if e.Handle == "" {
		e.Handle = c.text("preferred_username")
	}
	if locale := c.text(names.Locale); CheckLocale(locale) == FaultNone {
		e.Locale = locale
	}
	return e, nil
}

// MissesClaim reports whether a mapped claim is absent from the ID token, so that it is
// worth asking the provider for more.
func (c ClaimValues) MissesClaim(names ClaimNames) bool {
	for _, name := range []string{names.Subject, names.Email, names.EmailVerified, names.Name, names.Handle, names.Groups, names.Locale} {
		if _, present := c[name]; name != "" && !present {
			return true
		}
	}
	return false
}

// Complete adds the claims of userinfo to those of the ID token, which win. It fails with
// TokenSubject when userinfo speaks of somebody else.
func (c ClaimValues) Complete(more ClaimValues) (ClaimValues, error) {
	if more.text("sub") == "" || more.text("sub") != c.text("sub") {
		return nil, TokenSubject
	}
	all := ClaimValues{}
	for name, value := range more {
		all[name] = value
	}
	for name, value := range c {
		all[name] = value
	}
	return all, nil
}

// truth reads a boolean; some providers write it as text.
func (c ClaimValues) truth(name string) bool {
	switch v := c[name].(type) {
	case bool:
		return name != "" && v
	case string:
		return name != "" && v == "true"
	default:
		return false
	}
}

// secondFactor reads the mapped claim, or the methods of RFC 8176.
func (c ClaimValues) secondFactor(name string) bool {
	if c.truth(name) {
		return true
	}
	methods, _ := c["amr"].([]any)
	return slices.Contains(methods, any("mfa")) || slices.Contains(methods, any("hwk"))
}

// groups reads the group claim. A provider that has too many for a token leaves the claim
// out and says where to ask instead.
func (c ClaimValues) groups(name string) []string {
	value, present := c[name]
	if name == "" || !present {
		return nil
	}
	if elsewhere, ok := c["_claim_names"].(map[string]any); ok && elsewhere[name] != nil {
		return nil
	}
	list, ok := value.([]any)
	if !ok || len(list) > claimGroupsMax {
		return nil
	}
	out := []string{}
	for _, one := range list {
		text, isText := one.(string)
		if isText && text != "" && len(text) <= claimGroupBytesMax && utf8.ValidString(text) && !slices.Contains(out, text) {
			out = append(out, text)
		}
	}
	return out
}

// Label is how the identity is shown in settings.
func (e External) Label() string {
	for _, label := range []string{e.Email, e.Handle, e.Name} {
		if label != "" && CheckName(label, labelMax) == FaultNone {
			return label
		}
	}
	return truncated(strings.Map(printable, e.Subject), labelMax)
}

const labelMax = 254

func printable(r rune) rune {
	if r < 0x20 || r == 0x7f || r == utf8.RuneError {
		return '?'
	}
	return r
}

func truncated(s string, limit int) string {
	if runes := []rune(s); len(runes) > limit {
		return string(runes[:limit])
	}
	return s
}

// Admission is how an external person comes in.
type Admission string

// The admissions. The empty one is a refusal.
const (
	AdmitKnown     Admission = "known"
	AdmitLink      Admission = "link"
	AdmitProvision Admission = "provision"
)

// AdmissionRules are the settings of a provider that decide who comes in.
type AdmissionRules struct {
	RequiredACR    string
	RequireEmail   bool
	LinkByEmail    bool
	Provisioning   string
	AllowedDomains []string
}

// EmailMatch is the one person with the verified address of an external one.
type EmailMatch struct{ Found, Active, Owner, LinkedHere bool }

// The refusals of logins by a provider, as reasons of forbidden.
const (
	RefuseACR            = "acr_missing"
	RefuseClaim          = "claim_missing"
	RefuseNotProvisioned = "not_provisioned"
	RefuseDomain         = "domain_not_allowed"
)

// Admit decides who logs in. known says that the identity is linked with somebody. It never
// goes by a name or by an address that the provider has not verified.
func Admit(rules AdmissionRules, e External, known bool, match EmailMatch) (admission Admission, refusal string) {
	switch {
	case rules.RequiredACR != "" && e.ACR != rules.RequiredACR:
		return "", RefuseACR
	case rules.RequireEmail && e.Email == "":
		return "", RefuseClaim
	case known:
		return AdmitKnown, ""
	case rules.LinkByEmail && e.EmailVerified && match.Found && match.Active && !match.Owner && !match.LinkedHere:
		return AdmitLink, ""
	case rules.Provisioning != ProvisionAuto:
		return "", RefuseNotProvisioned
	case !domainAllowed(rules.AllowedDomains, e):
		return "", RefuseDomain
	}
	return AdmitProvision, ""
}

func domainAllowed(allowed []string, e External) bool {
	if len(allowed) == 0 {
		return true
	}
	at := strings.LastIndexByte(e.Email, '@')
	return e.EmailVerified && at >= 0 && slices.Contains(allowed, strings.ToLower(e.Email[at+1:]))
}

// SuggestHandle makes a valid handle of what the provider calls the person, or of her
// address. The attempt distinguishes those that are taken: 1 gives the plain one.
func SuggestHandle(e External, attempt int) string {
	for _, source := range []string{e.Handle, e.Email, "user"} {
		base := handleBase(source)
		if attempt > 1 {
			suffix := "-" + strconv.Itoa(attempt)
			base = strings.TrimRight(base[:min(len(base), handleMax-len(suffix))], ".") + suffix
		}
		if CheckHandle(base) == FaultNone {
			return base
		}
	}
	return "user-" + strconv.Itoa(attempt)
}

// handleBase keeps what may stand in a handle; of an address the part before the sign.
func handleBase(text string) string {
	text, _, _ = strings.Cut(strings.ToLower(text), "@")
	text = strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' || r == '.' || r == '_' || r == '-' {
			return r
		}
		return '-'
	}, text)
	text = strings.TrimLeft(text, ".-_")
	return strings.TrimRight(text[:min(len(text), handleMax)], ".-_")
}
