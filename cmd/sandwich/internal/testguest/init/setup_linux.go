package main

import (
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// cgroups is where version 2 of the control groups is mounted.
const cgroups = "/sys/fs/cgroup"

// setUp sets up what programs expect in addition to the kernel: mounts, a loopback interface and
// HOME.
func setUp() error {
	if err := mountSystem("/"); err != nil {
		return err
	}
	// Messages of the kernel would interrupt results.
	if err := os.WriteFile("/proc/sys/kernel/printk", []byte("0"), 0); err != nil {
		return err
	}
	if err := os.WriteFile(cgroups+"/cgroup.subtree_control", []byte("+cpuset"), 0); err != nil {
		return fmt.Errorf("cpusets: %w", err)
	}
	if err := raiseLoopback(); err != nil {
		return fmt.Errorf("the loopback interface: %w", err)
	}
	return os.Setenv("HOME", "/tmp")
}

// mountSystem mounts the file systems of the kernel, and a writable /tmp, in a root.
func mountSystem(root string) error {
	for _, m := range []struct{ kind, at string }{
		{"proc", "/proc"}, {"sysfs", "/sys"}, {"devtmpfs", "/dev"}, {"cgroup2", cgroups}, {"tmpfs", "/tmp"},
	} {
		if err := mount(m.kind, m.kind, filepath.Join(root, m.at), 0); err != nil {
			return err
		}
	}
	return nil
}

// mount mounts a file system at a folder, which it makes if it does not exist.
func mount(source, kind, at string, flags uintptr) error {
	if err := os.MkdirAll(at, 0o755); err != nil {
		return err
	}
	if err := unix.Mount(source, at, kind, flags, ""); err != nil && err != unix.EBUSY {
		return fmt.Errorf("mounting %s at %s: %w", source, at, err)
	}
	return nil
}

func raiseLoopback() error {
	s, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(s)
	lo, err := unix.NewIfreq("lo")
	if err != nil {
		return err
	}
	lo.SetUint16(unix.IFF_UP | unix.IFF_RUNNING)
	return unix.IoctlIfreq(s, unix.SIOCSIFFLAGS, lo)
}
