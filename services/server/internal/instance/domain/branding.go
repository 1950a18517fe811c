// SPDX-License-Identifier: Apache-2.0

package domain

import (
	"encoding/json"
	"net/url"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/OWNER/bothy/services/server/internal/kernel/designkeys"
	"github.com/OWNER/bothy/services/server/internal/kernel/textcheck"
)

// The members of branding.
const (
	BrandingProductName  = "product_name"
	BrandingAccent       = "accent"
	BrandingLoginMessage = "login_message"
	BrandingSupportURL   = "support_url"
	BrandingImprintURL   = "imprint_url"
	BrandingPrivacyURL   = "privacy_url"
)

const (
	maxProductName  = 40
	maxLoginMessage = 500
	maxURL          = 2048
)

// Branding is how an instance presents itself. An empty text stands for the default.
type Branding struct {
	ProductName, Accent, LoginMessage  string
	SupportURL, ImprintURL, PrivacyURL string
}

// BrandingOf reads a stored document; product is the name when it has none.
func BrandingOf(document map[string]json.RawMessage, product string) Branding {
	text := func(member string) string {
		var s string
		_ = json.Unmarshal(document[member], &s) // It was checked before it was stored.
		return s
	}
	b := Branding{
		ProductName: text(BrandingProductName), Accent: text(BrandingAccent), LoginMessage: text(BrandingLoginMessage),
		SupportURL: text(BrandingSupportURL), ImprintURL: text(BrandingImprintURL), PrivacyURL: text(BrandingPrivacyURL),
	}
	if b.ProductName == "" {
		b.ProductName = product
	}
	if !designkeys.IsAccent(b.Accent) {
		b.Accent = designkeys.DefaultAccent
	}
	return b
}

// CheckBranding checks the value of a member.
func CheckBranding(member, value string) *Fault {
	switch member {
	case BrandingProductName:
		if err := textcheck.Name(value); err != nil {
			return &Fault{err.Error(), "The name must be one line of plain text."}
		}
		if n := utf8.RuneCountInString(value); n < 1 || n > maxProductName || strings.TrimSpace(value) != value {
			return &Fault{"wrong_length", "The name must have between 1 and 40 characters, without blanks around it."}
		}
	case BrandingAccent:
		if !designkeys.IsAccent(value) {
			return &Fault{"unknown_value", "The accent must be one of " + strings.Join(designkeys.Accents(), ", ") + "."}
		}
	case BrandingLoginMessage:
		if err := textcheck.Body(value); err != nil {
			return &Fault{err.Error(), "The message must be plain text."}
		}
		if utf8.RuneCountInString(value) > maxLoginMessage {
			return &Fault{"wrong_length", "The message may have 500 characters."}
		}
	default:
		return checkURL(value)
	}
	return nil
}

// checkURL takes https alone: the address stands on the page where people type passwords.
func checkURL(value string) *Fault {
	fault := &Fault{"invalid", "The address must be an https URL with a host and without credentials."}
	u, err := url.Parse(value)
	if err != nil || len(value) > maxURL || u.Scheme != "https" || u.Host == "" || u.User != nil {
		return fault
	}
	if slices.ContainsFunc([]rune(value), func(r rune) bool { return r < '!' || r > '~' }) {
		return fault
	}
	return nil
}
