// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	bothy "github.com/OWNER/bothy/sdk/go"
	"github.com/OWNER/bothy/sdk/go/api"
)

// workers does the runs of the journal: in each thread one after the other in the order in which they came, over all
// threads so many at once as the configuration allows. Runs that only have to be ended need no place.
type workers struct {
	agent *Agent
	// patient lives a little longer than the adapter, so that runs at work can be ended when it stops.
	patient context.Context //nolint:containedctx // the life of a goroutine that outlives a call
	release context.CancelFunc
	group   sync.WaitGroup

	mu       sync.Mutex
	stopping bool
	waiting  []*job
	threads  map[string]bool
	working  int
	jobs     map[string]*job
}

// job is one run in this process.
type job struct {
	runID, threadID string
	token           string
	// bare jobs only end their run.
	bare  bool
	cause error // why the work must not begin or go on, or nil
	stop  context.CancelCauseFunc
	run   *Run
}

func newWorkers(ctx context.Context, a *Agent) *workers {
	patient, release := context.WithCancel(context.WithoutCancel(ctx))
	return &workers{agent: a, patient: patient, release: release, threads: map[string]bool{}, jobs: map[string]*job{}}
}

// add takes a run of the journal. token is empty after a restart.
func (w *workers) add(runID, token string) {
	r := w.agent.journal.find(runID)
	if r == nil {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.stopping || w.jobs[runID] != nil {
		return
	}
	j := &job{runID: runID, threadID: r.Order.Run.ThreadID, token: token, bare: r.Phase != phaseAccepted}
	w.jobs[runID] = j
	w.waiting = append(w.waiting, j)
	w.dispatch()
}

// dispatch begins what may begin. The caller holds the lock.
func (w *workers) dispatch() {
	kept := w.waiting[:0]
	passed := map[string]bool{}
	for _, j := range w.waiting {
		free := j.bare || j.cause != nil
		if w.stopping || !free && (w.threads[j.threadID] || passed[j.threadID] || w.working >= w.agent.cfg.Concurrency) {
			kept = append(kept, j)
			passed[j.threadID] = true
			continue
		}
		if !free {
			w.threads[j.threadID] = true
			w.working++
		}
		w.group.Go(func() { w.do(j, !free) })
	}
	w.waiting = kept
}

func (w *workers) do(j *job, placed bool) {
	again := w.agent.execute(w.patient, j)
	w.mu.Lock()
	defer w.mu.Unlock()
	if placed {
		delete(w.threads, j.threadID)
		w.working--
	}
	delete(w.jobs, j.runID)
	if again && !w.stopping {
		w.jobs[j.runID] = j
		w.waiting = append([]*job{j}, w.waiting...)
	}
	w.dispatch()
}

// cancel stops a run, whether it waits or is at work.
func (w *workers) cancel(runID string, cause error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	j := w.jobs[runID]
	if j == nil {
		return
	}
	if j.cause == nil {
		j.cause = cause
	}
	if j.stop != nil {
		j.stop(cause)
	}
	w.dispatch()
}

// begin makes the context of the work, which ends with the first cause. false means that it must not begin.
func (w *workers) begin(j *job, run *Run) (context.Context, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if j.cause != nil {
		return nil, false
	}
	var ctx context.Context
	ctx, j.stop = context.WithCancelCause(w.patient)
	j.run = run
	return ctx, true
}

// cause is why the job was stopped, or nil.
func (w *workers) cause(j *job) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return j.cause
}

// followUp hands a message to a run at work. When nobody takes it up it stays open at the server.
func (w *workers) followUp(runID string, f Followup) {
	w.mu.Lock()
	defer w.mu.Unlock()
	j := w.jobs[runID]
	if j == nil || j.run == nil {
		return // it is in the journal, from where the beginning run takes it
	}
	j.run.offer(f)
}

// offer gives a follow-up to the work, once. When the work does not keep up it stays open at the server.
func (r *Run) offer(f Followup) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.offered[f.EventID] {
		return
	}
	r.offered[f.EventID] = true
	select {
	case r.followups <- f:
	default:
	}
}

// stop ends all work: each run at work is asked to stop and is then ended at the server, for as long as the patience
// lasts. What does not make it is in the journal.
func (w *workers) stop() {
	w.mu.Lock()
	w.stopping = true
	for _, j := range w.jobs {
		if j.stop != nil {
			j.stop(ErrStopping)
		}
	}
	w.mu.Unlock()
	timer := time.AfterFunc(w.agent.cfg.StopPatience, w.release)
	w.group.Wait()
	timer.Stop()
	w.release()
}

// execute brings a run from where the journal has it to its end. again asks to be called once more later.
func (a *Agent) execute(ctx context.Context, j *job) (again bool) {
	r := a.journal.find(j.runID)
	if r == nil {
		return false
	}
	log := a.cfg.Log.With("run_id", r.RunID)
	switch r.Phase {
	case phaseAccepted:
		return a.work(ctx, j, r)
	case phaseStarted:
		log.WarnContext(ctx, "run was at work when the adapter ended")
		if a.cfg.Interrupted != nil {
			a.cfg.Interrupted(ctx, r.RunID, r.Work)
		}
		if !a.ending(j.runID, failed("interrupted", "The adapter was restarted while the run was at work.")) {
			return false
		}
	}
	a.finish(ctx, j.runID, newTokens(a, j.runID, "", time.Time{}))
	return false
}

// ending notes how the run is to end. false means that it could not be noted; then it is not sent either.
func (a *Agent) ending(runID string, f *finish) bool {
	err := a.journal.change(runID, func(r *record) { r.Phase, r.Finish = phaseFinishing, f })
	if err != nil {
		a.cfg.Log.Error("the end of a run cannot be stored", "run_id", runID, "error", err)
	}
	return err == nil
}

func failed(code, message string) *finish {
	const most = 1000
	if runes := []rune(message); len(runes) > most {
		message = "…" + string(runes[len(runes)-most+1:])
	}
	reason := api.FinishRunRequestEndReasonAgentError
	return &finish{Key: bothy.NewID(), Bare: true, Body: api.FinishRunRequest{
		State: api.FinishRunRequestStateFailed, EndReason: &reason, Error: &api.RunErrorInput{Code: code, Message: &message},
	}}
}

func cancelled() *finish {
	reason := api.FinishRunRequestEndReasonRequested
	return &finish{Key: bothy.NewID(), Bare: true, Body: api.FinishRunRequest{State: api.FinishRunRequestStateCancelled, EndReason: &reason}}
}

func completed() *finish {
	reason := api.FinishRunRequestEndReasonDone
	return &finish{Key: bothy.NewID(), Body: api.FinishRunRequest{State: api.FinishRunRequestStateCompleted, EndReason: &reason}}
}

// work starts the run, lets the program work, and ends the run.
func (a *Agent) work(ctx context.Context, j *job, r *record) (again bool) {
	tokens := newTokens(a, r.RunID, j.token, r.Order.ExpiresAt)
	if a.workers.cause(j) != nil {
		if a.ending(r.RunID, cancelled()) {
			a.finish(ctx, r.RunID, tokens)
		}
		return false
	}
	started, err := a.start(ctx, r, tokens)
	if err != nil {
		return a.notStarted(ctx, r, tokens, err)
	}
	if err := a.journal.change(r.RunID, func(r *record) { r.Phase = phaseStarted }); err != nil {
		a.cfg.Log.ErrorContext(ctx, "the start of a run cannot be stored", "run_id", r.RunID, "error", err)
		return false
	}
	end, gone := a.labour(ctx, j, r, started, tokens)
	if gone {
		a.drop(r.RunID)
		return false
	}
	if a.ending(r.RunID, end) {
		a.finish(ctx, r.RunID, tokens)
	}
	return false
}

func (a *Agent) start(ctx context.Context, r *record, t *tokens) (*api.RunStarted, error) {
	var started *api.RunStarted
	err := t.with(ctx, func(token string) error {
		var err error
		started, err = a.client.StartRun(ctx, r.RunID, api.StartRunRequest{}, withToken(token), bothy.IdempotencyKey(r.StartKey))
		return err
	})
	return started, err
}

// notStarted decides what becomes of a run that could not be started.
func (a *Agent) notStarted(ctx context.Context, r *record, t *tokens, err error) (again bool) {
	const pause = 2 * time.Second
	reason := bothy.Reason(err)
	log := a.cfg.Log.With("run_id", r.RunID, "error", err)
	var end *finish
	switch {
	case ctx.Err() != nil:
		return false // stays in the journal
	case bothy.HasCode(err, api.ErrorCodeConflict) && reason == "concurrency_limit":
		return bothy.Sleep(ctx, pause) == nil
	case bothy.HasCode(err, api.ErrorCodeConflict) && reason == "cancel_requested":
		end = cancelled()
	case bothy.HasCode(err, api.ErrorCodeConflict, api.ErrorCodeAlreadyStarted, api.ErrorCodeNotFound):
		log.InfoContext(ctx, "run is over or in other hands")
		a.drop(r.RunID)
		return false
	case bothy.HasCode(err, api.ErrorCodeForbidden):
		end = cancelled()
	default:
		var p *bothy.Problem
		if !errors.As(err, &p) || p.Status >= 500 || p.Status == 429 || p.Status == 401 {
			log.WarnContext(ctx, "run cannot be started now")
			return bothy.Sleep(ctx, a.backoff(1)) == nil
		}
		end = failed("start_failed", "The run could not be started: "+string(p.Code)+".")
	}
	log.InfoContext(ctx, "run does not start", "state", end.Body.State)
	if a.ending(r.RunID, end) {
		a.finish(ctx, r.RunID, t)
	}
	return false
}

// labour calls the program and says how the run ends; gone means that it is not ours to end.
func (a *Agent) labour(ctx context.Context, j *job, r *record, started *api.RunStarted, t *tokens) (end *finish, gone bool) {
	const room = 128
	run := &Run{ID: r.RunID, Order: r.Order, agent: a, tokens: t, followups: make(chan Followup, room), offered: map[string]bool{}}
	run.stream = newStream(a, &started.Run, t, func(cause error) { a.workers.cancel(r.RunID, cause) })
	work, ok := a.workers.begin(j, run)
	if !ok {
		return cancelled(), false
	}
	defer j.stop(nil)
	if a.cfg.Report.Steer {
		// Read after begin, so that none falls between the journal and the channel; offer drops what came both ways.
		for _, f := range a.journal.find(r.RunID).Followups {
			run.offer(f)
		}
	}
	a.workers.group.Go(func() { run.stream.run(ctx) })
	err := call(work, a.cfg.Work, run)
	const patience = 5 * time.Second
	last, cancel := context.WithTimeout(ctx, patience)
	if context.Cause(work) == nil {
		cancel()
		last, cancel = context.WithCancel(ctx) // nobody waits: the end of the text must not be lost
	}
	defer cancel()
	streamErr := run.stream.close(last)
	return a.outcome(context.Cause(work), err, streamErr)
}

// outcome says how a run ends, from why it was stopped, what the program returned, and whether its text arrived.
func (*Agent) outcome(cause, err, streamErr error) (end *finish, gone bool) {
	for _, e := range []error{cause, streamErr} {
		switch {
		case errors.Is(e, ErrEnded), errors.Is(e, ErrFenced):
			return nil, true
		case errors.Is(e, ErrRevoked):
			return cancelled(), false
		}
	}
	switch {
	case errors.Is(cause, ErrStopping) && err != nil:
		return failed("interrupted", "The adapter was stopped while the run was at work."), false
	case errors.Is(cause, ErrCancelled) && err != nil:
		return cancelled(), false
	case err != nil:
		return failed("agent_error", err.Error()), false
	case streamErr != nil:
		return failed("agent_error", "The end of the answer could not be sent."), false
	}
	return completed(), false
}

// call calls the program; a panic fails its run and no other.
func call(ctx context.Context, work func(context.Context, *Run) error, run *Run) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic: %v", p)
		}
	}()
	return work(ctx, run)
}

// finish sends the noted end until it has arrived, then forgets the run. With the end of the context the record stays.
func (a *Agent) finish(ctx context.Context, runID string, t *tokens) {
	for n := 0; ; n++ {
		r := a.journal.find(runID)
		if r == nil || r.Finish == nil {
			return
		}
		err := a.sendEnd(ctx, r, t)
		if err == nil {
			a.drop(runID)
			return
		}
		if ctx.Err() != nil {
			return
		}
		a.cfg.Log.WarnContext(ctx, "the end of a run was not taken", "run_id", runID, "state", r.Finish.Body.State, "error", err)
		switch a.afterRefusal(r, err) {
		case endGone:
			a.drop(runID)
			return
		case endChanged:
			continue
		case endLater:
		}
		if bothy.Sleep(ctx, a.backoff(n)) != nil {
			return
		}
	}
}

type endVerdict int

const (
	endLater endVerdict = iota
	endChanged
	endGone
)

// afterRefusal decides what follows an end that was not taken.
func (a *Agent) afterRefusal(r *record, err error) endVerdict {
	var p *bothy.Problem
	switch {
	case !errors.As(err, &p), p.Status >= 500, p.Status == 429, p.Status == 401, p.Code == api.ErrorCodeRequestInProgress:
		return endLater
	case bothy.HasCode(err, api.ErrorCodeNotFound), p.Code == api.ErrorCodeConflict:
		return endGone
	case !r.Finish.Bare && p.Code == api.ErrorCodeForbidden:
		if a.ending(r.RunID, cancelled()) {
			return endChanged
		}
	case !r.Finish.Bare:
		if a.ending(r.RunID, failed("finish_failed", "The end of the run was refused: "+string(p.Code)+".")) {
			return endChanged
		}
	}
	return endGone
}

func (a *Agent) sendEnd(ctx context.Context, r *record, t *tokens) error {
	if r.Finish.Bare {
		_, err := a.client.FinishRun(ctx, r.RunID, r.Finish.Body, bothy.IdempotencyKey(r.Finish.Key))
		return err
	}
	return t.with(ctx, func(token string) error {
		_, err := a.client.FinishRun(ctx, r.RunID, r.Finish.Body, withToken(token), bothy.IdempotencyKey(r.Finish.Key))
		return err
	})
}

// drop forgets a run that is over.
func (a *Agent) drop(runID string) {
	if err := a.journal.remove(runID); err != nil {
		a.cfg.Log.Error("a run that is over cannot be removed from the journal", "run_id", runID, "error", err)
	}
	a.link.Beat()
}

func (a *Agent) backoff(n int) time.Duration {
	if a.cfg.Timing.Backoff != nil {
		return a.cfg.Timing.Backoff(n)
	}
	return bothy.Backoff(n, 0, 0)
}
