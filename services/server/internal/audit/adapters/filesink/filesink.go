// SPDX-License-Identifier: Apache-2.0

// Package filesink keeps checkpoints in a folder: one file per checkpoint, named after the last
// row it covers, written once and never changed. A folder that belongs to another machine, or
// that the server may only add to, is what makes it worth having.
package filesink

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/OWNER/bothy/services/server/internal/audit/app"
)

const (
	// Suffix is how the names of files end.
	Suffix   = ".jws"
	fileMode = 0o440
	// maxFile bounds what is read back; a checkpoint has about 700 bytes.
	maxFile = 16 << 10
)

// Sink implements app.Sink.
type Sink struct{ folder string }

var _ app.Sink = (*Sink)(nil)

// Parse reads the key audit.checkpoint_sink: "none", or "file:" and an absolute folder. The
// folder is empty for none.
func Parse(value string) (folder string, err error) {
	if value == "" || value == "none" {
		return "", nil
	}
	folder, found := strings.CutPrefix(value, "file:")
	if !found || !filepath.IsAbs(folder) {
		return "", errors.New(`must be "none", or "file:" and an absolute folder`)
	}
	return filepath.Clean(folder), nil
}

// New makes a sink in a folder, which must exist: a volume that is not mounted must not be
// taken for an empty one.
func New(folder string) *Sink { return &Sink{folder: folder} }

// Deposit implements app.Sink. The file is on disk, and so is its name, before it returns.
func (s *Sink) Deposit(_ context.Context, seq int64, jws string) error {
	root, err := os.OpenRoot(s.folder)
	if err != nil {
		return fmt.Errorf("open the folder of checkpoints: %w", err)
	}
	defer func() { _ = root.Close() }()
	name, text := strconv.FormatInt(seq, 10)+Suffix, jws+"\n"
	err = write(root, name, text)
	if !errors.Is(err, fs.ErrExist) {
		return err
	}
	have, err := readFile(root, name)
	switch {
	case err != nil:
		return err
	case have == text:
		return nil
	case !strings.HasPrefix(text, have):
		return fmt.Errorf("%s: %w", name, app.ErrSinkConflict)
	}
	// A crash has left the beginning of it.
	if err := root.Remove(name); err != nil {
		return fmt.Errorf("remove half a checkpoint: %w", err)
	}
	return write(root, name, text)
}

func write(root *os.Root, name, text string) error {
	f, err := root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, fileMode)
	if err != nil {
		return fmt.Errorf("create a checkpoint: %w", err)
	}
	_, err = f.WriteString(text)
	if err := errors.Join(err, f.Sync(), f.Close()); err != nil {
		return errors.Join(fmt.Errorf("write a checkpoint: %w", err), root.Remove(name))
	}
	folder, err := root.Open(".")
	if err != nil {
		return fmt.Errorf("open the folder of checkpoints: %w", err)
	}
	return errors.Join(folder.Sync(), folder.Close())
}

func readFile(root *os.Root, name string) (string, error) {
	info, err := root.Stat(name)
	if err != nil {
		return "", fmt.Errorf("read a checkpoint: %w", err)
	}
	if info.Size() > maxFile {
		return "", fmt.Errorf("%s: %w", name, app.ErrSinkConflict)
	}
	raw, err := root.ReadFile(name)
	if err != nil {
		return "", fmt.Errorf("read a checkpoint: %w", err)
	}
	return string(raw), nil
}

// Read gives the checkpoints of a folder by the number of their last row. Other files are
// passed over.
func Read(folder string) (map[int64]string, error) {
	root, err := os.OpenRoot(folder)
	if err != nil {
		return nil, fmt.Errorf("open the folder of checkpoints: %w", err)
	}
	defer func() { _ = root.Close() }()
	entries, err := fs.ReadDir(root.FS(), ".")
	if err != nil {
		return nil, fmt.Errorf("list the folder of checkpoints: %w", err)
	}
	out := map[int64]string{}
	for _, e := range entries {
		number, found := strings.CutSuffix(e.Name(), Suffix)
		seq, err := strconv.ParseInt(number, 10, 64)
		if !found || err != nil {
			continue
		}
		text, err := readFile(root, e.Name())
		if err != nil {
			return nil, err
		}
		out[seq] = strings.TrimSpace(text)
	}
	return out, nil
}
