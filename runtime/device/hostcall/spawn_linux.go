package hostcall

import (
	"debug/elf"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// startAffinity is the CPU affinity of the process before any worker thread is pinned.
var startAffinity = func() (set unix.CPUSet) {
	_ = unix.SchedGetaffinity(0, &set) // an empty set is not applied
	return set
}()

// Interpreter returns the path of the dynamic loader of this host's C library: the one that the
// host's own programs name, else a usual path.
func Interpreter() (string, error) {
	for _, program := range []string{"/bin/sh", "/usr/bin/env", "/bin/ls"} {
		if path := interpreterOf(program); path != "" {
			return path, nil
		}
	}
	usual := machines[runtime.GOARCH].loaders
	for _, path := range usual {
		if _, err := os.Stat(path); err == nil {
			return path, nil
		}
	}
	return "", fmt.Errorf("no dynamic loader on this host (looked for %s): device drivers need glibc or musl",
		strings.Join(usual, ", "))
}

// interpreterOf returns the dynamic loader of a program of this architecture, or "".
func interpreterOf(program string) string {
	f, err := elf.Open(program)
	if err != nil {
		return ""
	}
	defer func() { _ = f.Close() }()
	if uint16(f.Machine) != machines[runtime.GOARCH].code {
		return ""
	}
	for _, p := range f.Progs {
		if p.Type != elf.PT_INTERP || p.Filesz > 4096 {
			continue
		}
		path := make([]byte, p.Filesz)
		if _, err := p.ReadAt(path, 0); err == nil {
			return strings.TrimRight(string(path), "\x00")
		}
	}
	return ""
}

// spawn starts the executable with files as descriptors 3 on and calls ended when the child has
// ended. It tries an anonymous file first and then a file in the folder cache.
func spawn(image []byte, cache string, files []*os.File, output io.Writer, ended func(error)) (*os.Process, error) {
	child, memfdErr := spawnMemfd(image, files, output, ended)
	if memfdErr == nil {
		return child, nil
	}
	child, err := spawnCached(image, cache, files, output, ended)
	if err != nil {
		return nil, fmt.Errorf("cannot start a driver process: anonymous file: %w; cache folder: %w", memfdErr, err)
	}
	return child, nil
}

func spawnMemfd(image []byte, files []*os.File, output io.Writer, ended func(error)) (*os.Process, error) {
	fd, err := createMemfd(processName, unix.MFD_CLOEXEC|unix.MFD_EXEC)
	if errors.Is(err, unix.EINVAL) { // before Linux 6.3
		fd, err = createMemfd(processName, unix.MFD_CLOEXEC)
	}
	if err != nil {
		return nil, fmt.Errorf("memfd_create: %w", err)
	}
	f := os.NewFile(uintptr(fd), processName)
	defer func() { _ = f.Close() }()
	if _, err := f.Write(image); err != nil {
		return nil, err
	}
	return startChild(fmt.Sprintf("/proc/self/fd/%d", fd), files, output, ended)
}

// spawnCached starts the executable from a file that it removes again.
func spawnCached(
	image []byte, cache string, files []*os.File, output io.Writer, ended func(error),
) (*os.Process, error) {
	if cache == "" {
		user, err := os.UserCacheDir()
		if err != nil {
			return nil, err
		}
		cache = filepath.Join(user, "sandwich")
	}
	if err := os.MkdirAll(cache, 0o700); err != nil {
		return nil, err
	}
	path, err := writeExecutable(image, cache)
	if err != nil {
		return nil, err
	}
	defer func() { _ = os.Remove(path) }()
	return startChild(path, files, output, ended)
}

// writeExecutable writes the image to a new file. No other process of this program may inherit the
// descriptor while it is open for writing: the kernel refuses to execute such a file.
func writeExecutable(image []byte, folder string) (string, error) {
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
	f, err := os.CreateTemp(folder, processName+"-*")
	if err != nil {
		return "", err
	}
	_, err = f.Write(image)
	if err := errors.Join(err, f.Chmod(0o500), f.Close()); err != nil {
		return "", errors.Join(err, os.Remove(f.Name()))
	}
	return f.Name(), nil
}

// startChild starts the executable at path on an operating system thread that lives as long as
// the child: the kernel sends the parent-death signal when the thread that forked ends, and
// no_new_privs and the affinity are attributes of that thread.
func startChild(path string, files []*os.File, output io.Writer, ended func(error)) (*os.Process, error) {
	cmd := exec.Command(path)
	cmd.Args = []string{processName}
	cmd.Env = childEnvironment(os.Environ())
	cmd.ExtraFiles = files
	cmd.Stdout, cmd.Stderr = output, output
	cmd.WaitDelay = time.Second
	// A process group of its own keeps terminal signals from the child: the server drains first.
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setpgid: true}
	started := make(chan error, 1)
	go func() {
		runtime.LockOSThread() // never unlocked: the thread ends with this goroutine
		err := prepareThread()
		if err == nil {
			err = cmd.Start()
		}
		started <- err
		if err == nil {
			ended(cmd.Wait())
		}
	}()
	if err := <-started; err != nil {
		return nil, err
	}
	return cmd.Process, nil
}

// prepareThread sets the attributes that a child inherits from the thread that forks.
func prepareThread() error {
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("no_new_privs: %w", err)
	}
	if startAffinity.Count() > 0 {
		_ = unix.SchedSetaffinity(0, &startAffinity) // a cpuset may have shrunk since
	}
	return nil
}

// childEnvironment returns the environment without this program's own variables, which may hold
// secrets.
func childEnvironment(environ []string) []string {
	var kept []string
	for _, v := range environ {
		if !strings.HasPrefix(v, "SANDWICH_") {
			kept = append(kept, v)
		}
	}
	return kept
}
