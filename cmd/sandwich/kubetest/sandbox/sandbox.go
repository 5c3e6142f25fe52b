// Package sandbox runs a program in namespaces and a cgroup of its own. All processes, mounts and
// network devices that the program makes end with it, also if it is killed.
package sandbox

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// Variables of the environment of a program in a sandbox.
const (
	folderVariable = "SANDWICH_SANDBOX_DIR"
	cgroupVariable = "SANDWICH_SANDBOX_CGROUP"
)

// Missing returns what a sandbox lacks here, with the programs that it shall run; "" if nothing.
func Missing(programs ...string) string {
	if os.Getuid() != 0 {
		return "containers need root"
	}
	for _, name := range programs {
		if _, err := exec.LookPath(name); err != nil {
			return name + " is not installed"
		}
	}
	if names := lacking(); len(names) > 0 {
		return "the cgroup controllers are not available: " + strings.Join(names, " ")
	}
	return ""
}

// Dir returns the folder of the sandbox that this process runs in, "" if in none.
func Dir() string { return os.Getenv(folderVariable) }

// Cgroup returns the name of the cgroup of the sandbox, without a slash.
func Cgroup() string { return os.Getenv(cgroupVariable) }

// Run runs this program again with the same arguments as the first process of a sandbox, and
// returns its exit status. On SIGINT and SIGTERM it kills the sandbox.
func Run() (status int, err error) {
	runtime.LockOSThread() // Pdeathsig is sent at the end of the thread
	interrupted := make(chan os.Signal, 1)
	signal.Notify(interrupted, os.Interrupt, syscall.SIGTERM)
	removeStale()
	cgroup := prefix + fmt.Sprint(os.Getpid())
	dir := filepath.Join(os.TempDir(), cgroup)
	if err := os.Mkdir(dir, 0o700); err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	defer func() { err = errors.Join(err, removeCgroup(cgroup)) }()
	if err := MakeCgroup(cgroup); err != nil {
		return 0, err
	}
	self, err := os.Executable()
	if err != nil {
		return 0, err
	}
	cmd := exec.Command(self, os.Args[1:]...)
	cmd.Env = append(os.Environ(), folderVariable+"="+dir, cgroupVariable+"="+cgroup)
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setpgid: true,
		Cloneflags: unix.CLONE_NEWPID | unix.CLONE_NEWNS | unix.CLONE_NEWNET | unix.CLONE_NEWUTS | unix.CLONE_NEWIPC}
	if err := cmd.Start(); err != nil {
		return 0, fmt.Errorf("namespaces: %w", err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	select {
	case err = <-ended:
	case s := <-interrupted:
		_ = cmd.Process.Kill()
		<-ended
		return 0, fmt.Errorf("%s", s)
	}
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) {
		return exit.ExitCode(), nil
	}
	return 0, err
}

// sysctls are the settings of the kernel that the kubelet demands. They hold for the whole machine,
// so the kubelet sees files with these values instead.
var sysctls = map[string]string{
	"vm/overcommit_memory": "1", "vm/panic_on_oom": "0", "kernel/panic": "10", "kernel/panic_on_oops": "1",
	"kernel/keys/root_maxkeys": "1000000", "kernel/keys/root_maxbytes": "25000000",
}

// Enter prepares the cgroup, the mounts and the network of the first process of a sandbox.
func Enter() error {
	// cgroup v2 allows no processes in a cgroup whose children have limits.
	if err := errors.Join(MakeCgroup(Cgroup()+"/programs"), joinCgroup(Cgroup()+"/programs")); err != nil {
		return err
	}
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("private mounts: %w", err)
	}
	if err := unix.Mount("proc", "/proc", "proc", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, ""); err != nil {
		return fmt.Errorf("/proc: %w", err)
	}
	for name, value := range sysctls {
		if _, err := os.Stat(filepath.Join("/proc/sys", name)); err != nil {
			continue
		}
		path := filepath.Join(Dir(), "sysctl", name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(path, []byte(value+"\n"), 0o644); err != nil {
			return err
		}
		if err := Bind(path, filepath.Join("/proc/sys", name)); err != nil {
			return err
		}
	}
	if err := os.WriteFile("/proc/sys/net/ipv4/ip_forward", []byte("1\n"), 0o644); err != nil {
		return err
	}
	return IP("link", "set", "lo", "up")
}

// Bind mounts a file or folder at another path.
func Bind(from, to string) error {
	if err := unix.Mount(from, to, "", unix.MS_BIND, ""); err != nil {
		return fmt.Errorf("mount %s at %s: %w", from, to, err)
	}
	return nil
}

// IP runs `ip` with arguments.
func IP(args ...string) error {
	if out, err := exec.Command("ip", args...).CombinedOutput(); err != nil {
		return fmt.Errorf("ip %s: %w: %s", strings.Join(args, " "), err, out)
	}
	return nil
}
