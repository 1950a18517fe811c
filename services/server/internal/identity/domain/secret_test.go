// SPDX-License-Identifier: Apache-2.0

package domain

import (
	"errors"
	"regexp"
	"strings"
	"testing"
)

func TestSecretForm(t *testing.T) {
	form := regexp.MustCompile(`^bothy_(pat|agent|app|rt)_[0-9A-Za-z]{49}$`)
	for _, kind := range []SecretKind{SecretPAT, SecretAgent, SecretApp, SecretRefresh} {
		secret := NewSecret(kind)
		if !form.MatchString(secret) {
			t.Errorf("%q has not the form scanners look for", secret)
		}
		got, hash, err := ParseSecret(secret, SecretPAT, SecretAgent, SecretApp, SecretRefresh)
		if err != nil || got != kind || hash != HashSecret(secret) {
			t.Errorf("ParseSecret(%q) = %q, %x, %v", secret, got, hash, err)
		}
	}
}

func TestSecretChecksumIsPinned(t *testing.T) {
	body := "bothy_pat_" + strings.Repeat("A", 43)
	if got := checksum(body); len(got) != 6 || got != checksum(body) {
		t.Fatalf("checksum %q", got)
	}
	if _, _, err := ParseSecret(body+checksum(body), SecretPAT); err != nil {
		t.Fatalf("a secret with its checksum is refused: %v", err)
	}
}

func TestSecretRefusals(t *testing.T) {
	good := NewSecret(SecretPAT)
	flip := func(i int) string {
		b := []byte(good)
		if b[i] == 'x' {
			b[i] = 'y'
		} else {
			b[i] = 'x'
		}
		return string(b)
	}
	for name, text := range map[string]string{
		"empty":                   "",
		"another kind":            NewSecret(SecretRefresh),
		"a character of the body": flip(15),
		"a character of the sum":  flip(len(good) - 1),
		"cut":                     good[:len(good)-1],
		"longer":                  good + "a",
		"a foreign character":     good[:20] + "-" + good[21:],
	} {
		if _, _, err := ParseSecret(text, SecretPAT); !errors.Is(err, ErrSecret) {
			t.Errorf("%s is accepted", name)
		}
	}
}

func TestSecretsDoNotCollide(t *testing.T) {
	n := 1_000_000
	if testing.Short() {
		n = 20_000
	}
	seen := make(map[[8]byte]struct{}, n)
	for range n {
		secret := NewSecret(SecretPAT)
		hash := HashSecret(secret)
		if _, dup := seen[[8]byte(hash[:8])]; dup {
			t.Fatal("two secrets share 64 bits of their hash")
		}
		seen[[8]byte(hash[:8])] = struct{}{}
	}
}

func FuzzParseSecret(f *testing.F) {
	f.Add(NewSecret(SecretPAT))
	f.Add("bothy_pat_")
	f.Add("bothy_agent_\x00")
	f.Fuzz(func(t *testing.T, text string) {
		kind, hash, err := ParseSecret(text, SecretPAT, SecretAgent, SecretApp, SecretRefresh)
		if err != nil {
			return
		}
		if !strings.HasPrefix(text, string(kind)) || hash != HashSecret(text) {
			t.Fatalf("%q read as %q", text, kind)
		}
	})
}

func TestEnrollmentCode(t *testing.T) {
	code := NewEnrollmentCode()
	if !regexp.MustCompile(`^([0-9A-HJKMNP-TV-Z]{6}-){3}[0-9A-HJKMNP-TV-Z]{6}$`).MatchString(code) {
		t.Fatalf("form of %q", code)
	}
	want, err := ParseEnrollmentCode(code)
	if err != nil {
		t.Fatal(err)
	}
	for name, typed := range map[string]string{
		"lower case":     strings.ToLower(code),
		"without groups": strings.ReplaceAll(code, "-", ""),
		"spaces":         strings.ReplaceAll(code, "-", " "),
		"O for 0":        strings.ReplaceAll(code, "0", "O"),
		"I for 1":        strings.ReplaceAll(code, "1", "i"),
		"L for 1":        strings.ReplaceAll(code, "1", "l"),
	} {
		if got, err := ParseEnrollmentCode(typed); err != nil || got != want {
			t.Errorf("%s: %q is another code (%v)", name, typed, err)
		}
	}
	for _, bad := range []string{"", "U" + code[1:], code[:10], code + "A", strings.Repeat("A", 1000)} {
		if _, err := ParseEnrollmentCode(bad); !errors.Is(err, ErrCode) {
			t.Errorf("%q is accepted", bad)
		}
	}
}

func FuzzParseEnrollmentCode(f *testing.F) {
	f.Add(NewEnrollmentCode())
	f.Add("------------------------")
	f.Fuzz(func(t *testing.T, text string) {
		a, errA := ParseEnrollmentCode(text)
		b, errB := ParseEnrollmentCode(strings.ToUpper(text))
		if (errA == nil) != (errB == nil) && isASCII(text) {
			t.Fatalf("case decides about %q", text)
		}
		if errA == nil && errB == nil && a != b {
			t.Fatalf("case changes %q", text)
		}
	})
}

func isASCII(s string) bool {
	for i := range len(s) {
		if s[i] >= 0x80 {
			return false
		}
	}
	return true
}

func FuzzParseAuthorization(f *testing.F) {
	f.Add("DPoP a.b.c")
	f.Add("bearer bothy_pat_x")
	f.Add("Bearer  two")
	f.Fuzz(func(t *testing.T, header string) {
		scheme, credential, err := ParseAuthorization(header)
		if err != nil {
			return
		}
		if scheme != SchemeDPoP && scheme != SchemeBearer || credential == "" || strings.ContainsAny(credential, " \t\r\n,") {
			t.Fatalf("%q read as %q %q", header, scheme, credential)
		}
	})
}
