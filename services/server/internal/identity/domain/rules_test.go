// SPDX-License-Identifier: Apache-2.0

package domain

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/OWNER/bothy/services/server/internal/kernel/ids"
)

func TestCheckHandle(t *testing.T) {
	for handle, want := range map[string]Fault{
		"ana": FaultNone, "a1": FaultNone, "ana.b-c_d": FaultNone, "1ana": FaultNone, strings.Repeat("a", 32): FaultNone,
		"a": FaultFormat, "": FaultFormat, "Ana": FaultFormat, ".ana": FaultFormat, "ana.": FaultFormat, "a na": FaultFormat,
		"anä": FaultFormat, strings.Repeat("a", 33): FaultFormat, "-ana": FaultFormat,
		"everyone": FaultReserved, "here": FaultReserved, "bothy": FaultReserved, "deleted": FaultReserved,
	} {
		if got := CheckHandle(handle); got != want {
			t.Errorf("CheckHandle(%q) = %q, want %q", handle, got, want)
		}
	}
}

func TestRenameHandle(t *testing.T) {
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	until := now.Add(time.Hour)
	former := RenameHandle(nil, "ana", "anna", now, until)
	if len(former) != 1 || former[0] != (FormerHandle{"ana", until}) {
		t.Fatalf("the old handle is not held: %v", former)
	}
	back := RenameHandle(former, "anna", "ana", now, until)
	if len(back) != 1 || back[0].Handle != "anna" {
		t.Errorf("a handle taken back is still held: %v", back)
	}
	later := RenameHandle(former, "anna", "annie", until, until.Add(time.Hour))
	if len(later) != 1 || later[0].Handle != "anna" {
		t.Errorf("a hold that is over stays: %v", later)
	}
	if MayRename(now, now.Add(time.Hour-1), time.Hour) || !MayRename(now, now.Add(time.Hour), time.Hour) || !MayRename(time.Time{}, now, time.Hour) {
		t.Error("the interval between renames is not kept")
	}
}

func TestCheckPassword(t *testing.T) {
	person := PasswordContext{Handle: "anabel", Email: "anabel.smith@example.org", InstanceName: "Rivendell"}
	for password, want := range map[string]Fault{
		"correct horse battery":    FaultNone,
		"tre4sure-Kiln-vowel":      FaultNone,
		"ünïcödé-wörks-fine":       FaultNone,
		"elevenchars":              FaultTooShort,
		strings.Repeat("ab1", 100): FaultTooLong,
		"my anabel is the best":    FaultContext,
		"ANABEL.SMITH rocks here":  FaultContext,
		"welcome to rivendell":     FaultContext,
		"i love bothy so much":     FaultContext,
		"aaaaaaaaaaaaaaa":          FaultCommon,
		"abcabcabcabcabc":          FaultCommon,
		"abcdefghijklmno":          FaultCommon,
		"890123456789012":          FaultCommon,
		"zyxwvutsrqponml":          FaultCommon,
		"Password123456":           FaultCommon,
		"passwordpassword":         FaultCommon,
		"p@$$w0rd2024!":            FaultCommon,
		"sunshineprincess":         FaultCommon,
		"1q2w3e4r5t6y":             FaultCommon,
		string([]byte{0xff, 0xfe, 'a'}) + "bcdefghijklmnop": FaultTooLong,
	} {
		if got := CheckPassword(password, 12, person); got != want {
			t.Errorf("CheckPassword(%q) = %q, want %q", password, got, want)
		}
	}
	if got := CheckPassword("our bob is here today", 12, PasswordContext{Handle: "bob"}); got != FaultNone {
		t.Errorf("a short handle forbids a password: %q", got)
	}
}

func TestCommonPasswordsAreEnough(t *testing.T) {
	long := map[string]bool{}
	composeCommon(func(entry string) {
		if entry != strings.ToLower(entry) {
			t.Fatalf("%q is not folded and can never match", entry)
		}
		if len(entry) >= 12 {
			long[entry] = true
		}
	})
	if len(long) < 10_000 {
		t.Fatalf("%d entries have the default minimum length, want at least 10,000", len(long))
	}
}

func TestLockout(t *testing.T) {
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	var f Failures
	for i := range 19 {
		f = f.Failed(now.Add(time.Duration(i) * time.Minute))
	}
	if f.Locked(now.Add(19*time.Minute), 15*time.Minute) {
		t.Fatal("locked after nineteen failures")
	}
	last := now.Add(19 * time.Minute)
	f = f.Failed(last)
	if !f.JustLocked() || !f.Locked(last, 15*time.Minute) || !f.Locked(last.Add(15*time.Minute-1), 15*time.Minute) {
		t.Fatal("not locked after twenty failures")
	}
	if f.Locked(last.Add(15*time.Minute), 15*time.Minute) {
		t.Fatal("locked beyond the duration")
	}
	if f = f.Failed(now.Add(24 * time.Hour)); f.Count != 1 {
		t.Fatalf("failures of yesterday count: %d", f.Count)
	}
}

func TestDeviceStep(t *testing.T) {
	further := func(policy ApprovalPolicy, driver string, amr ...string) DeviceLogin {
		return DeviceLogin{Policy: policy, Driver: driver, AMR: amr, Active: 1, Living: 1, Limit: 50}
	}
	for name, c := range map[string]struct {
		login DeviceLogin
		want  DeviceOutcome
		via   DeviceApproval
	}{
		"own key":                      {DeviceLogin{Key: KeyOwn, Active: 3, Living: 3, Limit: 50}, DeviceUse, ""},
		"own key at the limit":         {DeviceLogin{Key: KeyOwn, Active: 50, Living: 50, Limit: 50}, DeviceUse, ""},
		"key of another":               {DeviceLogin{Key: KeyForeign, Limit: 50}, DeviceForeign, ""},
		"first device":                 {DeviceLogin{Policy: ApprovalRequired, Driver: "local", Limit: 50}, DeviceCreate, ApprovedFirst},
		"first beside one that waits":  {DeviceLogin{Policy: ApprovalRequired, Living: 1, Limit: 50}, DeviceCreate, ApprovedFirst},
		"enrollment":                   {DeviceLogin{Enrollment: true, Policy: ApprovalRequired, Active: 1, Living: 1, Limit: 50}, DeviceCreate, ApprovedEnrollment},
		"limit":                        {DeviceLogin{Active: 49, Living: 50, Limit: 50}, DeviceLimit, ""},
		"password, off":                {further(ApprovalOff, "local", "pwd"), DeviceCreate, ApprovedPolicy},
		"password":                     {further(ApprovalPassword, "local", "pwd"), DeviceWait, ""},
		"passkey":                      {further(ApprovalPassword, "passkey", "hwk"), DeviceCreate, ApprovedPolicy},
		"passkey, required":            {further(ApprovalRequired, "passkey", "hwk"), DeviceWait, ""},
		"provider":                     {further(ApprovalPassword, "oidc"), DeviceWait, ""},
		"provider with second factor":  {further(ApprovalPassword, "oidc", "pwd", "mfa"), DeviceCreate, ApprovedPolicy},
		"provider with a hardware key": {further(ApprovalPassword, "oidc", "hwk"), DeviceCreate, ApprovedPolicy},
		"header":                       {further(ApprovalPassword, "trusted_header"), DeviceCreate, ApprovedPolicy},
		"unknown policy asks":          {further("", "local", "pwd"), DeviceWait, ""},
	} {
		if got, via := DeviceStep(c.login); got != c.want || via != c.via {
			t.Errorf("%s: %v %q", name, got, via)
		}
	}
}

func TestVerificationCode(t *testing.T) {
	flow := ids.MustParse("0199c2a0-0012-7000-8000-000000000012")
	if got := VerificationCode(flow, Thumbprint{1}); got != "217428" {
		t.Errorf("the code of the vector is %s", got)
	}
	if VerificationCode(flow, Thumbprint{1}) == VerificationCode(flow, Thumbprint{2}) {
		t.Error("another key shows the same code")
	}
}

func TestSkeleton(t *testing.T) {
	for _, pair := range [][2]string{{"Ana Silva", "аnа silva"}, {"Ana Silva", "ANA  S1LVA"}, {"Bill", "BiII"}, {"Ana", "Ａｎａ"}, {"Ana", "An\u200ba"}, {"o'hara", "0'hara"}} {
		if Skeleton(pair[0]) != Skeleton(pair[1]) {
			t.Errorf("%q and %q look alike and differ: %q, %q", pair[0], pair[1], Skeleton(pair[0]), Skeleton(pair[1]))
		}
	}
	if Skeleton("Ana Silva") == Skeleton("Anna Silva") {
		t.Error("different names count as one")
	}
}

func TestProfileFields(t *testing.T) {
	for name, c := range map[string]struct {
		fault Fault
		ok    bool
	}{
		"name":           {CheckName("Ana", DisplayNameMax), true},
		"empty name":     {CheckName("  ", DisplayNameMax), false},
		"reordered name": {CheckName("Ana\u202e", DisplayNameMax), false},
		"unseen name":    {CheckName("\u200b\u3164", DisplayNameMax), false},
		"tower of marks": {CheckName("e"+strings.Repeat("\u0301", 60), DisplayNameMax), false},
		"long name":      {CheckName(strings.Repeat("ä", 81), DisplayNameMax), false},
		"80 letters":     {CheckName(strings.Repeat("ä", 80), DisplayNameMax), true},
		"bio":            {CheckParagraph("two\nlines", BioMax), true},
		"locale":         {CheckLocale("pt-BR"), true},
		"bad locale":     {CheckLocale("english please"), false},
		"empty locale":   {CheckLocale(""), false},
		"zone":           {CheckTimeZone("Europe/Berlin"), true},
		"bad zone":       {CheckTimeZone("Mars/Base"), false},
		"email":          {CheckEmail("ana@example.org"), true},
		"named email":    {CheckEmail("Ana <ana@example.org>"), false},
		"bad email":      {CheckEmail("ana"), false},
	} {
		if (c.fault == FaultNone) != c.ok {
			t.Errorf("%s: %q", name, c.fault)
		}
	}
}

func TestAccessClaims(t *testing.T) {
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	want := AccessClaims{
		Issuer: "https://chat.example", PrincipalID: ids.New(), SessionID: ids.New(), DeviceID: ids.New(), SessionKind: "login",
		IssuedAt: now, ExpiresAt: now.Add(10 * time.Minute), TokenID: ids.New(), AuthTime: now, AMR: []string{"pwd"}, Epoch: 3,
		JKT: Thumbprint{1, 2, 3},
	}
	payload, err := want.Encode()
	if err != nil {
		t.Fatal(err)
	}
	got, err := ReadAccessClaims(payload, "https://chat.example", now)
	if err != nil || got.SessionID != want.SessionID || got.JKT != want.JKT || got.Epoch != 3 || !got.ExpiresAt.Equal(want.ExpiresAt) {
		t.Fatalf("read back %+v, %v", got, err)
	}
	if _, err := ReadAccessClaims(payload, "https://other.example", now); !errors.Is(err, ErrAccessTokenAddress) {
		t.Errorf("another issuer: %v", err)
	}
	if _, err := ReadAccessClaims(payload, "https://chat.example", now.Add(10*time.Minute)); !errors.Is(err, ErrAccessTokenExpired) {
		t.Errorf("expired: %v", err)
	}
}

func FuzzReadAccessClaims(f *testing.F) {
	f.Add([]byte(`{"iss":"https://chat.example","aud":"bothy-api"}`))
	f.Add([]byte(`null`))
	f.Fuzz(func(t *testing.T, payload []byte) {
		c, err := ReadAccessClaims(payload, "https://chat.example", time.Unix(0, 0))
		if err == nil && (c.SessionID.IsZero() || c.PrincipalID.IsZero()) {
			t.Fatal("claims without session or principal")
		}
	})
}
