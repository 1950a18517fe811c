// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"errors"
	"fmt"
	"testing"
	"time"

	bothy "github.com/OWNER/bothy/sdk/go"
)

// steps makes every backoff recognisable: attempt n waits n+1 hours.
func steps(n int) time.Duration { return time.Duration(n+1) * time.Hour }

func TestWhatAClientDoesAfterEachCloseCode(t *testing.T) {
	type want struct {
		from, to      time.Duration
		resume, renew bool
		resync        bool
		stop          error
	}
	const s, h = time.Second, time.Hour
	for code, want := range map[CloseCode]want{
		0:                    {from: h, to: h, resume: true},
		CodeInternal:         {from: h, to: h, resume: true},
		CodeMalformed:        {from: 4 * h, to: 4 * h},
		CodeUnknownOp:        {from: 4 * h, to: 4 * h},
		CodeIdentifyTimeout:  {from: h, to: h},
		CodeAuthentication:   {renew: true},
		CodeIdentified:       {from: h, to: h, resume: true},
		CodeSessionUnknown:   {to: s},
		CodeCursor:           {to: 5 * s, resync: true},
		CodeRateLimited:      {from: h + 10*s, to: h + 10*s, resume: true},
		CodeHeartbeatMissed:  {to: s, resume: true},
		CodeCredentialsEnded: {renew: true, resume: true},
		CodeProtocolVersion:  {stop: ErrProtocol},
		CodeNotAvailable:     {from: 15 * s, to: 60 * s},
		CodeServerRestart:    {to: 5 * s},
		CodeTooSlow:          {from: h, to: h, resume: true},
		CodeConsumerTaken:    {stop: ErrConsumerTaken},
		CodeFrameTooLarge:    {from: h, to: h, resume: true},
		CodeDeviceElsewhere:  {stop: ErrDeviceElsewhere},
		CodeForbidden:        {stop: ErrForbidden},
	} {
		t.Run(fmt.Sprint(int(code)), func(t *testing.T) {
			for range 20 {
				got := (&history{}).react(ending{code: code}, time.Unix(0, 0), steps)
				if got.delay < want.from || got.delay > want.to || got.resume != want.resume || got.renew != want.renew || got.resync != want.resync || !errors.Is(got.stop, want.stop) {
					t.Fatalf("%+v, want %+v", got, want)
				}
			}
		})
	}
}

func TestRepeatedEndsWeighMore(t *testing.T) {
	now := time.Unix(1000, 0)
	t.Run("attempts count until a connection has lived", func(t *testing.T) {
		var h history
		for n := range 3 {
			if got := h.react(ending{}, now, steps); got.delay != steps(n) {
				t.Errorf("attempt %d waits %v", n, got.delay)
			}
		}
		if got := h.react(ending{live: time.Minute}, now, steps); got.delay != steps(0) {
			t.Errorf("after a minute: %v", got.delay)
		}
	})
	t.Run("a second refusal of the credential ends", func(t *testing.T) {
		var h history
		h.react(ending{code: CodeAuthentication}, now, steps)
		if got := h.react(ending{code: CodeAuthentication}, now, steps); !errors.Is(got.stop, ErrCredentials) {
			t.Errorf("%+v", got)
		}
	})
	t.Run("a third fault of our own within ten minutes ends", func(t *testing.T) {
		var h history
		h.react(ending{code: CodeMalformed}, now, steps)
		h.react(ending{code: CodeUnknownOp}, now.Add(time.Minute), steps)
		if got := h.react(ending{code: CodeMalformed}, now.Add(9*time.Minute), steps); !errors.Is(got.stop, ErrProtocol) {
			t.Errorf("%+v", got)
		}
		h = history{}
		h.react(ending{code: CodeMalformed}, now, steps)
		h.react(ending{code: CodeMalformed}, now.Add(11*time.Minute), steps)
		if got := h.react(ending{code: CodeMalformed}, now.Add(12*time.Minute), steps); got.stop != nil {
			t.Errorf("faults long ago still count: %+v", got)
		}
	})
	t.Run("the third slowness within five minutes reads over REST", func(t *testing.T) {
		var h history
		for n := range 3 {
			if got := h.react(ending{code: CodeTooSlow}, now, steps); got.catchUp != (n == 2) {
				t.Errorf("time %d: %+v", n, got)
			}
		}
	})
}

func TestTheServersWaitsCount(t *testing.T) {
	if got := (&history{}).react(ending{code: CodeRateLimited, retryAfter: time.Minute}, time.Now(), steps); got.delay != time.Minute+time.Hour {
		t.Errorf("rate limited: %v", got.delay)
	}
	if got := (&history{}).react(ending{retryAfter: 9 * time.Hour}, time.Now(), steps); got.delay != 9*time.Hour {
		t.Errorf("refused upgrade: %v", got.delay)
	}
	for range 50 {
		if got := (&history{}).react(ending{code: CodeServerRestart, reason: "server_restart:200"}, time.Now(), steps); got.delay > 200*time.Millisecond || got.resume {
			t.Errorf("restart: %+v", got)
		}
	}
}

func TestASignedOutSessionEnds(t *testing.T) {
	err := fmt.Errorf("refresh: %w", bothy.ErrSignedOut)
	if got := (&history{}).react(ending{err: err}, time.Now(), steps); !errors.Is(got.stop, ErrCredentials) || !errors.Is(got.stop, bothy.ErrSignedOut) {
		t.Errorf("%+v", got)
	}
}
