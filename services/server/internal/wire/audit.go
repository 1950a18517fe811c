// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"

	"github.com/OWNER/bothy/services/server/internal/audit/adapters/filesink"
	audithttp "github.com/OWNER/bothy/services/server/internal/audit/adapters/httpapi"
	auditjobs "github.com/OWNER/bothy/services/server/internal/audit/adapters/jobs"
	auditmetrics "github.com/OWNER/bothy/services/server/internal/audit/adapters/otelmetrics"
	auditpg "github.com/OWNER/bothy/services/server/internal/audit/adapters/postgres"
	auditapp "github.com/OWNER/bothy/services/server/internal/audit/app"
	"github.com/OWNER/bothy/services/server/internal/platform/jsoncanon"
)

type auditModule struct {
	recorder *auditapp.Service
	verify   *auditapp.ChainVerify
	http     audithttp.Handlers
}

func (p *process) buildAudit(context.Context) error {
	config := p.config.Modules.Audit.App
	wrap, err := p.secrets.Resolve("audit.ip_key_wrap_ref", p.config.Modules.Audit.KeyRef)
	if err != nil {
		return fmt.Errorf("resolve the key of the address pseudonyms: %w", err)
	}
	if config.IPKeyWrap, err = decodeKey(wrap.Reveal()); err != nil {
		return err
	}
	folder, err := filesink.Parse(p.config.Modules.Audit.CheckpointSink)
	if err != nil {
		return fmt.Errorf("audit.checkpoint_sink: %w", err)
	}
	var sink auditapp.Sink
	if folder != "" {
		sink = filesink.New(folder)
	}
	service := auditapp.New(config, auditapp.Deps{
		Store: auditpg.New(p.db), Units: p.units, Clock: p.clock, Counters: p.instance.service, Instance: p.instance.service,
		Keys: p.instance.service, Public: p.instance.service, Sink: sink, Metrics: auditmetrics.New(p.meter, p.clock), Canonicalize: jsoncanon.Transform, Log: p.log,
	})
	p.audit = &auditModule{recorder: service, verify: service.ChainVerify(), http: audithttp.Handlers{Audit: service}}
	auditjobs.Register(p.jobs, p.audit.verify, p.config.Modules.Audit.CheckpointInterval)
	return nil
}

// ipKeyBytes is the size of the wrapping key.
const ipKeyBytes = 32

// decodeKey reads a secret of the form that "secrets init" writes: random bytes in base64url.
func decodeKey(text string) ([]byte, error) {
	key, err := base64.RawURLEncoding.DecodeString(text)
	if err != nil || len(key) != ipKeyBytes {
		return nil, errors.New("audit.ip_key_wrap_ref: the secret must be 32 bytes in unpadded base64url")
	}
	return key, nil
}
