// SPDX-License-Identifier: Apache-2.0

package httpserver

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"time"

	"github.com/OWNER/bothy/services/server/internal/kernel/actor"
	"github.com/OWNER/bothy/services/server/internal/kernel/authorize"
	"github.com/OWNER/bothy/services/server/internal/kernel/errs"
	"github.com/OWNER/bothy/services/server/internal/kernel/flush"
	"github.com/OWNER/bothy/services/server/internal/kernel/reqmeta"
	"github.com/OWNER/bothy/services/server/internal/platform/otel"
)

// exchange is one request with its answer: the state that the stages share, and the
// response writer that keeps the promises of the package.
type exchange struct {
	chain  *Chain
	w      http.ResponseWriter
	r      *http.Request
	meta   reqmeta.Meta
	span   *otel.Span
	start  time.Time
	op     *Operation
	actor  actor.Actor
	mark   *flush.Mark
	checks *authorize.CheckLog

	// body is the body as it came, once a stage has read it.
	body     []byte
	bodyRead bool
	// position is what a read reflects, zero when unknown.
	position int64

	// routed is set by the route; until then the answers of the router are only noted.
	routed         bool
	unroutedStatus int

	wrote, discard bool
	status         int
	size           int64
	code           errs.Code
	ifMatch        int64
}

type exchangeKey struct{}

func exchangeFrom(ctx context.Context) *exchange {
	x, _ := ctx.Value(exchangeKey{}).(*exchange)
	return x
}

// Header implements http.ResponseWriter.
func (x *exchange) Header() http.Header { return x.w.Header() }

// Unwrap lets http.ResponseController reach the connection.
func (x *exchange) Unwrap() http.ResponseWriter { return x.w }

// WriteHeader implements http.ResponseWriter. The first success passes the proof of the
// check here, because only here the status of the answer is known.
func (x *exchange) WriteHeader(status int) {
	switch {
	case !x.routed:
		x.unroutedStatus = status
		return
	case status < 200:
		x.w.WriteHeader(status)
		return
	case x.wrote:
		return
	case status < 400 && !x.proven():
		x.unproven(x)
		x.discard = true
		return
	}
	x.writeHeader(status)
}

func (x *exchange) writeHeader(status int) {
	x.wrote, x.status = true, status
	if status < 400 {
		x.setSyncSeq(x.Header())
		x.inspect()
	}
	x.w.WriteHeader(status)
}

func (x *exchange) inspect() {
	if inspect := x.chain.options.Inspect; inspect != nil && x.op != nil && x.checks != nil {
		inspect(x.r, *x.op, x.checks)
	}
}

func (x *exchange) setSyncSeq(h http.Header) {
	seq := x.position
	if x.mark != nil && x.mark.Seq() > seq {
		seq = x.mark.Seq()
	}
	if seq > 0 {
		h.Set("Sync-Seq", strconv.FormatInt(seq, 10))
	}
}

// Write implements http.ResponseWriter.
func (x *exchange) Write(b []byte) (int, error) {
	if !x.routed {
		return len(b), nil
	}
	if !x.wrote {
		x.WriteHeader(http.StatusOK)
	}
	if x.discard {
		return len(b), nil
	}
	n, err := x.w.Write(b)
	x.size += int64(n)
	return n, err
}

// FlushError implements what http.ResponseController looks for. The header passes the proof
// like any other, so a stream cannot begin without it.
func (x *exchange) FlushError() error {
	if !x.wrote {
		x.WriteHeader(http.StatusOK)
	}
	if x.discard {
		return nil
	}
	return http.NewResponseController(x.w).Flush()
}

// Hijack implements http.Hijacker, for operations that are authorized on their connection.
func (x *exchange) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	if x.op == nil || !x.op.AuthorizedInBand {
		return nil, nil, errors.New("only operations that authorize in-band may take over the connection")
	}
	conn, rw, err := http.NewResponseController(x.w).Hijack()
	if err != nil {
		return nil, nil, fmt.Errorf("take over the connection: %w", err)
	}
	x.wrote, x.status = true, http.StatusSwitchingProtocols
	return conn, rw, nil
}

// proven reports whether a success may leave.
func (x *exchange) proven() bool {
	if x.op == nil || x.op.AuthorizedInBand {
		return true
	}
	return x.checks != nil && x.checks.Covers(x.op.Action)
}

// unproven answers in place of a handler that succeeded without asking whether it may. It
// is loud on purpose: such an answer is a hole that was caught at the last moment.
func (x *exchange) unproven(w http.ResponseWriter) {
	var checks []authorize.Check
	if x.checks != nil {
		checks = x.checks.Checks()
	}
	x.chain.count("bothy.authz.errors", "bothy.reason", "authz_not_checked")
	if x.chain.options.Unproven != nil {
		x.chain.options.Unproven(*x.op, checks)
	}
	for name := range w.Header() {
		if !baseHeader[name] {
			w.Header().Del(name)
		}
	}
	x.fail(w, errs.Internal(errors.New("authz_not_checked: the handler of "+x.op.ID+" never checked "+string(x.op.Action))))
}

// readBody reads the whole body once, within the limit that the operation stage has set.
func (x *exchange) readBody(r *http.Request) ([]byte, error) {
	if x.bodyRead {
		return x.body, nil
	}
	var buf bytes.Buffer
	if n := r.ContentLength; n > 0 {
		buf.Grow(int(n) + bytes.MinRead)
	}
	if _, err := io.Copy(&buf, r.Body); err != nil {
		var tooLarge *http.MaxBytesError
		if errors.As(err, &tooLarge) {
			return nil, payloadTooLarge(tooLarge.Limit)
		}
		return nil, errs.New(errs.CodeMalformedRequest, "The body could not be read to its end.").WithCause(err)
	}
	x.body, x.bodyRead = buf.Bytes(), true
	return x.body, nil
}

func withBody(r *http.Request, body []byte) {
	if len(body) == 0 {
		r.Body, r.ContentLength = http.NoBody, 0
		return
	}
	r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
}

func payloadTooLarge(limit int64) error {
	return errs.New(errs.CodePayloadTooLarge, "The body is too large; it may have "+strconv.FormatInt(limit, 10)+" bytes.")
}
