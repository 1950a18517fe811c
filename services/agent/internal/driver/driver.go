// SPDX-License-Identifier: Apache-2.0

// Package driver has what does the work of a run: echo, which says the order back and exercises what an integration
// has to handle, and command, which starts a program.
package driver

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/OWNER/bothy/sdk/go/agent"
	"github.com/OWNER/bothy/sdk/go/api"

	"github.com/OWNER/bothy/services/agent/internal/settings"
)

// Driver does the work of runs.
type Driver interface {
	// Work does one run. It returns soon after its context ended, with the cause.
	Work(ctx context.Context, run *agent.Run) error
	// Interrupted ends what a run left behind when the adapter crashed, from what the run had kept.
	Interrupted(ctx context.Context, runID string, kept json.RawMessage)
	// Check says whether the driver could work now.
	Check() error
	// Report is what the driver tells about itself.
	Report() agent.Report
}

// New makes the driver of the settings.
func New(s *settings.Settings, log *slog.Logger) (Driver, error) {
	switch s.Driver.Kind {
	case "echo":
		return &echo{pause: s.Driver.Echo.Pause}, nil
	case "command":
		return newCommand(s, log)
	}
	return nil, fmt.Errorf("no driver %q", s.Driver.Kind)
}

// mention is how a message names somebody.
var mention = regexp.MustCompile(`<@[0-9a-fA-F-]{36}>`)

// order is the text of a message without the mention that set the agent to work.
func order(text, agentID string) string {
	text = mention.ReplaceAllStringFunc(text, func(m string) string {
		if strings.EqualFold(m, "<@"+agentID+">") {
			return ""
		}
		return m
	})
	return strings.TrimSpace(text)
}

// evidence says by what the adapter knows how its work is paid for.
func evidence(keyType, method string) *api.BillingEvidenceInput {
	return &api.BillingEvidenceInput{KeyType: keyType, Method: method}
}

// folder is where the programs of a thread run. The thread's ID comes from the server, so it is not trusted to be one.
func folder(w settings.Work, threadID string) (string, error) {
	dir := w.Root
	if w.Mode != "fixed" {
		if threadID != filepath.Base(threadID) || strings.HasPrefix(threadID, ".") || threadID == "" {
			return "", fmt.Errorf("%q is no ID of a thread", threadID)
		}
		dir = filepath.Join(dir, threadID)
	}
	const private = 0o700
	if err := os.MkdirAll(dir, private); err != nil {
		return "", fmt.Errorf("working folder: %w", err)
	}
	return dir, nil
}
