// SPDX-License-Identifier: Apache-2.0

// Package baseline writes messages with nothing but SQL: the statements of message.create, in the same round trips, on
// the same connections and with the same wait for durability, but without the counter that puts all commits of an
// instance into one order. What the use case reaches beside it says what order and Go cost together.
//
// The positions of its events come from an ordinary sequence, which nobody waits for. It writes rows of the same number,
// size and indexes, with the payloads of messages that the use case wrote before.
package baseline

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/OWNER/bothy/services/server/internal/platform/pg"
)

// Place is where a message goes.
type Place struct{ SpaceID, ChannelID, ThreadID string }

// Author is who writes and with which token.
type Author struct{ ID, TokenID string }

// Twin writes messages.
type Twin struct {
	pool *pgxpool.Pool
	db   *pg.DB
	sql  map[string]string
	// payloads are the events of one message.
	payloads []string
}

// events is how many events a message of a person has.
const events = 1

// sources are the statements of message.create in their order.
var sources = []struct{ name, module, file string }{
	{"findSent", "messaging", "messages.go"},
	{"threadPlaceLockShared", "chat", "sqlcgen/threads.sql.go"},
	{"threadPlace", "chat", "sqlcgen/threads.sql.go"},
	{"readCounter", "instance", "store.go"},
	{"tokenAlive", "identity", "sqlcgen/tokens.sql.go"},
	{"threadAppend", "chat", "sqlcgen/threads.sql.go"},
	{"messageInsert", "messaging", "sqlcgen/messages.sql.go"},
	{"readStatePost", "sync", "sqlcgen/read_states.sql.go"},
	{"eventsAppend", "sync", "sqlcgen/event_log.sql.go"},
	{"eventsNotify", "sync", "sqlcgen/event_log.sql.go"},
}

const (
	counter  = "instance_counter_value('event_seq')"
	sequence = "perf_event_seq"
)

// New prepares the twin. admin is a connection as superuser, for the sequence; db is the one the use case works on.
func New(ctx context.Context, admin *pgx.Conn, db *pg.DB, connections int) (*Twin, error) {
	t := &Twin{db: db, sql: map[string]string{}}
	for _, s := range sources {
		text, err := statement(s.module, s.file, s.name)
		if err != nil {
			return nil, err
		}
		t.sql[s.name] = text
	}
	for name, instead := range map[string]string{"eventsAppend": "nextval('" + sequence + "')", "eventsNotify": "currval('" + sequence + "')"} {
		if !strings.Contains(t.sql[name], counter) {
			return nil, fmt.Errorf("%s does not read the counter any more", name)
		}
		t.sql[name] = strings.Replace(t.sql[name], counter, instead, 1)
	}
	if err := t.prepare(ctx, admin); err != nil {
		return nil, err
	}
	cfg, err := pgxpool.ParseConfig(admin.Config().ConnString())
	if err != nil {
		return nil, err
	}
	cfg.MaxConns = int32(connections) // #nosec G115 -- a few
	if db.Flusher() != nil {
		cfg.ConnConfig.RuntimeParams["synchronous_commit"] = "off"
	}
	t.pool, err = pgxpool.NewWithConfig(ctx, cfg)
	return t, err
}

// prepare makes the sequence far behind the counter, so that both number their events without meeting, and takes the
// payloads of a message that is there.
func (t *Twin) prepare(ctx context.Context, admin *pgx.Conn) error {
	const gap = 500_000
	_, err := admin.Exec(ctx, fmt.Sprintf(`DO $$ BEGIN
		EXECUTE format('CREATE SEQUENCE IF NOT EXISTS %s INCREMENT %d START %%s', (SELECT value + %d FROM sequence_counters WHERE name = 'event_seq'));
	END $$`, sequence, events, gap))
	if err != nil {
		return fmt.Errorf("make the sequence: %w", err)
	}
	rows, err := admin.Query(ctx, `SELECT payload::text FROM event_log WHERE type = 'message.created' ORDER BY seq DESC LIMIT 1`)
	if err != nil {
		return err
	}
	t.payloads, err = pgx.CollectRows(rows, pgx.RowTo[string])
	if err == nil && len(t.payloads) != events {
		err = errors.New("there is no message to take the payloads from")
	}
	return err
}

// Close ends the connections.
func (t *Twin) Close() { t.pool.Close() }

func newID() string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // never fails: the runtime ends the process instead
	ms := time.Now().UnixMilli()
	for i := range 6 {
		b[i] = byte(ms >> (8 * (5 - i)))
	}
	b[6], b[8] = b[6]&0x0f|0x70, b[8]&0x3f|0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
}

// Write writes one message and waits until it is durable.
func (t *Twin) Write(ctx context.Context, a Author, p Place, text string) error {
	generation := t.db.Barrier().Generation()
	conn, err := t.pool.Acquire(ctx)
	if err != nil {
		return err
	}
	err = t.transaction(ctx, conn.Conn(), a, p, text)
	conn.Release()
	if err != nil {
		return err
	}
	return t.db.Barrier().Wait(ctx, generation)
}

// trip sends statements together and hands the last row, if it has one, to scan.
type trip struct {
	batch pgx.Batch
}

func (t *trip) add(sql string, args ...any) { t.batch.Queue(sql, args...) }

// send reads every answer; rows are counted and thrown away, except that the first value of the last one is scanned.
func (t *trip) send(ctx context.Context, conn *pgx.Conn, into *int64, column int) error {
	results := conn.SendBatch(ctx, &t.batch)
	for n := range t.batch.Len() {
		rows, err := results.Query()
		if err != nil {
			return errors.Join(err, results.Close())
		}
		for rows.Next() {
			if into == nil || n+1 < t.batch.Len() {
				continue
			}
			values, err := rows.Values()
			if err != nil {
				return errors.Join(err, results.Close())
			}
			*into, _ = values[column].(int64)
		}
		rows.Close()
		if err := rows.Err(); err != nil {
			return errors.Join(err, results.Close())
		}
	}
	return results.Close()
}

// lastThreadSeq is where RETURNING of threadAppend has the new number.
const lastThreadSeq = "last_thread_seq"

func (t *Twin) transaction(ctx context.Context, conn *pgx.Conn, a Author, p Place, text string) (err error) {
	defer func() {
		if err != nil {
			_, rollback := conn.Exec(context.WithoutCancel(ctx), "ROLLBACK")
			err = errors.Join(err, rollback)
		}
	}()
	now, message, client := time.Now().UTC(), newID(), newID()
	var look, appended trip
	look.add("BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE")
	look.add(t.sql["findSent"], a.ID, client)
	look.add(t.sql["readCounter"], "permission_version")
	look.add(t.sql["threadPlaceLockShared"], p.ThreadID)
	look.add(t.sql["threadPlace"], p.ThreadID)
	if err := look.send(ctx, conn, nil, 0); err != nil {
		return fmt.Errorf("look around: %w", err)
	}
	var seq int64
	appended.add(t.sql["tokenAlive"], a.TokenID, a.ID, now)
	appended.add(t.sql["threadAppend"], true, now, false, p.ThreadID)
	if err := appended.send(ctx, conn, &seq, t.column()); err != nil {
		return fmt.Errorf("append to the thread: %w", err)
	}
	var end trip
	end.add(t.sql["messageInsert"], message, p.ThreadID, p.ChannelID, seq, a.ID, now, []string{}, []string{}, []string{}, []bool{},
		"message", "person", text, 1, text, 0, "{}", nil, nil, "normal", client, make([]byte, 32))
	return t.finish(ctx, conn, &end, a, p, message, seq, now)
}

// column is the place of the number in the row of threadAppend.
func (t *Twin) column() int {
	_, list, _ := strings.Cut(t.sql["threadAppend"], "RETURNING ")
	for i, name := range strings.Split(list, ",") {
		if strings.TrimSpace(name) == "t."+lastThreadSeq {
			return i
		}
	}
	return 0
}

const none = "00000000-0000-0000-0000-000000000000"

// finish numbers the events and commits.
func (t *Twin) finish(ctx context.Context, conn *pgx.Conn, end *trip, a Author, p Place, message string, seq int64, now time.Time) error {
	end.add(t.sql["readStatePost"], a.ID, p.ThreadID, p.ChannelID, seq, "post", now)
	end.add(t.sql["eventsAppend"], now, a.ID, "person", nil, newID(), []string{newID()}, []string{"message.created"},
		[]string{p.SpaceID}, []string{p.ChannelID}, []string{p.ThreadID}, []string{none}, []string{"message"}, []string{message}, t.payloads, nil)
	end.add(t.sql["eventsNotify"])
	end.add("COMMIT")
	if err := end.send(ctx, conn, nil, 0); err != nil {
		return fmt.Errorf("commit: %w", err)
	}
	return nil
}
