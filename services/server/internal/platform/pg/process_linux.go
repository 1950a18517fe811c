// SPDX-License-Identifier: Apache-2.0

package pg

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"strconv"
	"syscall"
)

// OSUser is the user of the system that runs PostgreSQL. The zero value is the own one.
type OSUser struct {
	Name     string
	UID, GID int
	// Foreign says that processes must change to it, because this process is root.
	Foreign bool
}

// FindOSUser chooses the user for child processes: the own one, or when that is root the
// named one or the first that exists of bothy, postgres and nobody.
func FindOSUser(name string) (OSUser, error) {
	if os.Geteuid() != 0 {
		return OSUser{UID: os.Geteuid(), GID: os.Getegid()}, nil
	}
	names := []string{"bothy", "postgres", "nobody"}
	if name != "" {
		names = []string{name}
	}
	for _, candidate := range names {
		found, err := user.Lookup(candidate)
		if err != nil {
			continue
		}
		uid, uidErr := strconv.Atoi(found.Uid)
		gid, gidErr := strconv.Atoi(found.Gid)
		if uidErr == nil && gidErr == nil && uid != 0 {
			return OSUser{Name: candidate, UID: uid, GID: gid, Foreign: true}, nil
		}
	}
	return OSUser{}, fmt.Errorf("PostgreSQL does not run as root and none of the users %v exists; set database.embedded.os_user", names)
}

// Apply makes cmd run as the user, in a process group of its own, with a bare environment,
// and end with SIGINT (the fast stop) when the thread that starts it ends.
func (u OSUser) Apply(cmd *exec.Cmd) {
	cmd.Env = []string{"PATH=/usr/local/bin:/usr/bin:/bin", "LC_ALL=C", "TZ=UTC"}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGINT}
	if u.Foreign {
		cmd.SysProcAttr.Credential = &syscall.Credential{Uid: uint32(u.UID), Gid: uint32(u.GID), Groups: []uint32{}}
	}
}

// Own gives a file or folder to the user.
func (u OSUser) Own(path string) error {
	if !u.Foreign {
		return nil
	}
	return os.Chown(path, u.UID, u.GID)
}

// alive reports whether a process exists.
func alive(pid int) bool {
	err := syscall.Kill(pid, 0)
	return err == nil || errors.Is(err, syscall.EPERM)
}
