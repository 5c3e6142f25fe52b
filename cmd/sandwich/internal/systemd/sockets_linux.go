package systemd

import (
	"errors"
	"fmt"
	"maps"
	"net"
	"os"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// firstSocket is the descriptor of the first socket that systemd passes.
const firstSocket = 3

// Sockets holds the sockets that systemd passed to this process. The zero value has none.
type Sockets struct {
	files  map[string][]*os.File
	unused map[string]bool
}

// TakeSockets returns the sockets that systemd passed. It removes the variables that describe them
// from the environment, so that child processes do not use them, and must be called once.
func TakeSockets() (*Sockets, error) {
	s := &Sockets{files: map[string][]*os.File{}, unused: map[string]bool{}}
	pid, count, names := os.Getenv("LISTEN_PID"), os.Getenv("LISTEN_FDS"), os.Getenv("LISTEN_FDNAMES")
	if count == "" || pid != strconv.Itoa(os.Getpid()) {
		return s, nil
	}
	for _, name := range []string{"LISTEN_PID", "LISTEN_FDS", "LISTEN_FDNAMES"} {
		os.Unsetenv(name)
	}
	n, err := strconv.Atoi(count)
	if err != nil || n < 0 || n > 1024 {
		return nil, fmt.Errorf("LISTEN_FDS is %.20q; it must be the number of sockets that are passed", count)
	}
	named := strings.Split(names, ":")
	for i := range n {
		name := "unknown" // like sd_listen_fds_with_names
		if i < len(named) && named[i] != "" {
			name = named[i]
		}
		fd := firstSocket + i
		unix.CloseOnExec(fd)
		s.files[name] = append(s.files[name], os.NewFile(uintptr(fd), name))
		s.unused[name] = true
	}
	return s, nil
}

// Listen returns the listeners of a name. Each name can be used once.
func (s *Sockets) Listen(name string) (list []net.Listener, err error) {
	if !s.unused[name] {
		return nil, s.missing(name)
	}
	delete(s.unused, name)
	for _, f := range s.files[name] {
		ln, err := listenOn(f)
		if err != nil {
			for _, open := range list {
				open.Close()
			}
			return nil, fmt.Errorf("the socket %s of systemd: %w", name, err)
		}
		list = append(list, ln)
	}
	return list, nil
}

// listenOn returns the listener of a socket.
func listenOn(f *os.File) (net.Listener, error) {
	accepts, err := unix.GetsockoptInt(int(f.Fd()), unix.SOL_SOCKET, unix.SO_ACCEPTCONN)
	if err != nil {
		return nil, err
	}
	if accepts == 0 {
		return nil, errors.New("it does not listen for connections; use ListenStream= and Accept=no in the socket unit")
	}
	ln, err := net.FileListener(f)
	f.Close() // FileListener uses a copy
	return ln, err
}

// missing returns the error for a name that systemd did not pass or that is used already.
func (s *Sockets) missing(name string) error {
	switch {
	case len(s.files) == 0:
		return fmt.Errorf("there is no socket %s, because systemd passed none; start the server by a socket unit "+
			"with FileDescriptorName=%s", name, name)
	case s.files[name] != nil:
		return fmt.Errorf("the socket %s of systemd is given twice", name)
	}
	return fmt.Errorf("systemd passed no socket %s; it passed %s", name,
		strings.Join(slices.Sorted(maps.Keys(s.files)), ", "))
}

// Unused returns the names of sockets for which Listen was not called.
func (s *Sockets) Unused() []string { return slices.Sorted(maps.Keys(s.unused)) }
