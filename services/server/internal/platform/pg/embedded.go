// SPDX-License-Identifier: Apache-2.0

package pg

import (
	"context"
	"fmt"
	"log/slog"
	"net/url"
	"os"
	"strconv"
	"strings"
	"sync"
)

// Embedded is a cluster that this process started and supervises.
//
//	starting ──answers──▶ running ──exit──▶ pause ──▶ starting
//	                         │                └── too many within the window ──▶ failed
//	                         └──Stop──▶ fast stop ──timeout──▶ immediate stop ──▶ stopped
type Embedded struct {
	cfg       EmbeddedConfig
	log       *slog.Logger
	folder    folder
	binaries  Binaries
	socketDir string
	password  string
	lock      *os.File
	tail      *logTail

	stopping chan struct{}
	stopOnce sync.Once
	done     chan struct{}
	err      error // why the supervision ended; read after done

	mu    sync.Mutex
	child *child
}

// StartEmbedded finds the binaries, makes the cluster at the first start, and starts and
// supervises the server. It returns when the server answers. ErrSupervised means that
// another process does all this already.
func StartEmbedded(ctx context.Context, cfg EmbeddedConfig, log *slog.Logger) (_ *Embedded, err error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	user, err := FindOSUser(cfg.OSUser)
	if err != nil {
		return nil, err
	}
	e := &Embedded{
		cfg: cfg, log: log.With("component", "postgres"), folder: folder{root: cfg.DataDir, user: user},
		tail: &logTail{}, stopping: make(chan struct{}), done: make(chan struct{}),
	}
	if err := e.folder.prepare(); err != nil {
		return nil, err
	}
	if e.lock, err = e.folder.lockSupervisor(); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			_ = e.lock.Close()
		}
	}()
	if err := e.prepare(ctx); err != nil {
		return nil, err
	}
	if err := e.firstStart(ctx); err != nil {
		return nil, err
	}
	go e.supervise()
	return e, nil
}

func (e *Embedded) prepare(ctx context.Context) error {
	found, err := FindBinaries(ctx, e.cfg.BinDir)
	if err != nil {
		return fmt.Errorf("database.embedded.bin_dir: %w", err)
	}
	if e.binaries, err = found.Stage(ctx, e.folder.staged(), e.folder.user); err != nil {
		return err
	}
	if err := e.folder.checkMajor(); err != nil {
		return err
	}
	if err := e.folder.initialise(ctx, e.binaries); err != nil {
		return err
	}
	if err := e.folder.stopOrphan(ctx, e.cfg.StopTimeout); err != nil {
		return err
	}
	password, replaced, err := e.folder.superuserPassword(ctx, e.binaries)
	if err != nil {
		return err
	}
	if e.password = password; replaced {
		e.log.Warn("the superuser's password was lost and has been replaced")
	}
	if err := e.folder.writeHBA(e.cfg.Port > 0); err != nil {
		return err
	}
	e.socketDir, err = e.folder.socketDir(e.cfg.port())
	return err
}

// Host is the folder of the socket, for Config.Host.
func (e *Embedded) Host() string { return e.socketDir }

// Port is the number in the socket's name, for Config.Port.
func (e *Embedded) Port() int { return e.cfg.port() }

// AdminDSN connects as superuser to the database postgres. It holds the password.
func (e *Embedded) AdminDSN() string {
	return Address{Host: e.socketDir, Port: e.Port(), password: e.password}.AdminDSN()
}

// Address is where a supervised cluster is reached.
type Address struct {
	// Host is the folder of the socket, Port the number in the socket's name.
	Host     string
	Port     int
	password string
}

// AdminDSN connects as superuser to the database postgres. It holds the password.
func (a Address) AdminDSN() string {
	query := url.Values{"host": {a.Host}, "port": {strconv.Itoa(a.Port)}, "sslmode": {"disable"}}
	u := url.URL{Scheme: "postgres", User: url.UserPassword(bootstrapUser, a.password), Path: "/postgres", RawQuery: encodeQuery(query)}
	return u.String()
}

// FindEmbedded gives the address of the cluster that another process supervises: what a
// command uses after StartEmbedded answered ErrSupervised.
func FindEmbedded(cfg EmbeddedConfig) (Address, error) {
	f := folder{root: cfg.DataDir}
	password, err := os.ReadFile(f.password())
	if err != nil {
		return Address{}, fmt.Errorf("read the superuser's password: %w", err)
	}
	a := Address{Host: f.run(), Port: cfg.port(), password: strings.TrimSpace(string(password))}
	if moved, err := os.ReadFile(f.location()); err == nil {
		a.Host = strings.TrimSpace(string(moved))
	}
	return a, nil
}

// Version is the version of the server.
func (e *Embedded) Version() string { return e.binaries.Version }

// Done is closed when the supervision has ended: after Stop, or because the server kept
// ending. Err then tells which.
func (e *Embedded) Done() <-chan struct{} { return e.done }

// Err is nil after Stop; otherwise it says why the supervision gave up, with the last
// lines of the server's log. It is valid after Done.
func (e *Embedded) Err() error {
	<-e.done
	return e.err
}

// Stop ends the server: the fast stop first, the immediate one when that takes too long or
// ctx ends. It is called after the pool is closed, and may be called again.
func (e *Embedded) Stop(ctx context.Context) error {
	e.stopOnce.Do(func() { close(e.stopping) })
	select {
	case <-e.done:
	case <-ctx.Done():
		e.Abort()
		<-e.done
	}
	return e.err
}

// Abort is the immediate stop of a forced end: the next start recovers.
func (e *Embedded) Abort() {
	e.stopOnce.Do(func() { close(e.stopping) })
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.child != nil {
		e.child.immediateStop()
	}
}
