// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"context"
	"crypto"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/OWNER/bothy/services/server/internal/audit"
	"github.com/OWNER/bothy/services/server/internal/audit/adapters/export"
	"github.com/OWNER/bothy/services/server/internal/audit/adapters/filesink"
	"github.com/OWNER/bothy/services/server/internal/kernel/jose"
	"github.com/OWNER/bothy/services/server/internal/platform/jsoncanon"
)

// The exit codes of the command that verifies an export, beside the common ones.
const (
	auditUnreadable = 3
	auditUnvouched  = 4
)

// AuditVerify says what is held against what.
type AuditVerify struct {
	// File is an export; "-" is standard input.
	File string
	// JWKS are files with public keys, all of which count, Key is one with a single key.
	JWKS []string
	Key  string
	// Checkpoints is the folder of deposited checkpoints.
	Checkpoints string
	// JSON prints the report as one object.
	JSON bool
}

// VerifyAuditFile verifies an export. It needs neither configuration nor database nor server.
func VerifyAuditFile(ctx context.Context, in AuditVerify, stdin io.Reader, console Console) error {
	options := export.CheckOptions{Canonicalize: jsoncanon.Transform}
	var err error
	if options.Trusted, err = trustedKeys(in.JWKS, in.Key); err != nil {
		return ExitError{2, err}
	}
	if in.Checkpoints != "" {
		if options.Deposits, err = filesink.Read(in.Checkpoints); err != nil {
			return ExitError{2, err}
		}
	}
	file := stdin
	if in.File != "-" {
		f, err := os.Open(in.File)
		if err != nil {
			return ExitError{2, err}
		}
		defer func() { _ = f.Close() }()
		file = f
	}
	report, err := export.Check(ctx, file, options)
	if in.JSON {
		printReportJSON(console.Out, report, err)
	} else {
		printReport(console.Out, report, err)
	}
	switch {
	case len(report.Breaks) > 0:
		return errors.Join(fmt.Errorf("the record is broken at %d places", len(report.Breaks)), err)
	case errors.Is(err, export.ErrForm):
		return ExitError{auditUnreadable, err}
	case err != nil:
		return err
	case !report.Signed:
		return ExitError{auditUnvouched, errors.New("nothing is broken, and nobody vouches for it: " + unvouched(options, report))}
	default:
		return nil
	}
}

func unvouched(o export.CheckOptions, r export.Report) string {
	if len(o.Trusted) == 0 {
		return "name keys that did not come with the file, with --jwks or --key"
	}
	if r.Checkpoints == 0 {
		return "the file has no checkpoint"
	}
	if r.SignedSeq == 0 {
		return "no checkpoint was signed with a key that you brought"
	}
	return fmt.Sprintf("the last checkpoint that was signed with a key that you brought covers the rows up to %d", r.SignedSeq)
}

// maxKeyFile bounds a file with keys.
const maxKeyFile = 1 << 20

// trustedKeys reads keys and names each by its own fingerprint, whatever the file calls it.
func trustedKeys(sets []string, single string) (map[string]crypto.PublicKey, error) {
	keys := map[string]crypto.PublicKey{}
	for _, jwks := range sets {
		raw, err := readKeyFile(jwks)
		if err != nil {
			return nil, err
		}
		var set struct{ Keys []jose.JWK }
		if err := json.Unmarshal(raw, &set); err != nil || len(set.Keys) == 0 {
			return nil, fmt.Errorf("%s holds no JWKS", jwks)
		}
		for _, k := range set.Keys {
			public, err := k.Public()
			if err != nil {
				continue // Keys of other purposes may have forms that checkpoints never use.
			}
			if err := trust(keys, public); err != nil {
				return nil, err
			}
		}
	}
	if single != "" {
		raw, err := readKeyFile(single)
		if err != nil {
			return nil, err
		}
		public, err := publicKey(raw)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", single, err)
		}
		if err := trust(keys, public); err != nil {
			return nil, err
		}
	}
	return keys, nil
}

func trust(keys map[string]crypto.PublicKey, public crypto.PublicKey) error {
	jwk, err := jose.FromPublic(public)
	if err != nil {
		return fmt.Errorf("a key that checkpoints never use: %w", err)
	}
	kid, err := jwk.Thumbprint()
	if err != nil {
		return err
	}
	keys[kid] = public
	return nil
}

// publicKey reads a key in PEM form or as a JWK.
func publicKey(raw []byte) (crypto.PublicKey, error) {
	if block, _ := pem.Decode(raw); block != nil {
		return x509.ParsePKIXPublicKey(block.Bytes)
	}
	var k jose.JWK
	if err := json.Unmarshal(raw, &k); err != nil {
		return nil, errors.New("neither a public key in PEM form nor a JWK")
	}
	return k.Public()
}

func readKeyFile(name string) ([]byte, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	return io.ReadAll(io.LimitReader(f, maxKeyFile))
}

// sentences say what a word of the report means.
var sentences = map[string]string{
	audit.BreakGap:                 "a row before it is missing",
	audit.BreakHash:                "the row was changed",
	audit.BreakLink:                "the row does not follow the one before it",
	audit.BreakCheckpointSignature: "the checkpoint was not signed with the key it names",
	audit.BreakCheckpointHash:      "the checkpoint covers other rows, or follows another checkpoint",
	audit.BreakAnchor:              "rows before it were removed, and no anchor says so",
	export.BreakCut:                "the end of the file is missing",
	export.BreakDeposit:            "a checkpoint outside says something else",
	audit.WarnTail:                 "no checkpoint of the file covers its last rows",
	audit.WarnTrimmed:              "old rows were removed by retention; an anchor stands for them",
	audit.WarnUnknownKey:           "checkpoints name a key that was not brought: an older or newer copy of the JWKS may have it",
	audit.WarnBeginning:            "the file begins inside the record, and nothing in it vouches for its first row",
}

func printReport(w io.Writer, r export.Report, err error) {
	line := func(format string, args ...any) { _, _ = fmt.Fprintf(w, format+"\n", args...) }
	if !r.Head.InstanceID.IsZero() {
		line("instance %s, exported %s", r.Head.InstanceID, r.Head.ExportedAt.UTC().Format("2006-01-02T15:04:05Z"))
		line("rows %d to %d of %d to %d: %d read", r.Head.FromSeq, r.Head.ToSeq, r.Head.FirstSeq, r.Head.LastSeq, r.Checked)
		line("checkpoints %d, deposited ones that agree %d, beyond the file %d", r.Checkpoints, r.Deposits, r.Beyond)
	}
	for _, b := range r.Breaks {
		if b.Detail != "" {
			line("broken %s at row %d: %s (%s)", b.Kind, b.Seq, sentences[b.Kind], b.Detail)
			continue
		}
		line("broken %s at row %d: %s", b.Kind, b.Seq, sentences[b.Kind])
	}
	for _, word := range r.Warnings {
		line("warning %s: %s", word, sentences[word])
	}
	for _, k := range r.UnknownKeys {
		line("unknown key %q: named by checkpoints from row %d to row %d", k.KID, k.FirstSeq, k.LastSeq)
	}
	line("%s", verdict(r, err))
}

func verdict(r export.Report, err error) string {
	switch {
	case r.Signed:
		return "intact"
	case r.OK:
		return "unvouched"
	case err != nil && len(r.Breaks) == 0:
		return "unreadable"
	default:
		return "broken"
	}
}

func printReportJSON(w io.Writer, r export.Report, err error) {
	type found struct {
		Seq    int64  `json:"seq"`
		Kind   string `json:"kind"`
		Detail string `json:"detail,omitempty"`
	}
	type unknown struct {
		KID      string `json:"kid"`
		FirstSeq int64  `json:"first_seq"`
		LastSeq  int64  `json:"last_seq"`
	}
	out := struct {
		Verdict     string    `json:"verdict"`
		Error       string    `json:"error,omitempty"`
		InstanceID  string    `json:"instance_id"`
		FromSeq     int64     `json:"from_seq"`
		ToSeq       int64     `json:"to_seq"`
		Checked     int64     `json:"checked"`
		Checkpoints int       `json:"checkpoints"`
		Deposits    int       `json:"deposits"`
		Beyond      int       `json:"deposits_beyond"`
		Breaks      []found   `json:"breaks"`
		Warnings    []string  `json:"warnings"`
		SignedSeq   int64     `json:"signed_seq"`
		UnknownKeys []unknown `json:"unknown_keys"`
	}{
		Verdict: verdict(r, err), InstanceID: r.Head.InstanceID.String(), FromSeq: r.Head.FromSeq, ToSeq: r.Head.ToSeq, Checked: r.Checked,
		Checkpoints: r.Checkpoints, Deposits: r.Deposits, Beyond: r.Beyond, Breaks: []found{}, Warnings: append([]string{}, r.Warnings...),
		SignedSeq: r.SignedSeq, UnknownKeys: []unknown{},
	}
	if err != nil {
		out.Error = err.Error()
	}
	for _, b := range r.Breaks {
		out.Breaks = append(out.Breaks, found(b))
	}
	for _, k := range r.UnknownKeys {
		out.UnknownKeys = append(out.UnknownKeys, unknown(k))
	}
	_ = json.NewEncoder(w).Encode(out)
}
