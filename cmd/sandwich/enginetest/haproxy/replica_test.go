package haproxy

import (
	"bufio"
	"bytes"
	"flag"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
)

// replicas is the number of servers behind HAProxy.
const replicas = 4

// replica is a server with an address of its own that may be restarted.
type replica struct {
	t       *testing.T
	address string
	flags   []string
	env     []string
	cmd     *exec.Cmd
	stderr  *output
}

// output collects what a process writes; it may be read concurrently.
type output struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.buf.Write(p)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.buf.String()
}

var binaryFlag = flag.String("binary", filepath.Join("..", "..", "..", "..", "bin", "sandwich"),
	"the program to test")

// binary returns the path of the program to test.
func binary(t *testing.T) string {
	t.Helper()
	path, err := filepath.Abs(*binaryFlag)
	if err == nil {
		_, err = os.Stat(path)
	}
	if err != nil {
		t.Fatalf("run make build, or name the program with -binary: %v", err)
	}
	return path
}

// startReplicas starts servers of the embedded model on 127.0.0.2 and the following addresses.
func startReplicas(t *testing.T, flags ...string) []*replica {
	t.Helper()
	if _, err := exec.LookPath("haproxy"); err != nil {
		t.Skip("haproxy is not installed: apt-get install haproxy")
	}
	env := append(os.Environ(), "XDG_DATA_HOME="+t.TempDir())
	out := make([]*replica, replicas)
	for i := range out {
		// A free port of the first start serves all later ones: no connection from this machine uses an
		// address other than 127.0.0.1 as its own.
		l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.%d:0", i+2))
		if err != nil {
			t.Skipf("127.0.0.%d cannot be used here: %v", i+2, err)
		}
		out[i] = &replica{t: t, address: l.Addr().String(), flags: flags, env: env}
		l.Close()
	}
	out[0].start() // it measures rates, which the others then find
	for _, r := range out[1:] {
		r.start()
	}
	return out
}

// start starts the server and returns once it serves.
func (r *replica) start() {
	r.t.Helper()
	r.stderr = &output{}
	r.cmd = exec.Command(binary(r.t), append([]string{"serve", "--threads", "1", "--log", "off", "--listen", r.address},
		r.flags...)...)
	r.cmd.Env, r.cmd.Stderr = r.env, r.stderr
	out, err := r.cmd.StdoutPipe()
	if err != nil {
		r.t.Fatal(err)
	}
	if err := r.cmd.Start(); err != nil {
		r.t.Fatal(err)
	}
	cmd := r.cmd
	r.t.Cleanup(func() { _ = cmd.Process.Kill() })
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		if strings.HasPrefix(lines.Text(), "serving ") {
			return
		}
	}
	_ = r.cmd.Wait()
	r.t.Fatalf("%s did not start: %s", r.address, r.stderr)
}

// terminate sends SIGTERM.
func (r *replica) terminate() {
	r.t.Helper()
	if err := r.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		r.t.Fatalf("%s: %v: %s", r.address, err, r.stderr)
	}
}

// wait returns when the server has ended well.
func (r *replica) wait() {
	r.t.Helper()
	if err := r.cmd.Wait(); err != nil {
		r.t.Fatalf("%s: %v: %s", r.address, err, r.stderr)
	}
}

// stop ends the servers.
func stop(all []*replica) {
	for _, r := range all {
		_ = r.cmd.Process.Kill()
		_ = r.cmd.Wait()
	}
}
