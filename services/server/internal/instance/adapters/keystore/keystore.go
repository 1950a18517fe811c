// SPDX-License-Identifier: Apache-2.0

// Package keystore keeps private signing keys in a folder that only the user of the service
// may enter: one PKCS#8 file per key, named after it. A file is on disk before anything refers
// to it. The database never holds a private key, so a copy of it signs nothing.
package keystore

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"

	"github.com/OWNER/bothy/services/server/internal/instance/app"
	"github.com/OWNER/bothy/services/server/internal/kernel/jose"
)

const (
	folderMode = 0o700
	fileMode   = 0o600
	pemType    = "PRIVATE KEY"
	suffix     = ".pem"
)

// kidForm is what a thumbprint in base64url looks like; nothing else becomes a file name.
var kidForm = regexp.MustCompile(`^[A-Za-z0-9_-]{43}$`)

// Store is an opened folder. It implements app.KeyStore.
type Store struct {
	folder string
	mu     sync.Mutex
	loaded map[string]crypto.Signer
}

var _ app.KeyStore = (*Store)(nil)

// Open checks the folder: it exists or can be made, belongs to the user of the process, is
// closed to everybody else and can be written.
func Open(folder string) (*Store, error) {
	if !filepath.IsAbs(folder) {
		return nil, fmt.Errorf("secrets.signing_key_dir: %q is not an absolute path", folder)
	}
	if err := os.MkdirAll(folder, folderMode); err != nil {
		return nil, fmt.Errorf("secrets.signing_key_dir: %w", err)
	}
	info, err := os.Stat(folder)
	if err != nil {
		return nil, fmt.Errorf("secrets.signing_key_dir: %w", err)
	}
	if !info.IsDir() {
		return nil, fmt.Errorf("secrets.signing_key_dir: %s is no folder", folder)
	}
	if mode := info.Mode().Perm(); mode != folderMode {
		return nil, fmt.Errorf("secrets.signing_key_dir: %s has mode %04o; it must be 0700", folder, mode)
	}
	if err := checkOwner(info); err != nil {
		return nil, fmt.Errorf("secrets.signing_key_dir: %s: %w", folder, err)
	}
	probe, err := os.CreateTemp(folder, ".probe-*")
	if err != nil {
		return nil, fmt.Errorf("secrets.signing_key_dir: cannot be written: %w", err)
	}
	name := probe.Name()
	if err := errors.Join(probe.Close(), os.Remove(name)); err != nil {
		return nil, fmt.Errorf("secrets.signing_key_dir: %w", err)
	}
	return &Store{folder: folder, loaded: map[string]crypto.Signer{}}, nil
}

// Create implements app.KeyStore.
func (s *Store) Create(algorithm string) (string, crypto.PublicKey, error) {
	key, err := generate(algorithm)
	if err != nil {
		return "", nil, err
	}
	jwk, err := jose.FromPublic(key.Public())
	if err != nil {
		return "", nil, fmt.Errorf("encode the public key: %w", err)
	}
	kid, err := jwk.Thumbprint()
	if err != nil {
		return "", nil, fmt.Errorf("name the key: %w", err)
	}
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return "", nil, fmt.Errorf("encode the private key: %w", err)
	}
	if err := s.write(kid, pem.EncodeToMemory(&pem.Block{Type: pemType, Bytes: der})); err != nil {
		return "", nil, fmt.Errorf("store the private key: %w", err)
	}
	return kid, key.Public(), nil
}

func generate(algorithm string) (crypto.Signer, error) {
	switch jose.Algorithm(algorithm) {
	case jose.ES256:
		return ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	case jose.EdDSA:
		_, key, err := ed25519.GenerateKey(rand.Reader)
		return key, err
	default:
		return nil, fmt.Errorf("keystore: no keys for %q", algorithm)
	}
}

// write puts the file in place whole or not at all, and both file and name on disk.
func (s *Store) write(kid string, content []byte) (err error) {
	f, err := os.CreateTemp(s.folder, ".new-*")
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			_ = os.Remove(f.Name())
		}
	}()
	_, werr := f.Write(content)
	if err := errors.Join(werr, f.Chmod(fileMode), f.Sync(), f.Close()); err != nil {
		return err
	}
	if err := os.Rename(f.Name(), s.path(kid)); err != nil {
		return err
	}
	folder, err := os.Open(s.folder)
	if err != nil {
		return err
	}
	return errors.Join(folder.Sync(), folder.Close())
}

func (s *Store) path(kid string) string { return filepath.Join(s.folder, kid+suffix) }

// Load implements app.KeyStore. A file that others may read is refused.
func (s *Store) Load(kid string) (crypto.Signer, error) {
	if !kidForm.MatchString(kid) {
		return nil, app.ErrNoFile
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	info, err := os.Stat(s.path(kid))
	if errors.Is(err, fs.ErrNotExist) {
		delete(s.loaded, kid)
		return nil, app.ErrNoFile
	}
	if err != nil {
		return nil, err
	}
	if mode := info.Mode().Perm(); mode != fileMode {
		return nil, fmt.Errorf("the key file has mode %04o; it must be 0600", mode)
	}
	if key, ok := s.loaded[kid]; ok {
		return key, nil
	}
	key, err := read(s.path(kid), kid)
	if err == nil {
		s.loaded[kid] = key
	}
	return key, err
}

// List implements app.KeyStore.
func (s *Store) List() ([]app.StoredKey, error) {
	entries, err := os.ReadDir(s.folder)
	if err != nil {
		return nil, err
	}
	var out []app.StoredKey
	for _, e := range entries {
		kid, found := strings.CutSuffix(e.Name(), suffix)
		if !found || !kidForm.MatchString(kid) {
			continue
		}
		info, err := e.Info()
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, err
		}
		out = append(out, app.StoredKey{KID: kid, MadeAt: info.ModTime()})
	}
	return out, nil
}

// Remove implements app.KeyStore.
func (s *Store) Remove(kid string) error {
	if !kidForm.MatchString(kid) {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.loaded, kid)
	if err := os.Remove(s.path(kid)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

func read(path, kid string) (crypto.Signer, error) {
	raw, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	block, _ := pem.Decode(raw)
	if block == nil || block.Type != pemType {
		return nil, errors.New("the key file is no PKCS#8 key in PEM form")
	}
	parsed, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	if err != nil {
		return nil, errors.New("the key file is no PKCS#8 key in PEM form")
	}
	key, ok := parsed.(crypto.Signer)
	if !ok {
		return nil, errors.New("the key file holds a key that cannot sign")
	}
	jwk, err := jose.FromPublic(key.Public())
	if err != nil {
		return nil, err
	}
	if print, err := jwk.Thumbprint(); err != nil || print != kid {
		return nil, errors.New("the key file holds another key than its name says")
	}
	return key, nil
}
