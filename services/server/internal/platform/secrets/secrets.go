// SPDX-License-Identifier: Apache-2.0

// Package secrets resolves references to secrets. Configuration never holds a secret, only
// where one lies: "file:/absolute/path", "file:<secrets.dir>/name" or "env:NAME".
//
// The package promises that no value and no content of a path reaches an error or a log:
// failures carry the key that names the reference and one of the codes below. A value
// prints as a fixed word. Files are refused when other users could read or change them.
package secrets

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/OWNER/bothy/services/server/internal/kernel/clock"
)

// Config says where secrets lie.
type Config struct {
	Dir           string        `key:"secrets.dir" default:"/var/lib/bothy/secrets/server" type:"path" doc:"Folder that <secrets.dir> in a reference stands for."`
	SigningKeyDir string        `key:"secrets.signing_key_dir" required:"true" type:"path" doc:"Folder of the private signing keys, shared by all processes of an instance."`
	WatchInterval time.Duration `key:"secrets.watch_interval" default:"30s" min:"5s" max:"10m" doc:"How often files with secrets are looked at for a change."`
}

// Code says what is wrong with a reference or with what it names.
type Code string

// The codes.
const (
	CodeRefInvalid  Code = "secret_ref_invalid"
	CodeNotFound    Code = "secret_not_found"
	CodePermissions Code = "secret_permissions"
	CodeUnreadable  Code = "secret_unreadable"
	CodeTooLarge    Code = "secret_too_large"
	CodeEmpty       Code = "secret_empty"
)

// Error is the failure of one reference. It holds neither path nor value.
type Error struct {
	Key  string
	Code Code
}

// Error implements error.
func (e *Error) Error() string { return e.Key + ": " + string(e.Code) }

// CodeOf gives the code of a failure, or secret_unreadable for any other error.
func CodeOf(err error) Code {
	var e *Error
	if errors.As(err, &e) {
		return e.Code
	}
	return CodeUnreadable
}

// maxBytes bounds a secret; the largest known one is a service account of a few KiB.
const maxBytes = 64 << 10

const dirMark = "<secrets.dir>/"

// Value is a secret. It prints as "[secret]" in every form; Reveal is the one way to it.
type Value struct{ text string }

// NewValue wraps a secret that came from elsewhere, as in tests.
func NewValue(text string) Value { return Value{text} }

// Reveal gives the secret. Call it where the secret is used, never to keep it.
func (v Value) Reveal() string { return v.text }

// IsZero reports whether there is no secret.
func (v Value) IsZero() bool { return v.text == "" }

// String implements fmt.Stringer.
func (Value) String() string { return "[secret]" }

// GoString implements fmt.GoStringer.
func (Value) GoString() string { return "[secret]" }

// MarshalText implements encoding.TextMarshaler.
func (Value) MarshalText() ([]byte, error) { return []byte("[secret]"), nil }

// LogValue implements slog.LogValuer.
func (Value) LogValue() slog.Value { return slog.StringValue("[secret]") }

// Provider resolves references and watches the files behind them.
type Provider struct {
	dir   string
	clock clock.Clock
	every time.Duration
	log   *slog.Logger
	env   func(string) (string, bool)

	mu      sync.Mutex
	watched []*watch
	failed  func(key string)
}

type watch struct {
	key, ref string
	seen     stamp
	apply    func(Value) error
}

// stamp tells one content of a file from another without reading it.
type stamp struct {
	modified time.Time
	size     int64
	inode    uint64
}

// New makes a provider. It fails when the folder is no absolute, clean path.
func New(c Config, log *slog.Logger, clk clock.Clock) (*Provider, error) {
	if !CleanPath(c.Dir) {
		return nil, &Error{"secrets.dir", CodeRefInvalid}
	}
	return &Provider{dir: c.Dir, clock: clk, every: c.WatchInterval, log: log.With("component", "secrets"), env: os.LookupEnv, failed: func(string) {}}, nil
}

// CleanPath reports whether p is an absolute path in clean form that is not the root and
// holds neither NUL nor "<".
func CleanPath(p string) bool {
	return filepath.IsAbs(p) && filepath.Clean(p) == p && p != "/" && !strings.ContainsAny(p, "\x00<")
}

// CheckRef checks the form of a reference without resolving it. The empty reference is
// well formed and means "not set".
func CheckRef(ref string) error {
	_, _, err := parse("reference", ref, "/")
	return err
}

func parse(key, ref, dir string) (scheme, target string, err error) {
	scheme, target, found := strings.Cut(ref, ":")
	switch {
	case ref == "":
		return "", "", nil
	case found && scheme == "file":
		if rest, inDir := strings.CutPrefix(target, dirMark); inDir {
			target = filepath.Join(dir, rest)
			if rest == "" || filepath.Clean("/"+rest) != "/"+rest {
				return "", "", &Error{key, CodeRefInvalid}
			}
		}
		if CleanPath(target) {
			return scheme, target, nil
		}
	case found && scheme == "env" && envName(target):
		return scheme, target, nil
	}
	return "", "", &Error{key, CodeRefInvalid}
}

func envName(s string) bool {
	for i, r := range s {
		if r != '_' && (r < 'A' || r > 'Z') && (r < 'a' || r > 'z') && (i == 0 || r < '0' || r > '9') {
			return false
		}
	}
	return s != ""
}

// Resolve gives the secret behind a reference; the key names it in errors. An empty
// reference gives the zero value without an error.
func (p *Provider) Resolve(key, ref string) (Value, error) {
	v, _, err := p.resolve(key, ref)
	return v, err
}

func (p *Provider) resolve(key, ref string) (Value, stamp, error) {
	scheme, target, err := parse(key, ref, p.dir)
	switch {
	case err != nil || scheme == "":
		return Value{}, stamp{}, err
	case scheme == "env":
		text, found := p.env(target)
		if !found {
			return Value{}, stamp{}, &Error{key, CodeNotFound}
		}
		v, err := finish(key, text)
		return v, stamp{}, err
	default:
		return readFile(key, target)
	}
}

func finish(key, text string) (Value, error) {
	text = strings.TrimSuffix(text, "\n")
	text = strings.TrimSuffix(text, "\r")
	if text == "" {
		return Value{}, &Error{key, CodeEmpty}
	}
	if len(text) > maxBytes {
		return Value{}, &Error{key, CodeTooLarge}
	}
	return Value{text}, nil
}

// readFile opens before it checks, so that what was checked is what is read.
func readFile(key, path string) (Value, stamp, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			return Value{}, stamp{}, &Error{key, CodeNotFound}
		}
		return Value{}, stamp{}, &Error{key, CodeUnreadable}
	}
	defer func() { _ = f.Close() }()
	info, err := f.Stat()
	switch {
	case err != nil || !info.Mode().IsRegular():
		return Value{}, stamp{}, &Error{key, CodeUnreadable}
	case info.Mode().Perm()&0o027 != 0:
		return Value{}, stamp{}, &Error{key, CodePermissions}
	case info.Size() > maxBytes:
		return Value{}, stamp{}, &Error{key, CodeTooLarge}
	}
	text, err := io.ReadAll(io.LimitReader(f, maxBytes+2))
	if err != nil {
		return Value{}, stamp{}, &Error{key, CodeUnreadable}
	}
	v, err := finish(key, string(text))
	return v, stampOf(info), err
}

func stampOf(info fs.FileInfo) stamp {
	s := stamp{modified: info.ModTime(), size: info.Size()}
	if sys, ok := info.Sys().(*syscall.Stat_t); ok {
		s.inode = sys.Ino
	}
	return s
}

// Watch resolves a reference, hands the value to apply, and hands over each later value
// while Run runs. apply validates: when it fails, the old value stays in use. Values from
// the environment never change.
func (p *Provider) Watch(key, ref string, apply func(Value) error) error {
	v, seen, err := p.resolve(key, ref)
	if err != nil {
		return err
	}
	if err := apply(v); err != nil {
		return fmt.Errorf("use %s: %w", key, err)
	}
	if strings.HasPrefix(ref, "file:") {
		p.mu.Lock()
		p.watched = append(p.watched, &watch{key, ref, seen, apply})
		p.mu.Unlock()
	}
	return nil
}

// OnFailure has count called with the key for every changed file that is not usable. It must not
// block. One such callback counts, the last.
func (p *Provider) OnFailure(count func(key string)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.failed = count
}

// Run looks for changed files until the context ends.
func (p *Provider) Run(ctx context.Context) error {
	timer := p.clock.NewTimer(p.every)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-timer.C():
			p.refresh()
			timer.Reset(p.every)
		}
	}
}

func (p *Provider) refresh() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, w := range p.watched {
		_, path, err := parse(w.key, w.ref, p.dir)
		if err != nil {
			continue
		}
		if info, err := os.Stat(path); err == nil && stampOf(info) == w.seen {
			continue
		}
		v, seen, err := p.resolve(w.key, w.ref)
		if err == nil {
			w.seen = seen
			err = w.apply(v)
		}
		if err != nil {
			p.log.Error("rotated secret not usable, the old one stays", "key", w.key, "code", string(CodeOf(err)))
			p.failed(w.key)
			continue
		}
		p.log.Info("secret rotated", "key", w.key)
	}
}

// CheckDir checks a folder that only the service user may enter: no link, owned by the
// user of this process, mode 0700, writable. The key names it in errors.
func CheckDir(key, path string) error {
	info, err := os.Lstat(path)
	if err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			return &Error{key, CodeNotFound}
		}
		return &Error{key, CodeUnreadable}
	}
	sys, ok := info.Sys().(*syscall.Stat_t)
	if !info.IsDir() || info.Mode().Perm() != 0o700 || !ok || int(sys.Uid) != os.Geteuid() {
		return &Error{key, CodePermissions}
	}
	return nil
}
