// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"

	"github.com/OWNER/bothy/sdk/go/api"
)

// audit verifies the record of everything so far, exports it, verifies the file without a server and finds that a
// changed file does not verify.
func (s *story) audit(ctx context.Context) error {
	if _, err := s.bob.VerifyAudit(ctx, api.VerifyAuditRequest{}); err == nil {
		return errors.New("somebody who is no owner reads the audit log")
	}
	result, err := s.owner.VerifyAudit(ctx, api.VerifyAuditRequest{})
	if err != nil {
		return err
	}
	if !result.Ok || result.Checked == 0 {
		return fmt.Errorf("of %d rows %d places are broken", result.Checked, len(result.Breaks))
	}
	var export bytes.Buffer
	if err := s.owner.ExportAudit(ctx, &export); err != nil {
		return err
	}
	file := s.in.path("audit.ndjson")
	if err := os.WriteFile(file, export.Bytes(), 0o600); err != nil {
		return err
	}
	// Nothing is broken, and no checkpoint is there yet that a key could vouch for.
	const unvouched, broken = 4, 1
	if _, err := s.in.command(ctx, "audit", "verify", file); exitCode(err) != unvouched {
		return fmt.Errorf("the export: %w", orNone(err))
	}
	changed := bytes.Replace(export.Bytes(), []byte(`"allow"`), []byte(`"deny"`), 1)
	if err := os.WriteFile(file, changed, 0o600); err != nil {
		return err
	}
	if _, err := s.in.command(ctx, "audit", "verify", file); exitCode(err) != broken {
		return fmt.Errorf("a changed export: %w", orNone(err))
	}
	return nil
}

func exitCode(err error) int {
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		return exit.ExitCode()
	}
	return 0
}
