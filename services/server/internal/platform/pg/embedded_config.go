// SPDX-License-Identifier: Apache-2.0

package pg

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"
)

const (
	mebibyte = 1 << 20
	gibibyte = 1 << 30
	// minSharedBuffers is the least a cluster works with sensibly.
	minSharedBuffers = 32 * mebibyte
	// reservedConns are connections beside the pool: flusher, listeners, jobs, commands.
	reservedConns = 30
	// defaultPort stands in the name of the socket when no port is configured.
	defaultPort = 5432
)

// EmbeddedConfig has the keys of the supervised cluster.
type EmbeddedConfig struct {
	// DataDir holds the cluster, its socket, its secrets and copied binaries.
	DataDir string `key:"database.embedded.data_dir" default:"/var/lib/bothy/postgres" type:"path" doc:"Folder of the embedded cluster, its socket and its secrets."`
	// BinDir holds postgres and initdb; empty means to look for them.
	BinDir string `key:"database.embedded.bin_dir" type:"path" doc:"Folder with postgres and initdb; empty means to look for them."`
	// ArchiveDir receives finished segments of the log; empty means no archive.
	ArchiveDir string `key:"database.embedded.archive_dir" type:"path" doc:"Folder that receives finished segments of the log; empty means no archive."`
	// OSUser runs PostgreSQL when this process is root; empty means to choose one.
	OSUser string `key:"database.embedded.os_user" doc:"User that runs PostgreSQL when the server runs as root; empty means bothy, postgres or nobody."`
	// Port adds loopback addresses; zero means the socket alone.
	Port int `key:"database.embedded.port" default:"0" min:"0" max:"65535" doc:"Port on loopback; 0 means the socket alone."`
	// Settings are further settings of the server, none of those this package owns.
	Settings map[string]string `key:"database.embedded.settings" doc:"Further settings of PostgreSQL, except those the server owns."`
	// SharedBuffers in bytes; zero means a quarter of the memory, 128 MiB to 1 GiB.
	SharedBuffers  int64         `key:"database.embedded.shared_buffers" type:"bytes" default:"0" min:"0" max:"1024GiB" doc:"Memory for pages, at least 32 MiB; 0 means a quarter of the memory, 128 MiB to 1 GiB."`
	ArchiveTimeout time.Duration `key:"database.embedded.archive_timeout" default:"60s" min:"10s" max:"1h" doc:"Longest time until a segment of the log is archived."`
	// StopTimeout bounds the fast stop; the immediate stop follows.
	StopTimeout time.Duration `key:"database.embedded.stop_timeout" default:"30s" min:"5s" max:"5m" doc:"How long the fast stop may take before the immediate one."`
	// More than MaxRestarts restarts within RestartWindow end the supervision.
	RestartWindow time.Duration `key:"database.embedded.restart_window" default:"10m" min:"1m" max:"1h" doc:"Span in which restarts are counted."`
	MaxRestarts   int           `key:"database.embedded.max_restarts" default:"5" min:"0" max:"50" doc:"Restarts within the span before the server gives up."`

	// MaxConns is the size of the pool ("database.max_conns").
	MaxConns int
	// StartTimeout bounds the wait for the first answer ("startup.dependency_wait").
	StartTimeout time.Duration
	// OnRestart is called at each restart of a server that ended by itself, for the metric;
	// nil for none.
	OnRestart func()
}

// DefaultEmbedded is the configuration without any source.
func DefaultEmbedded() EmbeddedConfig {
	return EmbeddedConfig{
		DataDir: "/var/lib/bothy/postgres", ArchiveTimeout: time.Minute, StopTimeout: 30 * time.Second,
		RestartWindow: 10 * time.Minute, MaxRestarts: 5, MaxConns: 20, StartTimeout: time.Minute,
	}
}

// ownedSettings decide about durability, addresses, files and authentication; an operator
// cannot replace them.
var ownedSettings = []string{
	"fsync", "full_page_writes", "synchronous_commit", "wal_level", "max_wal_senders", "max_connections", "shared_buffers",
	"jit", "timezone", "wal_compression", "archive_mode", "archive_library", "archive_command", "archive_timeout",
	"listen_addresses", "port", "data_directory", "config_file", "hba_file", "ident_file", "external_pid_file",
	"password_encryption", "log_statement", "log_parameter_max_length", "log_min_error_statement", "logging_collector",
	"log_destination", "log_error_verbosity",
}

var ownedPrefixes = []string{"unix_socket_", "ssl", "basic_archive.", "krb_", "oauth_", "authentication_"}

// CheckSharedBuffers checks database.embedded.shared_buffers, whose zero stands for a share of
// the memory.
func (c EmbeddedConfig) CheckSharedBuffers() error {
	if c.SharedBuffers != 0 && c.SharedBuffers < minSharedBuffers {
		return errors.New("database.embedded.shared_buffers must be 0 or at least 32 MiB")
	}
	return nil
}

// Validate checks paths and settings and names the key at fault.
func (c EmbeddedConfig) Validate() error {
	if !filepath.IsAbs(c.DataDir) || filepath.Clean(c.DataDir) != c.DataDir || c.DataDir == "/" {
		return fmt.Errorf("database.embedded.data_dir: %q is not an absolute path in clean form", c.DataDir)
	}
	if c.ArchiveDir != "" && (!filepath.IsAbs(c.ArchiveDir) || filepath.Clean(c.ArchiveDir) != c.ArchiveDir) {
		return fmt.Errorf("database.embedded.archive_dir: %q is not an absolute path in clean form", c.ArchiveDir)
	}
	if err := c.CheckSharedBuffers(); err != nil {
		return err
	}
	var faults []error
	for name := range c.Settings {
		lower := strings.ToLower(name)
		owned := slices.Contains(ownedSettings, lower)
		for _, prefix := range ownedPrefixes {
			owned = owned || strings.HasPrefix(lower, prefix)
		}
		if owned {
			faults = append(faults, fmt.Errorf("database.embedded.settings: %s cannot be set", name))
		}
	}
	return errors.Join(faults...)
}

// serverSettings are all settings of the command line; nothing is written to a file.
func (c EmbeddedConfig) serverSettings(socketDir string) []string {
	buffers := c.SharedBuffers
	if buffers == 0 {
		buffers = min(max(totalMemory()/4, 128*mebibyte), gibibyte)
	}
	set := map[string]string{
		"fsync": "on", "full_page_writes": "on", "synchronous_commit": "on", "wal_level": "replica", "max_wal_senders": "4",
		"max_connections": fmt.Sprint(c.MaxConns + reservedConns), "shared_buffers": fmt.Sprintf("%dkB", buffers/1024),
		"jit": "off", "timezone": "UTC", "log_timezone": "UTC", "wal_compression": "on", "logging_collector": "off",
		"log_destination": "stderr", "log_statement": "none", "log_parameter_max_length": "0", "log_min_error_statement": "panic",
		// The detail of a violated constraint quotes the row: an address, a name.
		"log_error_verbosity": "terse",
		"password_encryption": "scram-sha-256", "unix_socket_directories": socketDir, "unix_socket_permissions": "0700",
		"listen_addresses": "", "port": fmt.Sprint(c.port()),
	}
	if c.Port > 0 {
		set["listen_addresses"] = "127.0.0.1,::1"
	}
	if c.ArchiveDir != "" {
		set["archive_mode"], set["archive_library"] = "on", "basic_archive"
		set["basic_archive.archive_directory"] = c.ArchiveDir
		set["archive_timeout"] = fmt.Sprintf("%ds", int(c.ArchiveTimeout.Seconds()))
	}
	if runtime.GOOS == "linux" {
		// After a crash the server would otherwise open and flush every file of the cluster before it answers, which takes
		// tens of seconds on a busy disk. Linux 5.8 and later report errors of this way as well.
		set["recovery_init_sync_method"] = "syncfs"
	}
	for name, value := range c.Settings {
		set[name] = value
	}
	var args []string
	for name, value := range set {
		args = append(args, name+"="+value)
	}
	slices.Sort(args)
	return args
}

func (c EmbeddedConfig) port() int {
	if c.Port > 0 {
		return c.Port
	}
	return defaultPort
}

// totalMemory is the memory of the machine in bytes, zero when unknown.
func totalMemory() int64 {
	f, err := os.Open("/proc/meminfo")
	if err != nil {
		return 0
	}
	defer func() { _ = f.Close() }()
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		var kilobytes int64
		if n, _ := fmt.Sscanf(lines.Text(), "MemTotal: %d kB", &kilobytes); n == 1 {
			return kilobytes * 1024
		}
	}
	return 0
}
