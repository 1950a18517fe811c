// SPDX-License-Identifier: Apache-2.0

package pg

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/OWNER/bothy/services/server/internal/kernel/flush"
)

// statementCacheCapacity is the number of prepared statements a connection keeps; it lies
// above the number of distinct statements of the server.
const statementCacheCapacity = 1024

// DB is the pool of one process and the flusher behind its barrier.
type DB struct {
	cfg     Config
	log     *slog.Logger
	pool    *pgxpool.Pool
	flusher *Flusher // nil with synchronous commits
	barrier flush.Barrier
	// unflushed counts units between COMMIT and flush: reads may see them already. doubts
	// counts units whose flush was never proved; settled is the count that a later flush
	// has covered.
	unflushed, doubts, settled atomic.Int64
	closeOnce                  sync.Once
	// password replaces the one of cfg once the secret has been rotated.
	password atomic.Pointer[string]
}

// Open connects flusher and pool and checks that the server keeps what it confirms. Close
// ends both.
func Open(ctx context.Context, cfg Config, log *slog.Logger) (*DB, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	if cfg.Metrics == nil {
		cfg.Metrics = noMetrics{}
	}
	db := &DB{cfg: cfg, log: log, barrier: noBarrier{}}
	if cfg.CommitMode == CommitGroupFlush {
		db.flusher = newFlusher(db.connectFlusher, cfg.FlushTimeout, cfg.ListenBackoffCap, log.With("component", "pg.flusher"))
		db.flusher.metrics = cfg.Metrics
		if err := db.flusher.start(ctx); err != nil {
			return nil, fmt.Errorf("connect the flusher: %w", err)
		}
		db.barrier = db.flusher
	} else if err := db.checkDurable(ctx); err != nil {
		return nil, err
	}
	pool, err := db.openPool(ctx, cfg.CommitMode == CommitSynchronous, cfg.appName(), int32(cfg.MaxConns))
	if err != nil {
		db.Close()
		return nil, err
	}
	db.pool = pool
	if err := db.ping(ctx); err != nil {
		db.Close()
		return nil, fmt.Errorf("reach the database: %w", err)
	}
	return db, nil
}

// OpenPlain opens a further pool whose connections commit synchronously and may write
// outside units: for the jobs runtime and for commands. The caller closes it.
func (db *DB) OpenPlain(ctx context.Context, appName string, maxConns int) (*pgxpool.Pool, error) {
	cfg, err := db.poolConfig(appName, int32(maxConns))
	if err != nil {
		return nil, err
	}
	delete(cfg.ConnConfig.RuntimeParams, "default_transaction_read_only")
	pool, err := pgxpool.NewWithConfig(ctx, cfg)
	if err != nil {
		return nil, fmt.Errorf("open the pool %s: %w", appName, err)
	}
	return pool, nil
}

// UsePassword makes every further connection sign in with another password. Those that are
// open stay: the server asks for it only at their beginning.
func (db *DB) UsePassword(password string) { db.password.Store(&password) }

func (db *DB) signIn(c *pgx.ConnConfig) {
	if password := db.password.Load(); password != nil {
		c.Password = *password
	}
}

// Barrier waits for durability; with synchronous commits it never waits.
func (db *DB) Barrier() flush.Barrier { return db.barrier }

// Flusher is the flusher behind the barrier, nil with synchronous commits; metrics read it.
func (db *DB) Flusher() *Flusher { return db.flusher }

// Config is what the DB was opened with.
func (db *DB) Config() Config { return db.cfg }

// Stat describes the pool, for metrics.
func (db *DB) Stat() *pgxpool.Stat { return db.pool.Stat() }

// Ping asks the server for an answer; readiness uses it.
func (db *DB) Ping(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, db.cfg.AcquireTimeout)
	defer cancel()
	return translate(db.ping(ctx))
}

// Close ends pool and flusher after the running units. It may be called more than once.
func (db *DB) Close() {
	db.closeOnce.Do(func() {
		if db.pool != nil {
			db.pool.Close()
		}
		if db.flusher != nil {
			db.flusher.close()
		}
	})
}

// mayShowUnflushed reports whether a read may have seen what is not durable yet, as far as
// this process knows.
func (db *DB) mayShowUnflushed() bool {
	return db.unflushed.Load() > 0 || db.doubts.Load() > db.settled.Load()
}

// await waits on the barrier. A success covers every earlier commit, also those that were
// given up on; a failure leaves one more in doubt.
func (db *DB) await(ctx context.Context, generation uint64) error {
	covered := db.doubts.Load()
	begin := time.Now()
	err := db.barrier.Wait(ctx, generation)
	db.cfg.Metrics.FlushWait(ctx, time.Since(begin))
	if err != nil {
		db.doubts.Add(1)
		return err
	}
	for old := db.settled.Load(); old < covered && !db.settled.CompareAndSwap(old, covered); old = db.settled.Load() {
	}
	return nil
}

func (db *DB) ping(ctx context.Context) error {
	conn, err := db.acquire(ctx)
	if err != nil {
		return err
	}
	defer conn.Release()
	return conn.Ping(ctx)
}

// acquire takes a connection within the acquire timeout; overload is a refusal, not a queue.
func (db *DB) acquire(ctx context.Context) (*pgxpool.Conn, error) {
	limited, cancel := context.WithTimeout(ctx, db.cfg.AcquireTimeout)
	defer cancel()
	begin := time.Now()
	conn, err := db.pool.Acquire(limited)
	db.cfg.Metrics.AcquireWait(ctx, time.Since(begin))
	if err == nil {
		return conn, nil
	}
	if ctx.Err() == nil && errors.Is(err, context.DeadlineExceeded) {
		stat := db.pool.Stat()
		if stat.AcquiredConns() >= stat.MaxConns() {
			return nil, unavailable(CausePoolExhausted, err)
		}
		return nil, unavailable(CauseDependency, err)
	}
	if ctx.Err() != nil {
		return nil, unavailable(CauseDeadline, err)
	}
	return nil, unavailable(CauseDependency, err)
}

// flusherUp refuses work whose durability could not be proved, after a short wait.
func (db *DB) flusherUp(ctx context.Context) error {
	if db.flusher == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, db.cfg.AcquireTimeout)
	defer cancel()
	return db.flusher.up(ctx)
}

func (db *DB) openPool(ctx context.Context, synchronous bool, appName string, maxConns int32) (*pgxpool.Pool, error) {
	cfg, err := db.poolConfig(appName, maxConns)
	if err != nil {
		return nil, err
	}
	if !synchronous {
		cfg.ConnConfig.RuntimeParams["synchronous_commit"] = "off"
		register := cfg.AfterConnect
		cfg.AfterConnect = func(ctx context.Context, conn *pgx.Conn) error {
			if err := register(ctx, conn); err != nil {
				return err
			}
			return db.flusher.ready(ctx)
		}
	}
	pool, err := pgxpool.NewWithConfig(ctx, cfg)
	if err != nil {
		return nil, fmt.Errorf("open the pool: %w", err)
	}
	return pool, nil
}

func (db *DB) poolConfig(appName string, maxConns int32) (*pgxpool.Config, error) {
	cfg, err := pgxpool.ParseConfig(db.cfg.ConnString())
	if err != nil {
		return nil, errors.New("the address of the database is malformed")
	}
	cfg.MaxConns = maxConns
	cfg.MaxConnLifetime = time.Hour
	cfg.MaxConnLifetimeJitter = 10 * time.Minute
	cfg.ConnConfig.ConnectTimeout = db.cfg.AcquireTimeout
	cfg.ConnConfig.StatementCacheCapacity = statementCacheCapacity
	cfg.ConnConfig.Tracer = db.cfg.Tracer
	for name, value := range map[string]string{
		"application_name":                    appName,
		"TimeZone":                            "UTC",
		"statement_timeout":                   milliseconds(db.cfg.StatementTimeout),
		"lock_timeout":                        milliseconds(db.cfg.LockTimeout),
		"idle_in_transaction_session_timeout": milliseconds(db.cfg.IdleInTxTimeout),
		// Units say READ WRITE themselves; a write outside one is a fault and fails.
		"default_transaction_read_only": "on",
	} {
		cfg.ConnConfig.RuntimeParams[name] = value
	}
	cfg.BeforeConnect = func(_ context.Context, c *pgx.ConnConfig) error {
		db.signIn(c)
		return nil
	}
	cfg.AfterConnect = func(_ context.Context, conn *pgx.Conn) error {
		RegisterTypes(conn.TypeMap())
		return nil
	}
	return cfg, nil
}

// connectDirect opens a connection outside the pool, for the flusher and for LISTEN.
func (db *DB) connectDirect(ctx context.Context, appName string) (*pgx.Conn, error) {
	cfg, err := pgx.ParseConfig(db.cfg.ConnString())
	if err != nil {
		return nil, errors.New("the address of the database is malformed")
	}
	cfg.RuntimeParams["application_name"] = appName
	db.signIn(cfg)
	ctx, cancel := context.WithTimeout(ctx, db.cfg.AcquireTimeout)
	defer cancel()
	return pgx.ConnectConfig(ctx, cfg)
}

func (db *DB) connectFlusher(ctx context.Context) (flushConn, error) {
	conn, err := db.connectDirect(ctx, "bothy-flush")
	if err != nil {
		return nil, err
	}
	if err := db.refuseUnsafe(ctx, conn); err != nil {
		closeConn(conn)
		return nil, err
	}
	flusher := pgxFlush{conn}
	if err := flusher.Flush(ctx); err != nil {
		closeConn(conn)
		return nil, fmt.Errorf("flush once: %w", err)
	}
	return flusher, nil
}

// checkDurable is what the flusher's connection finds out in the other mode.
func (db *DB) checkDurable(ctx context.Context) error {
	conn, err := db.connectDirect(ctx, db.cfg.appName())
	if err != nil {
		return fmt.Errorf("reach the database: %w", err)
	}
	defer closeConn(conn)
	return db.refuseUnsafe(ctx, conn)
}

// refuseUnsafe keeps the server from confirming what a crash of the machine would undo.
func (db *DB) refuseUnsafe(ctx context.Context, conn *pgx.Conn) error {
	if db.cfg.AllowUnsafe {
		return nil
	}
	var fsync, commit string
	err := conn.QueryRow(ctx, "SELECT current_setting('fsync'), current_setting('synchronous_commit')").Scan(&fsync, &commit)
	switch {
	case err != nil:
		return fmt.Errorf("read the durability settings: %w", err)
	case fsync == "off":
		return errors.New("the database runs with fsync = off; only a development instance accepts that")
	case commit == "off":
		return errors.New("the session of the flusher has synchronous_commit = off; only a development instance accepts that")
	}
	return nil
}

func (c Config) appName() string {
	if c.AppName == "" {
		return "bothy"
	}
	return c.AppName
}

func milliseconds(d time.Duration) string { return strconv.FormatInt(d.Milliseconds(), 10) }
