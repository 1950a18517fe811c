// SPDX-License-Identifier: Apache-2.0

// Package agent is an adapter without the work: it takes orders for an agent, verifies them, keeps them on disk,
// runs them one at a time per thread, streams what the work writes, and ends each run exactly once, whatever
// crashes in between. What is left to a program is one function:
//
//	a, err := agent.Open(ctx, agent.Config{URL: url, Token: token, StateDir: dir, Policy: policy, Work: work})
//	...
//	defer a.Close()
//	err = a.Run(ctx)
//
//	func work(ctx context.Context, run *agent.Run) error {
//		fmt.Fprintln(run, "what the thread sees while it is written")
//		return nil
//	}
//
// # What survives a crash
//
// An order is written to the journal before it is acknowledged, so it is not lost; it comes again until it is
// acknowledged, and the journal tells that it was taken. A run is noted as started before Work is called, so Work is
// called at most once per run: after a crash in between, the run ends as failed and keeps what was streamed. The end of
// a run is noted before it is sent, with the key of the request, so it is sent until it is known to have arrived.
//
//	accepted ──start──▶ started ──Work returns──▶ finishing ──end arrived──▶ (removed)
//	                       └──crash──▶ finishing, as failed
//
// # Goroutines
//
// Run owns all of them: the Link, one per run at work, and one per run that sends its updates. It returns after the
// last has ended.
package agent
