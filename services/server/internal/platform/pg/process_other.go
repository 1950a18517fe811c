// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package pg

import (
	"errors"
	"os"
	"os/exec"
)

// OSUser is the user of the system that runs PostgreSQL. The zero value is the own one.
type OSUser struct {
	Name     string
	UID, GID int
	Foreign  bool
}

// FindOSUser gives the own user; running as root is supported on Linux alone.
func FindOSUser(string) (OSUser, error) {
	if os.Geteuid() == 0 {
		return OSUser{}, errors.New("PostgreSQL does not run as root; start the server as an ordinary user")
	}
	return OSUser{UID: os.Geteuid(), GID: os.Getegid()}, nil
}

// Apply gives cmd a bare environment.
func (u OSUser) Apply(cmd *exec.Cmd) {
	cmd.Env = []string{"PATH=/usr/local/bin:/usr/bin:/bin", "LC_ALL=C", "TZ=UTC"}
}

// Own does nothing: files belong to the own user already.
func (u OSUser) Own(string) error { return nil }

func alive(pid int) bool {
	p, err := os.FindProcess(pid)
	return err == nil && p != nil
}
