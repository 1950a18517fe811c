// SPDX-License-Identifier: Apache-2.0

// Package pg is everything the server knows about PostgreSQL as a technology: the pool,
// the unit of work, the queue of statements that travel together, the flusher behind the
// barrier of durability, LISTEN, migrations and the supervised embedded cluster. It knows
// no table of a module; modules bring SQL and receive handles.
//
// A repository is built with a *DB. It reads through DB.Querier, writes what it needs no
// answer for through Queued, and never sees a transaction: Units opens and ends those.
//
//	Do ──▶ begin ──▶ work ──▶ rights ──▶ log ──▶ audit ──▶ commit ──▶ wait ──▶ return
//	 ▲       │         │         │         │        │         │         │
//	 │       └─────────┴──error──┴─────────┴────────┴─────────┘         └─ not durable in
//	 └── deadlock, lock timeout, stale rights ◀── rollback                 time: unavailable
//
// README.md beside this file explains the phases, the queue and the barrier. The tests of
// unit_test.go, flusher_test.go and crash_test.go notice when one of their promises breaks.
package pg
