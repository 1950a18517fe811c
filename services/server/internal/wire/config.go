// SPDX-License-Identifier: Apache-2.0

// Package wire builds the process out of its modules. It is the only place that knows all of
// them: it loads the configuration, constructs every part in the order of the dependencies,
// registers hooks and subscribers, and hands what runs to the lifecycle. Modules never reach
// for each other; they get what they need as arguments here.
//
// One file per module holds its construction; serve.go is the order of the start, and the
// commands of the binary stand in files of their own.
package wire

import (
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/OWNER/bothy/services/server/internal/gateway/adapters/ws"
	gatewayapp "github.com/OWNER/bothy/services/server/internal/gateway/app"
	"github.com/OWNER/bothy/services/server/internal/platform/config"
	"github.com/OWNER/bothy/services/server/internal/platform/egress"
	"github.com/OWNER/bothy/services/server/internal/platform/httpserver"
	"github.com/OWNER/bothy/services/server/internal/platform/jobs"
	"github.com/OWNER/bothy/services/server/internal/platform/lifecycle"
	"github.com/OWNER/bothy/services/server/internal/platform/otel"
	"github.com/OWNER/bothy/services/server/internal/platform/pg"
	"github.com/OWNER/bothy/services/server/internal/platform/ratelimit"
	"github.com/OWNER/bothy/services/server/internal/platform/secrets"
	syncapp "github.com/OWNER/bothy/services/server/internal/sync/app"
)

// Config is the configuration of the whole process: one struct per package that has keys.
type Config struct {
	Instance  instanceConfig
	Database  databaseConfig
	Lifecycle lifecycle.Config
	HTTP      httpserver.Config
	PG        pg.Config
	Embedded  pg.EmbeddedConfig
	Secrets   secrets.Config
	Otel      otel.Config
	Log       otel.LogConfig
	RateLimit ratelimit.Config
	Egress    egress.Config
	Jobs      jobs.Config
	Sync      syncConfig
	Gateway   gatewayapp.Config
	WS        ws.Config
	Modules   moduleConfig
}

type instanceConfig struct {
	Environment string `key:"instance.environment" default:"production" enum:"production,staging,dev" doc:"What the installation is for; dev allows demo data and an unsafe database."`
}

type databaseConfig struct {
	RestoreGuard         string        `key:"database.restore_guard" default:"on" enum:"on,off" doc:"Refuse to serve from a database that is not the one this installation was written to, until a restore is finalized."`
	OwnerPasswordRef     string        `key:"database.owner_password_ref" default:"file:<secrets.dir>/database_owner_password" type:"ref" doc:"Password of the role that owns the schema."`
	MaintPasswordRef     string        `key:"database.maint_password_ref" default:"file:<secrets.dir>/database_maint_password" type:"ref" doc:"Password of the role that trims the audit log."`
	BackupPasswordRef    string        `key:"database.backup_password_ref" default:"file:<secrets.dir>/database_backup_password" type:"ref" doc:"Password of the role that backs up."`
	MonitorPasswordRef   string        `key:"database.monitor_password_ref" default:"file:<secrets.dir>/database_monitor_password" type:"ref" doc:"Password of the role that monitors."`
	BootstrapUser        string        `key:"migrate.bootstrap_user" default:"postgres" doc:"Superuser that creates database and roles."`
	BootstrapPasswordRef string        `key:"migrate.bootstrap_password_ref" default:"file:<secrets.dir>/database_bootstrap_password" type:"ref" doc:"Password of that superuser; not used with an embedded database."`
	MigrateLockTimeout   time.Duration `key:"migrate.lock_timeout" default:"5s" min:"1s" max:"60s" doc:"How long a step of the schema waits for a lock before it is tried again."`
	// OwnerDSN and MaintDSN replace the addresses of two roles, for tests.
	OwnerDSN, MaintDSN string
}

type syncConfig struct {
	Append      syncapp.AppendConfig
	Tail        syncapp.TailConfig
	CatchUp     syncapp.CatchUpConfig
	Snapshot    syncapp.SnapshotConfig
	ReadStates  syncapp.ReadStateConfig
	Partitions  syncapp.PartitionConfig
	Idempotency syncapp.IdempotencyConfig
	// CleanupInterval schedules the job that deletes expired keys.
	CleanupInterval time.Duration `key:"sync.idempotency_cleanup_interval" default:"1h" min:"1m" max:"24h" doc:"How often stored answers of repeatable writes that have expired are deleted."`
}

// Sources are what the configuration is read from.
type Sources struct {
	// File is the path given on the command line; empty means the variable of the
	// environment, and without it no file.
	File string
	// Flags are keys set on the command line.
	Flags   map[string]string
	Environ []string
}

// newConfig gives a configuration with the defaults that packages state in functions.
func newConfig() *Config {
	c := &Config{PG: pg.Default(), Embedded: pg.DefaultEmbedded(), RateLimit: ratelimit.Defaults()}
	c.Modules.defaults()
	return c
}

// schema binds every struct and states the conditions over several keys.
func schema(c *Config) *config.Schema {
	s := config.NewSchema()
	s.Bind("instance", &c.Instance)
	s.Bind("pg", &c.Database)
	s.Bind("lifecycle", &c.Lifecycle)
	s.Bind("httpserver", &c.HTTP)
	s.Bind("pg", &c.PG)
	s.Bind("pg", &c.Embedded)
	s.Bind("secrets", &c.Secrets)
	s.Bind("otel", &c.Otel)
	s.Bind("otel", &c.Log)
	s.Bind("ratelimit", &c.RateLimit)
	s.Bind("egress", &c.Egress)
	s.Bind("jobs", &c.Jobs)
	s.Bind("sync", &c.Sync)
	s.Bind("gateway", &c.Gateway)
	s.Bind("gateway", &c.WS)
	c.Modules.bind(s)
	crossChecks(s, c)
	return s
}

func crossChecks(s *config.Schema, c *Config) {
	s.Check("listeners_differ", []string{"server.listen_addr", "server.internal_listen_addr"}, func() error {
		return config.ListenersDiffer(c.HTTP.ListenAddr, c.HTTP.InternalListenAddr)
	})
	s.Check("public_url_secure", []string{"server.public_url"}, func() error {
		if c.HTTP.PublicURL == "" && c.Instance.Environment == "dev" {
			return nil
		}
		return config.PublicURLSecure(c.HTTP.PublicURL)
	})
	// A method value would keep the struct as it is now, before anything is loaded.
	s.Check("tls_pair", []string{"server.tls.certificate_file", "server.tls.key_ref"}, func() error { return c.HTTP.CheckTLSPair() })
	s.Check("unavailable_whole_seconds", []string{"http.unavailable_retry_after"}, func() error { return c.HTTP.CheckWholeSeconds() })
	s.Check("shutdown_budget", []string{"shutdown.total_timeout"}, func() error { return c.Lifecycle.CheckBudget() })
	s.Check("shared_buffers_enough", []string{"database.embedded.shared_buffers"}, func() error { return c.Embedded.CheckSharedBuffers() })
	s.Check("egress_entries", []string{"egress.allowed_hosts"}, func() error { return c.Egress.CheckEntries() })
	s.Check("embedded_single_process", []string{"database.mode", "server.role"}, func() error {
		if c.PG.Mode == pg.ModeEmbedded && c.Lifecycle.Role != "all" {
			return errors.New("an embedded database serves one process; set server.role to all or database.mode to external")
		}
		return nil
	})
	s.Check("consumer_and_partitions", []string{"sync.catchup_scan_rows", "sync.catchup_page_size"}, func() error {
		if c.Sync.CatchUp.ScanRows < int64(c.Sync.CatchUp.PageSize) {
			return errors.New("sync.catchup_scan_rows must be at least sync.catchup_page_size")
		}
		return nil
	})
	s.Check("resume_above_heartbeat", []string{"gateway.resume_window", "sync.heartbeat_interval"}, func() error {
		if c.Gateway.ResumeWindow <= c.Gateway.HeartbeatInterval {
			return errors.New("gateway.resume_window must be longer than sync.heartbeat_interval")
		}
		return nil
	})
	s.Check("partitions_outlast_maintenance", []string{"sync.event_log_partition_size", "sync.event_log_partitions_ahead"}, func() error {
		const eventsPerSecond = 1000
		ready := int64(c.Sync.Partitions.Ahead) * c.Sync.Partitions.Size
		if ready <= int64(2*c.Sync.Partitions.Interval.Seconds())*eventsPerSecond {
			return errors.New("the partitions made ahead must hold what two maintenance intervals can write")
		}
		return nil
	})
	c.Modules.crossChecks(s, c)
}

// LoadConfig reads and checks the configuration. The error is for an operator: it names every
// fault, one per line.
func LoadConfig(from Sources) (*Config, *config.Loaded, error) {
	c := newConfig()
	name := from.File
	if name == "" {
		name = lookup(from.Environ, config.EnvConfigFile)
	}
	sources := config.Sources{FileName: name, Environ: from.Environ, Flags: from.Flags}
	if name != "" {
		var err error
		if sources.File, err = readFile(name); err != nil {
			return nil, nil, fmt.Errorf("read the configuration file: %w", err)
		}
	}
	loaded, err := schema(c).Load(sources)
	if err != nil {
		return nil, nil, err
	}
	c.derive()
	return c, loaded, nil
}

// derive fills what one key decides for another package.
func (c *Config) derive() {
	if c.HTTP.PublicURL == "" {
		c.HTTP.PublicURL = "http://" + c.HTTP.ListenAddr
	}
	c.PG.AllowUnsafe = c.Instance.Environment == "dev"
	c.Embedded.MaxConns = c.PG.MaxConns
	c.Embedded.StartTimeout = c.Lifecycle.DependencyWait
	c.Gateway.MaxDepth = c.HTTP.MaxJSONDepth
	c.WS.MaxFrameBytes = c.Gateway.MaxFrameBytes
	c.WS.Origins = append([]string{c.HTTP.PublicURL}, c.HTTP.CORSAllowedOrigins...)
	if class := c.RateLimit.Classes[ratelimit.Name("rl.gateway_op")]; class != nil {
		c.Gateway.OpsPerMinute, c.Gateway.OpsBurst = int(class.PerMinute), int(class.Burst)
	}
	c.Modules.derive(c)
}

func lookup(environ []string, name string) string {
	for _, entry := range environ {
		if len(entry) > len(name) && entry[:len(name)] == name && entry[len(name)] == '=' {
			return entry[len(name)+1:]
		}
	}
	return ""
}

// maxConfigBytes keeps a wrong path, such as a device, from being read without end.
const maxConfigBytes = 1 << 20

func readFile(name string) ([]byte, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	return io.ReadAll(io.LimitReader(f, maxConfigBytes))
}

// PrintConfig writes the effective values with their sources; references stay references.
func PrintConfig(from Sources, w io.Writer, changed bool) error {
	_, loaded, err := LoadConfig(from)
	if err != nil {
		return err
	}
	return loaded.Print(w, changed)
}

// ConfigReference writes the reference of all keys as Markdown.
func ConfigReference(w io.Writer) error { return schema(newConfig()).Reference(w) }
