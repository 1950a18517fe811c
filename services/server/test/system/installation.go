// SPDX-License-Identifier: Apache-2.0

package system

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"gopkg.in/yaml.v3"

	"github.com/OWNER/bothy/services/server/internal/platform/pg"
	"github.com/OWNER/bothy/services/server/internal/platform/secrets"
)

// Options say what is installed and where.
type Options struct {
	// Dir gets everything; the caller removes it. Every parent must be open to the user that runs PostgreSQL.
	Dir string
	// Binary is the server; see Build.
	Binary string
	// DatabaseApart lets this process run the database instead of the server, so that the server can be measured and
	// killed alone.
	DatabaseApart bool
	// Log gets everything the server writes to its standard error; nil keeps the end alone, see Server.Log.
	Log io.Writer
	// Config adds keys to the configuration file.
	Config map[string]string
}

// Installation is a folder with everything a server needs.
type Installation struct {
	// Address is where clients reach the server, for example http://127.0.0.1:41237.
	Address string
	// Owner is the first owner, once Populate has logged in.
	Owner *Client

	options  Options
	internal string
	file     string
	code     string
	session  *Client
	cluster  *pg.Embedded
}

// Build compiles the server into a folder, unless BOTHY_BINARY names one.
func Build(ctx context.Context, dir string) (string, error) {
	if binary := os.Getenv("BOTHY_BINARY"); binary != "" {
		return filepath.Abs(binary)
	}
	binary := filepath.Join(dir, "bothy")
	cmd := exec.CommandContext(ctx, "go", "build", "-o", binary, "github.com/OWNER/bothy/services/server/cmd/bothy")
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build the server: %w\n%s", err, out)
	}
	return binary, nil
}

// Install makes secrets, configuration, database and schema, and prepares the first owner. No server runs yet.
func Install(ctx context.Context, o Options) (*Installation, error) {
	i := &Installation{options: o, file: filepath.Join(o.Dir, "bothy.yaml")}
	for _, folder := range []string{"", "keys", "secrets"} {
		if err := os.MkdirAll(filepath.Join(o.Dir, folder), 0o711); err != nil {
			return nil, err
		}
	}
	if err := os.Chmod(filepath.Join(o.Dir, "keys"), 0o700); err != nil {
		return nil, err
	}
	if _, err := secrets.Init(secrets.InitOptions{Target: i.path("secrets")}); err != nil {
		return nil, fmt.Errorf("make the secrets: %w", err)
	}
	public, err := freeAddress()
	if err != nil {
		return nil, err
	}
	if i.internal, err = freeAddress(); err != nil {
		return nil, err
	}
	i.Address = "http://" + strings.Replace(public, "127.0.0.1", "localhost", 1)
	keys := i.keys(public)
	if o.DatabaseApart {
		if err := i.startCluster(ctx, keys); err != nil {
			return nil, err
		}
	}
	maps.Copy(keys, o.Config)
	if err := writeConfig(i.file, keys); err != nil {
		return nil, err
	}
	if _, err := i.Command(ctx, "migrate", "up", "--bootstrap"); err != nil {
		return nil, err
	}
	out, err := i.Command(ctx, "setup", "bootstrap-owner", "--handle", "owner", "--display-name", "Owner")
	if err != nil {
		return nil, err
	}
	i.code = strings.TrimSpace(out)
	return i, nil
}

func (i *Installation) path(name string) string { return filepath.Join(i.options.Dir, name) }

// keys is the configuration of an installation on one machine: addresses and folders, nothing that changes how the
// server works.
func (i *Installation) keys(public string) map[string]string {
	return map[string]string{
		"instance.environment":        "dev",
		"server.listen_addr":          public,
		"server.internal_listen_addr": i.internal,
		"server.public_url":           i.Address,
		"secrets.dir":                 filepath.Join(i.path("secrets"), secrets.StoreFolder),
		"secrets.signing_key_dir":     i.path("keys"),
		"database.mode":               "embedded",
		"database.embedded.data_dir":  i.path("postgres"),
		"shutdown.drain_delay":        "0s",
		"log.level":                   "warn",
	}
}

// startCluster runs the database as a child of this process, with the settings of the embedded one.
func (i *Installation) startCluster(ctx context.Context, keys map[string]string) error {
	cfg := pg.DefaultEmbedded()
	cfg.DataDir = i.path("postgres")
	var err error
	if i.cluster, err = pg.StartEmbedded(ctx, cfg, slog.New(slog.DiscardHandler)); err != nil {
		return fmt.Errorf("start the database: %w", err)
	}
	password, err := os.ReadFile(filepath.Join(cfg.DataDir, "secrets", "superuser_password"))
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(keys["secrets.dir"], "database_bootstrap_password"), password, 0o600); err != nil {
		return err
	}
	delete(keys, "database.embedded.data_dir")
	keys["database.mode"] = "external"
	keys["database.host"] = i.cluster.Host()
	keys["database.port"] = fmt.Sprint(i.cluster.Port())
	keys["migrate.bootstrap_user"] = "bothy_bootstrap"
	return nil
}

// AdminDSN connects as superuser to the database of the server, for looking and measuring.
func (i *Installation) AdminDSN() (string, error) {
	text := ""
	if i.cluster != nil {
		text = i.cluster.AdminDSN()
	} else {
		cfg := pg.DefaultEmbedded()
		cfg.DataDir = i.path("postgres")
		address, err := pg.FindEmbedded(cfg)
		if err != nil {
			return "", err
		}
		text = address.AdminDSN()
	}
	u, err := url.Parse(text)
	if err != nil {
		return "", errors.New("the address of the database cannot be read")
	}
	u.Path = "/bothy"
	return u.String(), nil
}

// Close stops the database, if this process runs it.
func (i *Installation) Close(ctx context.Context) error {
	if i.cluster == nil {
		return nil
	}
	return i.cluster.Stop(ctx)
}

// ConfigFile is the configuration, for running the server in another way.
func (i *Installation) ConfigFile() string { return i.file }

// DataDir is the folder of the embedded cluster.
func (i *Installation) DataDir() string { return i.path("postgres") }

// Command runs a command of the binary to its end and gives its standard output.
func (i *Installation) Command(ctx context.Context, args ...string) (string, error) {
	var stderr strings.Builder
	cmd := exec.CommandContext(ctx, i.options.Binary, append(args, "--config", i.file)...)
	cmd.Env = i.environ()
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("bothy %s: %w\n%s", strings.Join(args, " "), err, stderr.String())
	}
	return string(out), nil
}

// environ is what a child sees: nothing of the caller that could configure the server.
func (i *Installation) environ() []string {
	env := []string{"PATH=" + os.Getenv("PATH"), "HOME=" + i.options.Dir, "TZ=UTC"}
	for _, name := range []string{"GOMAXPROCS", "GOGC", "GOMEMLIMIT", "GODEBUG", "BOTHY_TEST_POSTGRES_BIN"} {
		if v := os.Getenv(name); v != "" {
			env = append(env, name+"="+v)
		}
	}
	return env
}

// Changed lists the settings apart from the defaults, as the server itself reports them.
func (i *Installation) Changed(ctx context.Context) ([]string, error) {
	out, err := i.Command(ctx, "config", "print", "--changed")
	if err != nil {
		return nil, err
	}
	return strings.Split(strings.TrimSpace(strings.ReplaceAll(out, i.options.Dir, "DIR")), "\n"), nil
}

// freeAddress gives a loopback address that nobody listens on at the moment.
func freeAddress() (string, error) {
	l, err := (&net.ListenConfig{}).Listen(context.Background(), "tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	defer func() { _ = l.Close() }()
	return l.Addr().String(), nil
}

// writeConfig writes keys with dots as the nested document that the server reads.
func writeConfig(file string, keys map[string]string) error {
	root := map[string]any{}
	for key, value := range keys {
		at := root
		parts := strings.Split(key, ".")
		for _, p := range parts[:len(parts)-1] {
			next, ok := at[p].(map[string]any)
			if !ok {
				next = map[string]any{}
				at[p] = next
			}
			at = next
		}
		at[parts[len(parts)-1]] = yamlValue(value)
	}
	text, err := yaml.Marshal(root)
	if err != nil {
		return err
	}
	return os.WriteFile(file, text, 0o600)
}

// yamlValue keeps numbers plain, which keys of numbers ask for.
func yamlValue(text string) any {
	var n yaml.Node
	if err := yaml.Unmarshal([]byte(text), &n); err == nil && len(n.Content) == 1 && n.Content[0].Tag == "!!int" {
		var number int64
		if n.Content[0].Decode(&number) == nil {
			return number
		}
	}
	return text
}
