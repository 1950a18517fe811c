// SPDX-License-Identifier: Apache-2.0

package pg

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
)

// bootstrapUser is the superuser of the supervised cluster.
const bootstrapUser = "bothy_bootstrap"

// socketPathLimit keeps the whole path of the socket below what the system accepts.
const socketPathLimit = 100

// folder is the layout below DataDir.
type folder struct {
	root string
	user OSUser
}

func (f folder) cluster() string  { return filepath.Join(f.root, "pg"+majorVersion) }
func (f folder) run() string      { return filepath.Join(f.root, "run") }
func (f folder) secrets() string  { return filepath.Join(f.root, "secrets") }
func (f folder) password() string { return filepath.Join(f.secrets(), "superuser_password") }
func (f folder) location() string { return filepath.Join(f.run(), "location") }
func (f folder) lock() string     { return filepath.Join(f.root, "supervisor.lock") }
func (f folder) staged() string   { return filepath.Join(f.root, "staged") }

// prepare makes the folders, closed to everybody but the user that runs PostgreSQL.
func (f folder) prepare() error {
	if err := os.MkdirAll(filepath.Dir(f.root), 0o755); err != nil {
		return fmt.Errorf("make the folder above the data: %w", err)
	}
	for _, dir := range []string{f.root, f.run(), f.secrets()} {
		if err := f.closedDir(dir); err != nil {
			return err
		}
	}
	return f.traversable()
}

func (f folder) closedDir(dir string) error {
	if err := os.Mkdir(dir, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("make %s: %w", dir, err)
	}
	if err := f.user.Own(dir); err != nil {
		return fmt.Errorf("hand over %s: %w", dir, err)
	}
	return nil
}

// traversable names the first folder above the data that the user may not pass.
func (f folder) traversable() error {
	if !f.user.Foreign {
		return nil
	}
	for dir := filepath.Dir(f.root); ; dir = filepath.Dir(dir) {
		info, err := os.Stat(dir)
		if err != nil {
			return fmt.Errorf("look at %s: %w", dir, err)
		}
		bit := fs.FileMode(0o001)
		if st, ok := info.Sys().(*syscall.Stat_t); ok {
			switch {
			case int(st.Uid) == f.user.UID:
				bit = 0o100
			case int(st.Gid) == f.user.GID:
				bit = 0o010
			}
		}
		if info.Mode().Perm()&bit == 0 {
			return fmt.Errorf("the user %s may not pass %s on the way to database.embedded.data_dir", f.user.Name, dir)
		}
		if filepath.Dir(dir) == dir {
			return nil
		}
	}
}

// checkMajor refuses data of another major version, which needs an upgrade of its own.
func (f folder) checkMajor() error {
	text, err := os.ReadFile(filepath.Join(f.cluster(), "PG_VERSION"))
	if err == nil {
		if got := strings.TrimSpace(string(text)); got != majorVersion {
			return fmt.Errorf("%s holds data of PostgreSQL %s, not %s", f.cluster(), got, majorVersion)
		}
		return nil
	}
	others, _ := filepath.Glob(filepath.Join(f.root, "pg[0-9]*", "PG_VERSION"))
	for _, other := range others {
		dir := filepath.Dir(other)
		if dir != f.cluster() && !strings.HasSuffix(dir, ".new") {
			return fmt.Errorf("%s holds data of another major version; upgrade it before the start", dir)
		}
	}
	return nil
}

// initialise makes the cluster beside its final place and renames it, so a start that is
// killed leaves no half cluster.
func (f folder) initialise(ctx context.Context, b Binaries) error {
	if _, err := os.Stat(filepath.Join(f.cluster(), "PG_VERSION")); err == nil {
		return nil
	}
	if _, err := f.newPassword(); err != nil {
		return err
	}
	fresh := f.cluster() + ".new"
	if err := os.RemoveAll(fresh); err != nil {
		return fmt.Errorf("clear %s: %w", fresh, err)
	}
	cmd := exec.CommandContext(ctx, b.Initdb(), "-D", fresh, "-U", bootstrapUser, "--auth=scram-sha-256", "--pwfile="+f.password(),
		"-E", "UTF8", "--locale-provider=builtin", "--builtin-locale=C.UTF-8", "--locale=C", "--data-checksums")
	f.user.Apply(cmd)
	cmd.Dir = "/"
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("make the cluster: %w: %s", err, strings.TrimSpace(string(out)))
	}
	if err := os.Rename(fresh, f.cluster()); err != nil {
		return fmt.Errorf("put the cluster in place: %w", err)
	}
	return syncDir(f.root)
}

// newPassword makes the superuser's password, or gives the one that is there.
func (f folder) newPassword() (string, error) {
	if text, err := os.ReadFile(f.password()); err == nil {
		return strings.TrimSpace(string(text)), nil
	}
	raw := make([]byte, 32)
	_, _ = rand.Read(raw)
	password := hex.EncodeToString(raw)
	if err := os.WriteFile(f.password(), []byte(password+"\n"), 0o600); err != nil {
		return "", fmt.Errorf("store the superuser's password: %w", err)
	}
	if err := f.user.Own(f.password()); err != nil {
		return "", fmt.Errorf("hand over the superuser's password: %w", err)
	}
	return password, syncDir(f.secrets())
}

// superuserPassword reads the password; one that was lost is replaced in single-user mode,
// which works while no server runs. The second result reports that.
func (f folder) superuserPassword(ctx context.Context, b Binaries) (password string, replaced bool, err error) {
	if text, err := os.ReadFile(f.password()); err == nil {
		return strings.TrimSpace(string(text)), false, nil
	}
	if password, err = f.newPassword(); err != nil {
		return "", false, err
	}
	cmd := exec.CommandContext(ctx, b.Postgres(), "--single", "-D", f.cluster(), "postgres")
	f.user.Apply(cmd)
	cmd.Dir = "/"
	cmd.Stdin = strings.NewReader("ALTER ROLE " + bootstrapUser + " PASSWORD '" + password + "'\n")
	if out, err := cmd.CombinedOutput(); err != nil || strings.Contains(string(out), "ERROR:") {
		_ = os.Remove(f.password())
		return "", false, fmt.Errorf("replace the lost superuser's password in single-user mode: %w", errors.Join(err, errors.New("see the log of PostgreSQL")))
	}
	return password, true, nil
}

// writeHBA replaces the rules of authentication: passwords on the socket and, with a port,
// on loopback.
func (f folder) writeHBA(withPort bool) error {
	rules := []string{"local all all scram-sha-256", "local replication bothy_backup scram-sha-256"}
	if withPort {
		for _, address := range []string{"127.0.0.1/32", "::1/128"} {
			rules = append(rules, "host all all "+address+" scram-sha-256", "host replication bothy_backup "+address+" scram-sha-256")
		}
	}
	path := filepath.Join(f.cluster(), "pg_hba.conf")
	if err := os.WriteFile(path, []byte(strings.Join(rules, "\n")+"\n"), 0o600); err != nil {
		return fmt.Errorf("write the rules of authentication: %w", err)
	}
	return f.user.Own(path)
}

// socketDir is the folder of the socket. A path that the system would refuse moves to a
// short folder, which run/location records.
func (f folder) socketDir(port int) (string, error) {
	socket := filepath.Join(f.run(), fmt.Sprintf(".s.PGSQL.%d", port))
	if len(socket) <= socketPathLimit {
		if err := os.Remove(f.location()); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return "", fmt.Errorf("forget the place of an earlier socket: %w", err)
		}
		return f.run(), nil
	}
	location := f.location()
	if text, err := os.ReadFile(location); err == nil {
		if dir := strings.TrimSpace(string(text)); f.closedDir(dir) == nil {
			return dir, nil
		}
	}
	base := os.Getenv("XDG_RUNTIME_DIR")
	if base == "" || f.user.Foreign {
		base = os.TempDir()
	}
	dir, err := os.MkdirTemp(base, "bothy-pg-")
	if err != nil {
		return "", fmt.Errorf("make a short folder for the socket: %w", err)
	}
	if err := f.user.Own(dir); err != nil {
		return "", fmt.Errorf("hand over %s: %w", dir, err)
	}
	return dir, os.WriteFile(location, []byte(dir+"\n"), 0o600)
}

func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return fmt.Errorf("sync %s: %w", dir, err)
	}
	defer func() { _ = d.Close() }()
	if err := d.Sync(); err != nil {
		return fmt.Errorf("sync %s: %w", dir, err)
	}
	return nil
}
