// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	bothy "github.com/OWNER/bothy/sdk/go"
	"github.com/OWNER/bothy/sdk/go/api"
)

const (
	// flushEvery and flushBytes say when text is sent: whichever is first.
	flushEvery = 250 * time.Millisecond
	flushBytes = 2 << 10
	// slowest is the longest pause between updates after the server asked for patience.
	slowest = 4 * time.Second
	// chunkBytes bounds the text of one update.
	chunkBytes = 24 << 10
	// bufferBytes bounds the text that waits; then the work waits, too.
	bufferBytes = 256 << 10
)

func withToken(token string) bothy.CallOption { return bothy.InvocationToken(token) }

func expired(err error) bool { return bothy.HasCode(err, api.ErrorCodeTokenExpired) }

// stream sends the updates of one run, one at a time. What comes while one is under way is merged into the next. One
// goroutine sends; it ends with close or with the first error that no repeat heals.
type stream struct {
	runID  string
	once   *bothy.Client // repeats nothing by itself
	tokens *tokens
	fail   func(error) // hears of the end of the run, and of cancel requests
	timing Timing

	mu       sync.Mutex
	cleaner  cleaner
	text     strings.Builder
	changes  *api.RunPatch
	consumed []string
	version  int64
	length   int64
	sent     int64 // updates and empty flushes done
	queued   int64 // what flush waits for
	full     bool
	closing  bool
	err      error
	changed  chan struct{} // closed and replaced at each change of state
	wake     chan struct{}
	interval time.Duration
	done     chan struct{}
}

func newStream(a *Agent, run *api.Run, t *tokens, fail func(error)) *stream {
	s := &stream{
		runID: run.ID, once: a.client.Retrying(bothy.Retry{Attempts: 1}), tokens: t, fail: fail, timing: a.cfg.Timing, version: run.DocVersion, length: int64(run.OutputLength),
		changed: make(chan struct{}), wake: make(chan struct{}, 1), done: make(chan struct{}),
	}
	if s.timing.FlushEvery == 0 {
		s.timing.FlushEvery = flushEvery
	}
	if s.timing.Backoff == nil {
		s.timing.Backoff = func(n int) time.Duration { return bothy.Backoff(n, 0, 0) }
	}
	s.interval = s.timing.FlushEvery
	return s
}

// write adds text. It waits while too much waits to be sent.
func (s *stream) write(p []byte) error {
	for {
		s.mu.Lock()
		if s.err != nil {
			defer s.mu.Unlock()
			return s.err
		}
		if s.text.Len() < bufferBytes {
			if text := s.cleaner.clean(p, false); !s.full {
				s.text.WriteString(text)
			}
			s.signal()
			s.mu.Unlock()
			return nil
		}
		changed := s.changed
		s.mu.Unlock()
		<-changed
	}
}

func (s *stream) patch(change func(*api.RunPatch)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.changes == nil {
		s.changes = &api.RunPatch{}
	}
	change(s.changes)
	s.signal()
}

func (s *stream) consume(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.consumed = append(s.consumed, id)
	s.signal()
}

// signal wakes the sender. The caller holds the lock.
func (s *stream) signal() {
	s.queued++
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// notify tells those who wait that something changed. The caller holds the lock.
func (s *stream) notify() {
	close(s.changed)
	s.changed = make(chan struct{})
}

// flush waits until what was written before is sent.
func (s *stream) flush(ctx context.Context) error {
	s.mu.Lock()
	s.signal()
	goal := s.queued
	for s.sent < goal && s.err == nil {
		changed := s.changed
		s.mu.Unlock()
		select {
		case <-changed:
		case <-ctx.Done():
			return ctx.Err()
		}
		s.mu.Lock()
	}
	defer s.mu.Unlock()
	return s.err
}

// close sends the rest and ends the sender. The context bounds how long that may take.
func (s *stream) close(ctx context.Context) error {
	s.mu.Lock()
	if rest := s.cleaner.clean(nil, true); !s.full {
		s.text.WriteString(rest)
	}
	s.closing = true
	s.signal()
	s.mu.Unlock()
	select {
	case <-s.done:
	case <-ctx.Done():
		s.stop(ctx.Err())
		<-s.done
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.err
}

// stop ends the stream with an error.
func (s *stream) stop(err error) {
	s.mu.Lock()
	if s.err == nil {
		s.err = err
	}
	s.notify()
	s.mu.Unlock()
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// run sends updates until close or stop.
func (s *stream) run(ctx context.Context) {
	defer close(s.done)
	var last time.Time
	for {
		wait, over := s.due(last)
		switch {
		case over:
			return
		case wait > 0:
			if !s.sleep(ctx, wait) {
				s.stop(ErrStopping)
				return
			}
		default:
			last = time.Now()
			s.send(ctx)
		}
	}
}

// due is how long the next update has time; over means that none follows.
func (s *stream) due(last time.Time) (wait time.Duration, over bool) {
	const forever = time.Hour
	s.mu.Lock()
	defer s.mu.Unlock()
	idle := s.sent == s.queued
	switch {
	case s.err != nil, s.closing && idle:
		return 0, true
	case idle:
		return forever, false
	case s.closing, s.text.Len() >= flushBytes && s.interval == s.timing.FlushEvery:
		return 0, false
	}
	return s.interval - time.Since(last), false
}

// sleep waits until the time is over or something changed; false means that the context ended.
func (s *stream) sleep(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-s.wake:
	case <-ctx.Done():
		return false
	}
	return true
}

// update is one request and what it was made of.
type update struct {
	key     string
	body    api.UpdateRunRequest
	text    string
	covers  int64
	attempt int
}

// send makes the next update and sends it until it is applied or hopeless.
func (s *stream) send(ctx context.Context) {
	u := s.next()
	if u == nil {
		return
	}
	for {
		err := s.try(ctx, u)
		if err == nil {
			return
		}
		wait, end := s.judge(ctx, u, err)
		if end != nil {
			s.stop(end)
			s.fail(end)
			return
		}
		if wait < 0 {
			return
		}
		u.attempt++
		if bothy.Sleep(ctx, wait) != nil || s.broken() {
			s.stop(ErrStopping)
			return
		}
	}
}

func (s *stream) broken() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.err != nil
}

// next takes what waits. nil means that there was nothing.
func (s *stream) next() *update {
	s.mu.Lock()
	defer s.mu.Unlock()
	u := &update{key: bothy.NewID(), covers: s.queued}
	text := s.text.String()
	u.text = cut(text, chunkBytes)
	rest := text[len(u.text):]
	s.text.Reset()
	s.text.WriteString(rest)
	if rest != "" {
		u.covers = s.sent // more is to come before those who wait may go on
		s.signal()
	}
	u.body = api.UpdateRunRequest{BaseVersion: s.version, Patch: s.changes}
	if rest == "" {
		u.body.Consumed, s.consumed = s.consumed, nil
	}
	s.changes = nil
	if u.text != "" {
		u.body.Append = []api.RunAppend{{Target: "output", Offset: s.length, Text: u.text}}
	}
	if u.text == "" && u.body.Patch == nil && len(u.body.Consumed) == 0 {
		s.sent = u.covers
		s.notify()
		return nil
	}
	return u
}

// cut is the longest head of whole characters within so many bytes.
func cut(s string, most int) string {
	if len(s) <= most {
		return s
	}
	for most > 0 && !utf8.RuneStart(s[most]) {
		most--
	}
	return s[:most]
}

func (s *stream) try(ctx context.Context, u *update) error {
	return s.tokens.with(ctx, func(token string) error {
		result, err := s.once.UpdateRun(ctx, s.runID, u.body, withToken(token), bothy.IdempotencyKey(u.key))
		if err != nil {
			return err
		}
		s.applied(u, result.DocVersion, int64(result.OutputLength))
		if result.CancelRequested {
			s.fail(ErrCancelled)
		}
		return nil
	})
}

// applied takes over what the server counts: it normalises texts, so its length may differ from ours.
func (s *stream) applied(u *update, version, length int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.version, s.length = version, length
	s.sent = u.covers
	s.interval = max(s.timing.FlushEvery, s.interval*3/4)
	s.notify()
}

// judge decides after a failed update: to wait and send it again, to leave it because it was applied (wait < 0), or
// to end the stream.
func (s *stream) judge(ctx context.Context, u *update, err error) (wait time.Duration, end error) {
	var p *bothy.Problem
	if !errors.As(err, &p) {
		if ctx.Err() != nil {
			return 0, ErrStopping
		}
		return s.timing.Backoff(u.attempt), nil
	}
	switch {
	case p.Code == api.ErrorCodeVersionConflict:
		return s.conflict(ctx, u, p)
	case p.Code == api.ErrorCodeRateLimited:
		s.mu.Lock()
		s.interval = min(2*s.interval, max(slowest, s.timing.FlushEvery))
		s.mu.Unlock()
		return max(p.RetryAfter, s.timing.Backoff(u.attempt)), nil
	case p.Code == api.ErrorCodePayloadTooLarge && u.text != "":
		// The document is full: the work goes on, its text is kept no longer.
		s.mu.Lock()
		s.full = true
		s.text.Reset()
		s.notify()
		s.mu.Unlock()
		u.text, u.body.Append, u.key = "", nil, bothy.NewID()
		return 0, nil
	case p.Code == api.ErrorCodeConflict && p.Reason == "run_ended":
		return 0, ErrEnded
	case p.Code == api.ErrorCodeForbidden, p.Code == api.ErrorCodeNotFound:
		return 0, ErrRevoked
	case p.Code == api.ErrorCodeRequestInProgress, p.Status >= 500 && p.Code != api.ErrorCodeSetupRequired, p.Status == 408:
		return max(p.RetryAfter, s.timing.Backoff(u.attempt)), nil
	}
	return 0, err
}

// conflict finds out what became of an update that the server no longer takes. An update whose answer was lost has
// raised the version by one and the length as expected. A length that differs while the version is ours is put right.
// Everything else is the work of another process.
func (s *stream) conflict(ctx context.Context, u *update, p *bothy.Problem) (time.Duration, error) {
	var now struct {
		DocVersion   int64 `json:"doc_version"`
		OutputLength int64 `json:"output_length"`
	}
	if json.Unmarshal(p.Current, &now) != nil || now.DocVersion == 0 {
		run, err := s.once.Run(ctx, s.runID)
		if err != nil {
			if bothy.HasCode(err, api.ErrorCodeNotFound) {
				return 0, ErrRevoked
			}
			return s.timing.Backoff(u.attempt), nil
		}
		now.DocVersion, now.OutputLength = run.DocVersion, int64(run.OutputLength)
	}
	s.mu.Lock()
	base, expected := s.version, s.length+int64(utf8.RuneCountInString(u.text))
	s.mu.Unlock()
	switch {
	case u.attempt > 0 && now.DocVersion == base+1 && now.OutputLength == expected:
		s.applied(u, now.DocVersion, now.OutputLength)
		return -1, nil
	case now.DocVersion == base && len(u.body.Append) > 0 && u.body.Append[0].Offset != now.OutputLength:
		u.body.Append[0].Offset, u.key = now.OutputLength, bothy.NewID()
		s.mu.Lock()
		s.length = now.OutputLength
		s.mu.Unlock()
		return 0, nil
	}
	return 0, ErrFenced
}
