// SPDX-License-Identifier: Apache-2.0

package contract_test

import (
	"errors"
	"io"
	"testing"

	"github.com/OWNER/bothy/services/server/api/contract"
	"github.com/OWNER/bothy/services/server/internal/kernel/errs"
)

func TestEveryFaultIsReportedAtOnceWithAPointer(t *testing.T) {
	contract.Prepare()
	err := contract.Body("createGrant", []byte(`{"subject":{"kind":"robot","id":"0199C2A0-000B-7000-8000-00000000000B"},"level":"write",
		"capabilities":["export","fly"],"expires_at":"tomorrow","a/b~c":1}`))
	got := map[string]string{}
	for _, f := range errs.As(err).Fields {
		got[f.Pointer] = f.Code
	}
	want := map[string]string{
		"/target": "required", "/subject/kind": "not_allowed", "/subject/id": "malformed", "/capabilities/1": "not_allowed",
		"/expires_at": "malformed", "/a~1b~0c": "unknown_member",
	}
	for pointer, code := range want {
		if got[pointer] != code {
			t.Errorf("%s: got %q, want %q", pointer, got[pointer], code)
		}
	}
	if len(got) != len(want) {
		t.Errorf("got %v", got)
	}
}

func TestTheFaultOfAMemberThatMayBeNullIsTheOneOfItsValue(t *testing.T) {
	err := contract.Body("updateSelf", []byte(`{"custom_status":{"text":"","until":null}}`))
	fields := errs.As(err).Fields
	if len(fields) != 1 || fields[0].Pointer != "/custom_status/text" || fields[0].Code != "too_short" {
		t.Errorf("got %+v", fields)
	}
	if err := contract.Body("updateSelf", []byte(`{"custom_status":null}`)); err != nil {
		t.Errorf("null: %v", err)
	}
}

func TestAnAbsentBodyIsToldFromABrokenOne(t *testing.T) {
	if err := contract.Body("createSpace", []byte(" \n")); !errors.Is(err, io.EOF) || errs.As(err).Code != errs.CodeMalformedRequest {
		t.Errorf("absent: %v", err)
	}
	if err := contract.Body("createSpace", []byte("{")); errors.Is(err, io.EOF) || errs.As(err).Code != errs.CodeMalformedRequest {
		t.Errorf("broken: %v", err)
	}
}

func FuzzBody(f *testing.F) {
	f.Add("createMessage", []byte(`{"client_msg_id":"0199c2a0-000b-7000-8000-00000000000b","content":"a"}`))
	f.Add("updateRun", []byte(`{"base_version":1,"patch":{"steps":{"a":{"input":[1]}}}}`))
	f.Fuzz(func(t *testing.T, operation string, raw []byte) {
		err := contract.Body(operation, raw)
		var public *errs.Error
		if errors.As(err, &public) && public.Code != errs.CodeValidationFailed && public.Code != errs.CodeMalformedRequest {
			t.Errorf("got %v", err)
		}
	})
}
