package systemd

import (
	"fmt"
	"net"
	"os"
	"strconv"
	"strings"
	"time"
)

// Notifier tells systemd the state of the service. Its methods may be called concurrently. They do
// nothing if systemd does not ask for notifications, and ignore errors: a service does not depend
// on its supervisor. A nil *Notifier does nothing.
type Notifier struct {
	socket   string        // path, or name after @
	watchdog time.Duration // the watchdog ends the service after this time without a sign; 0: never
}

// writeTimeout limits the wait for a supervisor that does not read.
const writeTimeout = time.Second

// TakeNotifier returns a Notifier for the socket that the environment names. It removes the
// variables from the environment, so that child processes do not use them.
func TakeNotifier() *Notifier {
	n := &Notifier{socket: os.Getenv("NOTIFY_SOCKET")}
	pid := os.Getenv("WATCHDOG_PID")
	if us, err := strconv.ParseInt(os.Getenv("WATCHDOG_USEC"), 10, 64); err == nil && us > 0 &&
		us < int64(365*24*time.Hour/time.Microsecond) && (pid == "" || pid == strconv.Itoa(os.Getpid())) {
		n.watchdog = time.Duration(us) * time.Microsecond
	}
	for _, name := range []string{"NOTIFY_SOCKET", "WATCHDOG_USEC", "WATCHDOG_PID"} {
		os.Unsetenv(name)
	}
	return n
}

// send sends assignments in one message.
func (n *Notifier) send(assignments ...string) {
	if n == nil || n.socket == "" {
		return
	}
	c, err := net.DialUnix("unixgram", nil, &net.UnixAddr{Name: n.socket, Net: "unixgram"})
	if err != nil {
		return
	}
	defer c.Close()
	_ = c.SetWriteDeadline(time.Now().Add(writeTimeout))
	_, _ = c.Write([]byte(strings.Join(assignments, "\n")))
}

// status returns the assignment of a status, which is one line.
func status(text string) string { return "STATUS=" + strings.Join(strings.Fields(text), " ") }

// extend returns the assignment that allows d more for starting or stopping.
func extend(d time.Duration) string { return fmt.Sprintf("EXTEND_TIMEOUT_USEC=%d", d.Microseconds()) }

// Starting reports what a service that is not ready does, and asks for time until the next report.
func (n *Notifier) Starting(text string, more time.Duration) { n.send(status(text), extend(more)) }

// Ready reports that the service is ready, also after Reloading.
func (n *Notifier) Ready(text string) { n.send("READY=1", status(text)) }

// Reloading reports that the service reads its configuration again.
func (n *Notifier) Reloading() {
	n.send("RELOADING=1", fmt.Sprintf("MONOTONIC_USEC=%d", monotonic()), status("reading the settings again"))
}

// Stopping reports that the service stops, which may take the given time.
func (n *Notifier) Stopping(limit time.Duration) {
	n.send("STOPPING=1", status("waiting for running requests"), extend(limit))
}
