// SPDX-License-Identifier: Apache-2.0

package secrets

import (
	"bytes"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// Owner is a service that gets copies of the secrets it uses.
type Owner struct {
	// Service names the folder of the copies.
	Service string
	// UID and GID are who owns them.
	UID, GID int
	// Secrets are the names the service uses.
	Secrets []string
}

// InitOptions say where secrets are made and where they may come from.
type InitOptions struct {
	// Target gets "_store" with every secret and a folder per owner.
	Target string
	// Source is a folder with secrets that exist already; empty for none.
	Source string
	// AdoptSource lets the source win where both differ. The value that was in the store
	// stays beside it as NAME.previous.
	AdoptSource bool
	Owners      []Owner
}

// Outcome is what happened to one secret.
type Outcome string

// The outcomes. Skipped secrets are those that only the operator can give.
const (
	OutcomeCreated Outcome = "created"
	OutcomeKept    Outcome = "kept"
	OutcomeAdopted Outcome = "adopted"
	OutcomeSkipped Outcome = "skipped"
)

// Result is one line of the report.
type Result struct {
	Name    string
	Outcome Outcome
}

// ErrDiffers is returned when store and source hold different values of a secret.
var ErrDiffers = errors.New("store and source differ")

// StoreFolder is the folder below the target that holds every secret.
const StoreFolder = "_store"

// Init makes what is missing and changes nothing that is there, so it can run at every
// start. Values never appear in results or errors.
func Init(o InitOptions) ([]Result, error) {
	store := filepath.Join(o.Target, StoreFolder)
	for _, dir := range []string{o.Target, store} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return nil, fmt.Errorf("make folder for secrets: %w", withoutPath(err))
		}
	}
	var results []Result
	for _, s := range Register() {
		outcome, err := initOne(store, o, s)
		if err != nil {
			return results, fmt.Errorf("secret %s: %w", s.Name, err)
		}
		results = append(results, Result{s.Name, outcome})
	}
	for _, owner := range o.Owners {
		if err := hand(store, o.Target, owner); err != nil {
			return results, fmt.Errorf("secrets of service %s: %w", owner.Service, err)
		}
	}
	return results, nil
}

func initOne(store string, o InitOptions, s Registered) (Outcome, error) {
	path := filepath.Join(store, s.Name)
	have, err := read(path)
	if err != nil {
		return "", err
	}
	var given []byte
	if o.Source != "" {
		if given, err = read(filepath.Join(o.Source, s.Name)); err != nil {
			return "", err
		}
	}
	switch {
	case have == nil && given != nil:
		return OutcomeAdopted, writeAtomic(path, given)
	case have == nil && s.Bytes == 0:
		return OutcomeSkipped, nil
	case have == nil:
		return OutcomeCreated, writeAtomic(path, generate(s.Bytes))
	case given == nil || bytes.Equal(have, given):
		return OutcomeKept, nil
	case !o.AdoptSource:
		return "", ErrDiffers
	}
	if err := writeAtomic(path+".previous", have); err != nil {
		return "", err
	}
	return OutcomeAdopted, writeAtomic(path, given)
}

// generate gives random bytes in a form that survives every tool on its way.
func generate(n int) []byte {
	raw := make([]byte, n)
	// rand.Read never fails.
	_, _ = rand.Read(raw)
	return []byte(base64.RawURLEncoding.EncodeToString(raw) + "\n")
}

// hand gives a service its copies. A copy that is the same already stays untouched.
func hand(store, target string, owner Owner) error {
	dir := filepath.Join(target, owner.Service)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return withoutPath(err)
	}
	for _, name := range owner.Secrets {
		want, err := read(filepath.Join(store, name))
		if err != nil || want == nil {
			if err == nil {
				continue // Nothing was given; the service says so if it needs it.
			}
			return err
		}
		path := filepath.Join(dir, name)
		have, err := read(path)
		if err != nil {
			return err
		}
		if !bytes.Equal(have, want) {
			if err := writeAtomic(path, want); err != nil {
				return err
			}
		}
		if err := os.Lchown(path, owner.UID, owner.GID); err != nil {
			return withoutPath(err)
		}
	}
	return withoutPath(os.Lchown(dir, owner.UID, owner.GID))
}

// read gives the content of a plain file, nil when there is none. Links are refused: what
// they lead to is not ours to copy.
func read(path string) ([]byte, error) {
	info, err := os.Lstat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, nil
	case err != nil:
		return nil, withoutPath(err)
	case !info.Mode().IsRegular() || info.Size() > maxBytes:
		return nil, errors.New("is no plain file of at most 64 KiB")
	}
	content, err := os.ReadFile(path)
	return content, withoutPath(err)
}

// writeAtomic leaves the old file or the whole new one, whatever happens meanwhile.
func writeAtomic(path string, content []byte) error {
	f, err := os.CreateTemp(filepath.Dir(path), ".new-*")
	if err != nil {
		return withoutPath(err)
	}
	defer func() { _ = os.Remove(f.Name()) }()
	// CreateTemp makes files with mode 0600.
	_, err = f.Write(content)
	err = errors.Join(err, f.Sync(), f.Close())
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err == nil {
		err = syncDir(filepath.Dir(path))
	}
	return withoutPath(err)
}

func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// withoutPath keeps the reason of a failure and drops the path, which may be telling.
func withoutPath(err error) error {
	var path *fs.PathError
	var link *os.LinkError
	switch {
	case errors.As(err, &path):
		return path.Err
	case errors.As(err, &link):
		return link.Err
	default:
		return err
	}
}
