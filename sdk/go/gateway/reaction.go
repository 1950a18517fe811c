// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"errors"
	"fmt"
	mathrand "math/rand/v2"
	"strconv"
	"strings"
	"time"

	bothy "github.com/OWNER/bothy/sdk/go"
)

// The ends that no reconnect heals. Run returns them wrapped in a *CloseError where the server said so.
var (
	// ErrCredentials means that the token or session is refused. Log in anew, or make a new token.
	ErrCredentials = errors.New("credentials refused")
	// ErrConsumerTaken means that another process holds this agent.
	ErrConsumerTaken = errors.New("another process holds this agent")
	// ErrDeviceElsewhere means that the same device connected a second time.
	ErrDeviceElsewhere = errors.New("the device is connected elsewhere")
	// ErrForbidden means that the principal may not connect.
	ErrForbidden = errors.New("may not connect")
	// ErrProtocol means that server and SDK do not understand each other: one of them must be updated.
	ErrProtocol = errors.New("protocol not understood")
	// ErrForeign means that the instance or the principal is not the one of the stored position.
	ErrForeign = errors.New("not the instance or principal of the stored position")
)

// CloseCode is why the server ended a connection.
type CloseCode int

// The close codes of the contract.
const (
	CodeInternal         CloseCode = 4000
	CodeMalformed        CloseCode = 4001
	CodeUnknownOp        CloseCode = 4002
	CodeIdentifyTimeout  CloseCode = 4003
	CodeAuthentication   CloseCode = 4004
	CodeIdentified       CloseCode = 4005
	CodeSessionUnknown   CloseCode = 4006
	CodeCursor           CloseCode = 4007
	CodeRateLimited      CloseCode = 4008
	CodeHeartbeatMissed  CloseCode = 4009
	CodeCredentialsEnded CloseCode = 4010
	CodeProtocolVersion  CloseCode = 4011
	CodeNotAvailable     CloseCode = 4012
	CodeServerRestart    CloseCode = 4013
	CodeTooSlow          CloseCode = 4014
	CodeConsumerTaken    CloseCode = 4015
	CodeFrameTooLarge    CloseCode = 4016
	CodeDeviceElsewhere  CloseCode = 4017
	CodeForbidden        CloseCode = 4018
)

// CloseError is an end the server gave a reason for.
type CloseError struct {
	Code CloseCode
	// Reason is the name of the code and, behind a colon, a detail.
	Reason string
	kind   error
}

// Error implements error.
func (e *CloseError) Error() string {
	return fmt.Sprintf("%v: connection closed with %d %s", e.kind, int(e.Code), e.Reason)
}

// Unwrap tells the kind of the end, such as ErrConsumerTaken.
func (e *CloseError) Unwrap() error { return e.kind }

// ending is how a connection ended.
type ending struct {
	code   CloseCode // 0 when the transport failed
	reason string
	err    error
	// live is how long the connection was in use.
	live time.Duration
	// retryAfter is the longest wait the server asked for.
	retryAfter time.Duration
}

func (e ending) detail() string {
	_, detail, _ := strings.Cut(e.reason, ":")
	return detail
}

// reaction is what to do after an ending.
type reaction struct {
	delay time.Duration
	// resume goes on with the session; otherwise the next connection identifies.
	resume bool
	// renew gets a fresh token first.
	renew bool
	// resync loads the state anew first.
	resync bool
	// catchUp reads what was missed over REST first.
	catchUp bool
	stop    error
}

// history is what earlier endings mean for the next reaction.
type history struct {
	// attempts since a connection was last in use for a while.
	attempts int
	// refused counts refusals of the credential in a row.
	refused int
	// faults and slow are the times of recent ends by a fault of this side, and by its slowness.
	faults, slow []time.Time
}

const (
	// settled is how long a connection lives until the waits begin anew.
	settled      = time.Minute
	faultWindow  = 10 * time.Minute
	slowWindow   = 5 * time.Minute
	manyInWindow = 3
)

// react applies the table of the contract: what a client does after each close code.
func (h *history) react(e ending, now time.Time, backoff func(n int) time.Duration) reaction {
	if e.live >= settled {
		h.attempts = 0
	}
	n := h.attempts
	h.attempts++
	if e.live > 0 {
		h.refused = 0
	}
	stop := func(kind error) reaction {
		return reaction{stop: &CloseError{Code: e.code, Reason: e.reason, kind: kind}}
	}
	const second = time.Second
	switch e.code {
	case CodeMalformed, CodeUnknownOp:
		if h.faults = recent(h.faults, now, faultWindow); len(h.faults) >= manyInWindow {
			return stop(ErrProtocol)
		}
		return reaction{delay: backoff(n + manyInWindow)}
	case CodeIdentifyTimeout:
		return reaction{delay: backoff(n)}
	case CodeAuthentication, CodeCredentialsEnded:
		if h.refused++; h.refused > 1 {
			return stop(ErrCredentials)
		}
		again := reaction{renew: true, resume: e.code == CodeCredentialsEnded}
		if n > 0 {
			again.delay = backoff(n - 1)
		}
		return again
	case CodeSessionUnknown:
		return reaction{delay: upTo(second)}
	case CodeCursor:
		return reaction{delay: upTo(5 * second), resync: true}
	case CodeRateLimited:
		return reaction{delay: max(e.retryAfter, 10*second) + backoff(n), resume: true}
	case CodeHeartbeatMissed:
		return reaction{delay: upTo(second), resume: true}
	case CodeProtocolVersion:
		return stop(ErrProtocol)
	case CodeNotAvailable:
		return reaction{delay: 15*second + upTo(45*second)}
	case CodeServerRestart:
		return reaction{delay: upTo(restartSpread(e.detail()))}
	case CodeTooSlow:
		h.slow = recent(h.slow, now, slowWindow)
		return reaction{delay: backoff(n), resume: true, catchUp: len(h.slow) >= manyInWindow}
	case CodeConsumerTaken:
		return stop(ErrConsumerTaken)
	case CodeDeviceElsewhere:
		return stop(ErrDeviceElsewhere)
	case CodeForbidden:
		return stop(ErrForbidden)
	case CodeInternal, CodeIdentified, CodeFrameTooLarge:
		return reaction{delay: backoff(n), resume: true}
	}
	switch {
	case errors.Is(e.err, bothy.ErrSignedOut):
		return reaction{stop: fmt.Errorf("%w: %w", ErrCredentials, e.err)}
	case errors.Is(e.err, ErrForeign), errors.Is(e.err, ErrProtocol):
		return reaction{stop: e.err}
	}
	return reaction{delay: max(e.retryAfter, backoff(n)), resume: true}
}

// recent adds a time and drops those outside the window.
func recent(times []time.Time, now time.Time, window time.Duration) []time.Time {
	kept := times[:0]
	for _, t := range times {
		if now.Sub(t) < window {
			kept = append(kept, t)
		}
	}
	return append(kept, now)
}

func restartSpread(detail string) time.Duration {
	const standard, longest = 5 * time.Second, 5 * time.Minute
	ms, err := strconv.ParseInt(detail, 10, 32)
	if err != nil || ms < 0 {
		return standard
	}
	return min(time.Duration(ms)*time.Millisecond, longest)
}

func upTo(d time.Duration) time.Duration { return mathrand.N(d + 1) }
