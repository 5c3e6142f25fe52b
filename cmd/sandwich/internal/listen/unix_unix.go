//go:build unix

package listen

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// listenUnix listens on a unix socket with a mode. It replaces a socket on which no process
// accepts connections. The listener removes the socket when it is closed, unless another process
// has replaced it.
func listenUnix(path string, mode fs.FileMode) (net.Listener, error) {
	unlock, err := lockFolder(filepath.Dir(path))
	if err != nil {
		return nil, err
	}
	defer unlock()
	if err := removeStale(path); err != nil {
		return nil, err
	}
	ln, err := bindUnix(path, mode)
	if err != nil {
		return nil, err
	}
	made, err := os.Lstat(path)
	if err != nil {
		ln.Close()
		return nil, err
	}
	return &socket{Listener: ln, path: path, made: made}, nil
}

// lockFolder locks a folder, so that processes replace sockets in it one after the other. It waits
// up to lockTime.
func lockFolder(folder string) (unlock func(), err error) {
	f, err := os.Open(folder)
	if err != nil {
		return nil, err
	}
	for began := time.Now(); ; time.Sleep(20 * time.Millisecond) {
		err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		switch {
		case err == nil:
			return func() { f.Close() }, nil
		case !errors.Is(err, unix.EWOULDBLOCK), time.Since(began) > lockTime:
			f.Close()
			return nil, &fs.PathError{Op: "lock", Path: folder, Err: err}
		}
	}
}

// lockTime limits the wait for another process that opens a socket in the same folder.
const lockTime = 10 * time.Second

// removeStale removes a socket on which no process accepts connections.
func removeStale(path string) error {
	info, err := os.Lstat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return err
	case info.Mode().Type() != fs.ModeSocket:
		return fmt.Errorf("%s exists and is not a socket; remove it, or choose another path", path)
	}
	c, err := net.DialTimeout("unix", path, time.Second)
	if err == nil {
		c.Close()
	}
	if !errors.Is(err, syscall.ECONNREFUSED) {
		return fmt.Errorf("%s is in use by another program; choose another path", path)
	}
	return os.Remove(path)
}

// bindUnix creates a socket. Connections are possible after it has its mode.
func bindUnix(path string, mode fs.FileMode) (net.Listener, error) {
	syscall.ForkLock.RLock()
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM, 0)
	if err == nil {
		unix.CloseOnExec(fd)
	}
	syscall.ForkLock.RUnlock()
	if err != nil {
		return nil, os.NewSyscallError("socket", err)
	}
	f := os.NewFile(uintptr(fd), path)
	defer f.Close() // FileListener uses a copy
	if err := unix.Bind(fd, &unix.SockaddrUnix{Name: path}); err != nil {
		if errors.Is(err, syscall.EINVAL) {
			return nil, fmt.Errorf("%s is too long for a socket; choose a shorter path", path)
		}
		return nil, &fs.PathError{Op: "bind", Path: path, Err: err}
	}
	err = os.Chmod(path, mode)
	if err == nil {
		err = os.NewSyscallError("listen", unix.Listen(fd, backlog))
	}
	var ln net.Listener
	if err == nil {
		ln, err = net.FileListener(f)
	}
	if err != nil {
		_ = os.Remove(path)
	}
	return ln, err
}

// backlog is the number of connections that wait to be accepted; the kernel lowers it to its limit.
const backlog = 4096

// socket is a listener that removes its file.
type socket struct {
	net.Listener
	path string
	made os.FileInfo
	once sync.Once
}

// Close removes the file and closes the listener.
func (s *socket) Close() error {
	s.once.Do(func() {
		if now, err := os.Lstat(s.path); err == nil && os.SameFile(now, s.made) {
			_ = os.Remove(s.path)
		}
	})
	return s.Listener.Close()
}
