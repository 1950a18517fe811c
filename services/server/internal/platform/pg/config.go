// SPDX-License-Identifier: Apache-2.0

package pg

import (
	"fmt"
	"net"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
)

// Modes of Config.Mode and Config.CommitMode.
const (
	// ModeExternal connects to a cluster that somebody else runs.
	ModeExternal = "external"
	// ModeEmbedded connects to the cluster that this process supervises.
	ModeEmbedded = "embedded"
	// CommitGroupFlush commits without waiting for the disk and lets one flush serve many
	// commits; nothing leaves the process before that flush.
	CommitGroupFlush = "group_flush"
	// CommitSynchronous waits for the disk at every commit.
	CommitSynchronous = "synchronous"
)

// Config has the keys of the connection. Fields without a key are set by the composition
// root, for example resolved secrets.
type Config struct {
	Mode string `key:"database.mode" default:"external" enum:"external,embedded" doc:"Who runs PostgreSQL: somebody else, or this process."`
	// Host is a name, an address or an absolute folder with the server's socket.
	Host string `key:"database.host" default:"localhost" doc:"Name or address of the server, or the absolute folder of its socket."`
	Port int    `key:"database.port" default:"5432" min:"1" max:"65535" doc:"Port of the server."`
	Name string `key:"database.name" default:"bothy" doc:"Name of the database."`
	User string `key:"database.user" default:"bothy_app" doc:"Role of the server; it owns nothing."`
	// PasswordRef names the secret; Password is what it resolves to.
	PasswordRef string `key:"database.password_ref" default:"file:<secrets.dir>/database_app_password" type:"ref" doc:"Password of that role."`
	Password    string
	// SSLMode is auto (off on sockets and loopback, else verify-full) or a libpq word.
	SSLMode     string `key:"database.sslmode" default:"auto" enum:"auto,disable,require,verify-ca,verify-full" doc:"Encryption of the connection; auto means none on sockets and loopback and verify-full elsewhere."`
	SSLRootCert string `key:"database.ssl_root_cert" type:"path" doc:"Certificates that the server's certificate is checked against; empty means those of the system."`
	// MaxConns bounds the pool; flusher and listeners have connections of their own.
	MaxConns   int    `key:"database.max_conns" default:"20" min:"4" max:"500" doc:"Connections of the pool; flusher and listeners have their own."`
	CommitMode string `key:"database.commit_mode" default:"group_flush" enum:"group_flush,synchronous" doc:"Whether one flush makes many commits durable, or each commit waits for its own."`
	// AcquireTimeout turns overload into a quick refusal instead of a queue.
	AcquireTimeout   time.Duration `key:"database.acquire_timeout" default:"2s" min:"100ms" max:"60s" doc:"How long work waits for a connection before it is refused as overload."`
	StatementTimeout time.Duration `key:"database.statement_timeout" default:"5s" min:"100ms" max:"60s" doc:"How long a statement may run."`
	LockTimeout      time.Duration `key:"database.lock_timeout" default:"2s" min:"100ms" max:"60s" doc:"How long a statement waits for a lock."`
	IdleInTxTimeout  time.Duration `key:"database.idle_in_tx_timeout" default:"10s" min:"1s" max:"60s" doc:"How long a transaction may stay open without work."`
	// FlushTimeout bounds the wait for durability; beyond it the outcome counts as unknown.
	FlushTimeout time.Duration `key:"database.flush_timeout" default:"5s" min:"100ms" max:"60s" doc:"How long a commit may wait to become durable before its outcome counts as unknown."`
	// TxRetryMax bounds the repetitions of a unit after deadlocks and lock timeouts.
	TxRetryMax int `key:"database.tx_retry_max" default:"2" min:"0" max:"10" doc:"How often a unit of work is repeated after deadlocks and lock timeouts."`
	// ListenBackoffCap bounds the pause between attempts of a lost LISTEN or flush connection.
	ListenBackoffCap time.Duration `key:"database.listen_reconnect_backoff_cap" default:"10s" min:"1s" max:"60s" doc:"Longest pause between attempts to replace a lost LISTEN or flush connection."`

	// AllowUnsafe accepts a server that does not write to disk (development and tests).
	AllowUnsafe bool
	// AppName is the application name of pool connections; "bothy" when empty.
	AppName string
	// DSN replaces host to ssl_root_cert when set (tests, commands).
	DSN string
	// Tracer observes statements; nil for none.
	Tracer pgx.QueryTracer
	// Metrics receives measurements; nil for none.
	Metrics Metrics
}

// Default is the configuration without any source.
func Default() Config {
	return Config{
		Mode: ModeExternal, Host: "localhost", Port: 5432, Name: "bothy", User: "bothy_app",
		PasswordRef: "file:<secrets.dir>/database_app_password", SSLMode: "auto",
		MaxConns: 20, CommitMode: CommitGroupFlush,
		AcquireTimeout: 2 * time.Second, StatementTimeout: 5 * time.Second, LockTimeout: 2 * time.Second,
		IdleInTxTimeout: 10 * time.Second, FlushTimeout: 5 * time.Second,
		TxRetryMax: 2, ListenBackoffCap: 10 * time.Second,
	}
}

// Validate checks the ranges and names the first key that is out of its own.
func (c Config) Validate() error {
	for _, d := range []struct {
		key      string
		value    time.Duration
		min, max time.Duration
	}{
		{"database.acquire_timeout", c.AcquireTimeout, 100 * time.Millisecond, time.Minute},
		{"database.statement_timeout", c.StatementTimeout, 100 * time.Millisecond, time.Minute},
		{"database.lock_timeout", c.LockTimeout, 100 * time.Millisecond, time.Minute},
		{"database.idle_in_tx_timeout", c.IdleInTxTimeout, time.Second, time.Minute},
		{"database.flush_timeout", c.FlushTimeout, 100 * time.Millisecond, time.Minute},
		{"database.listen_reconnect_backoff_cap", c.ListenBackoffCap, time.Second, time.Minute},
	} {
		if d.value < d.min || d.value > d.max {
			return fmt.Errorf("%s: %s is outside %s to %s", d.key, d.value, d.min, d.max)
		}
	}
	switch {
	case c.Mode != ModeExternal && c.Mode != ModeEmbedded:
		return fmt.Errorf("database.mode: %q is neither external nor embedded", c.Mode)
	case c.CommitMode != CommitGroupFlush && c.CommitMode != CommitSynchronous:
		return fmt.Errorf("database.commit_mode: %q is neither group_flush nor synchronous", c.CommitMode)
	case c.MaxConns < 4 || c.MaxConns > 500:
		return fmt.Errorf("database.max_conns: %d is outside 4 to 500", c.MaxConns)
	case c.TxRetryMax < 0 || c.TxRetryMax > 10:
		return fmt.Errorf("database.tx_retry_max: %d is outside 0 to 10", c.TxRetryMax)
	}
	return nil
}

// ConnString is the address in URL form, with the password when there is one: never log it.
func (c Config) ConnString() string {
	if c.DSN != "" {
		return c.DSN
	}
	query := url.Values{}
	u := url.URL{Scheme: "postgres", Path: "/" + c.Name, User: url.User(c.User)}
	if c.Password != "" {
		u.User = url.UserPassword(c.User, c.Password)
	}
	if strings.HasPrefix(c.Host, "/") {
		query.Set("host", c.Host)
		query.Set("port", strconv.Itoa(c.Port))
	} else {
		u.Host = net.JoinHostPort(c.Host, strconv.Itoa(c.Port))
	}
	query.Set("sslmode", c.sslMode())
	if c.SSLRootCert != "" {
		query.Set("sslrootcert", c.SSLRootCert)
	}
	u.RawQuery = encodeQuery(query)
	return u.String()
}

// encodeQuery escapes spaces the one way that every reader of such addresses understands.
func encodeQuery(q url.Values) string { return strings.ReplaceAll(q.Encode(), "+", "%20") }

func (c Config) sslMode() string {
	if c.SSLMode != "auto" && c.SSLMode != "" {
		return c.SSLMode
	}
	if strings.HasPrefix(c.Host, "/") || c.Host == "localhost" {
		return "disable"
	}
	if ip := net.ParseIP(c.Host); ip != nil && ip.IsLoopback() {
		return "disable"
	}
	return "verify-full"
}
