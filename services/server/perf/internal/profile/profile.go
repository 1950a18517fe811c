// SPDX-License-Identifier: Apache-2.0

// Package profile describes the machine a measurement ran on: what it is, and how fast its disk and its loopback are at
// the moment. Figures of two machines do not compare; these facts say why.
package profile

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net"
	"os"
	"runtime"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// Profile is a machine at the time of a run.
type Profile struct {
	CPU        string  `json:"cpu"`
	Cores      int     `json:"cores"`
	MemoryMiB  int64   `json:"memory_mib"`
	Kernel     string  `json:"kernel"`
	FileSystem string  `json:"file_system"`
	Go         string  `json:"go"`
	PostgreSQL string  `json:"postgresql"`
	FsyncP50   float64 `json:"fsync_p50_ms"`
	FsyncP99   float64 `json:"fsync_p99_ms"`
	Loopback   float64 `json:"loopback_round_trip_us"`
	// LoadAverage is the one of the last minute before the run: above zero, others were at work.
	LoadAverage string `json:"load_average"`
}

// Take looks at the machine. dir is where the database lies.
func Take(dir, postgres string) (Profile, error) {
	p := Profile{Cores: runtime.NumCPU(), Go: runtime.Version(), PostgreSQL: postgres, CPU: cpuModel(), FileSystem: fileSystem(dir)}
	var info unix.Sysinfo_t
	if unix.Sysinfo(&info) == nil {
		p.MemoryMiB = int64(info.Totalram) * int64(info.Unit) >> 20
	}
	var uts unix.Utsname
	if unix.Uname(&uts) == nil {
		p.Kernel = unix.ByteSliceToString(uts.Release[:])
	}
	if text, err := os.ReadFile("/proc/loadavg"); err == nil {
		p.LoadAverage, _, _ = strings.Cut(string(text), " ")
	}
	var err error
	if p.FsyncP50, p.FsyncP99, err = fsync(dir); err != nil {
		return p, fmt.Errorf("measure fsync: %w", err)
	}
	if p.Loopback, err = loopback(); err != nil {
		return p, fmt.Errorf("measure loopback: %w", err)
	}
	return p, nil
}

// Hash names machines that are alike; figures are compared within one name only.
func (p Profile) Hash() string {
	sum := sha256.Sum256(fmt.Append(nil, p.CPU, p.Cores, p.MemoryMiB, p.FileSystem))
	return hex.EncodeToString(sum[:4])
}

func cpuModel() string {
	text, err := os.ReadFile("/proc/cpuinfo")
	if err != nil {
		return runtime.GOARCH
	}
	for line := range strings.Lines(string(text)) {
		if name, value, found := strings.Cut(line, ":"); found && strings.TrimSpace(name) == "model name" {
			return strings.TrimSpace(value)
		}
	}
	return runtime.GOARCH
}

var fileSystems = map[int64]string{0xef53: "ext", 0x58465342: "xfs", 0x9123683e: "btrfs", 0x01021994: "tmpfs", 0x794c7630: "overlay", 0x2fc12fc1: "zfs"}

func fileSystem(dir string) string {
	var s unix.Statfs_t
	if err := unix.Statfs(dir, &s); err != nil {
		return "unknown"
	}
	if name := fileSystems[int64(s.Type)]; name != "" {
		return name
	}
	return fmt.Sprintf("%#x", s.Type)
}

// fsync measures what a commit waits for: a page appended to a file that has its space, and flushed.
func fsync(dir string) (p50, p99 float64, err error) {
	const rounds, page = 200, 8192
	f, err := os.CreateTemp(dir, "fsync-")
	if err != nil {
		return 0, 0, err
	}
	defer func() { _ = os.Remove(f.Name()) }()
	defer f.Close()
	buffer := make([]byte, page)
	for range rounds {
		if _, err := f.Write(buffer); err != nil {
			return 0, 0, err
		}
	}
	if err := f.Sync(); err != nil {
		return 0, 0, err
	}
	times := make([]time.Duration, rounds)
	for i := range times {
		begin := time.Now()
		if _, err := f.WriteAt(buffer, int64(i)*page); err != nil {
			return 0, 0, err
		}
		if err := unix.Fdatasync(int(f.Fd())); err != nil {
			return 0, 0, err
		}
		times[i] = time.Since(begin)
	}
	slices.Sort(times)
	ms := func(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }
	return ms(times[rounds/2]), ms(times[rounds*99/100]), nil
}

// loopback is the median of a byte going forth and back over TCP, in microseconds.
func loopback() (float64, error) {
	ctx := context.Background()
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	defer func() { _ = l.Close() }()
	go func() {
		conn, err := l.Accept()
		if err != nil {
			return
		}
		defer conn.Close()
		var b [1]byte
		for {
			if _, err := conn.Read(b[:]); err != nil {
				return
			}
			if _, err := conn.Write(b[:]); err != nil {
				return
			}
		}
	}()
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", l.Addr().String())
	if err != nil {
		return 0, err
	}
	defer conn.Close()
	const rounds = 500
	times := make([]time.Duration, rounds)
	var b [1]byte
	for i := range times {
		begin := time.Now()
		if _, err := conn.Write(b[:]); err != nil {
			return 0, err
		}
		if _, err := conn.Read(b[:]); err != nil {
			return 0, err
		}
		times[i] = time.Since(begin)
	}
	slices.Sort(times)
	return float64(times[rounds/2].Nanoseconds()) / 1000, nil
}
