// SPDX-License-Identifier: Apache-2.0

//go:build unix

package keystore

import (
	"fmt"
	"io/fs"
	"os"
	"syscall"
)

// checkOwner refuses a folder of somebody else, who could read and replace what lies in it.
func checkOwner(info fs.FileInfo) error {
	stat, ok := info.Sys().(*syscall.Stat_t)
	if ok && int(stat.Uid) != os.Geteuid() {
		return fmt.Errorf("belongs to user %d, the service runs as %d", stat.Uid, os.Geteuid())
	}
	return nil
}
