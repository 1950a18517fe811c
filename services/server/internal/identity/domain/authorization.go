// SPDX-License-Identifier: Apache-2.0

package domain

import (
	"errors"
	"strings"
)

// Scheme is how a credential is presented.
type Scheme string

// The schemes of the header Authorization.
const (
	SchemeDPoP   Scheme = "DPoP"
	SchemeBearer Scheme = "Bearer"
)

// ErrAuthorization means that a header Authorization is none of ours.
var ErrAuthorization = errors.New("not an acceptable Authorization header")

// maxAuthorization bounds what is read; access tokens stay far below.
const maxAuthorization = 16 << 10

// ParseAuthorization splits the header. The scheme is compared without case, as RFC 9110
// asks, and the credential must be one token68.
func ParseAuthorization(header string) (Scheme, string, error) {
	if len(header) > maxAuthorization {
		return "", "", ErrAuthorization
	}
	scheme, credential, ok := strings.Cut(header, " ")
	if !ok || credential == "" || !isToken68(credential) {
		return "", "", ErrAuthorization
	}
	switch {
	case strings.EqualFold(scheme, string(SchemeDPoP)):
		return SchemeDPoP, credential, nil
	case strings.EqualFold(scheme, string(SchemeBearer)):
		return SchemeBearer, credential, nil
	default:
		return "", "", ErrAuthorization
	}
}

func isToken68(s string) bool {
	for i := range len(s) {
		c := s[i]
		if !(c >= '0' && c <= '9' || c >= 'A' && c <= 'Z' || c >= 'a' && c <= 'z' ||
			c == '-' || c == '.' || c == '_' || c == '~' || c == '+' || c == '/' || c == '=') {
			return false
		}
	}
	return true
}
