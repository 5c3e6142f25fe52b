package main

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// unreadPipe returns both ends of a pipe. The reading end is closed with the test.
func unreadPipe(t *testing.T) (r, w *os.File) {
	t.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.Close(); w.Close() })
	return r, w
}

// models asks for the list of models many times, which has a line in the log each time.
func (s *served) models(requests int) {
	s.t.Helper()
	web := crowdClient(8)
	var all sync.WaitGroup
	for client := range 8 {
		all.Go(func() {
			for i := client; i < requests; i += 8 {
				r, err := http.NewRequest("GET", s.url+"/v1/models", nil)
				if err != nil {
					s.t.Error(err)
					return
				}
				r.Header.Set("X-Request-Id", fmt.Sprint(strings.Repeat("x", 100), i))
				res, err := web.Do(r)
				if err != nil {
					s.t.Errorf("request %d: %v", i, err)
					return
				}
				_, _ = io.Copy(io.Discard, res.Body)
				res.Body.Close()
				if res.StatusCode != http.StatusOK {
					s.t.Errorf("request %d: status %d", i, res.StatusCode)
				}
			}
		})
	}
	all.Wait()
	web.CloseIdleConnections()
}

// TestServeUnreadLog checks that a server whose stderr is a pipe that nothing reads answers, counts
// the lines that it drops, and ends within --grace.
func TestServeUnreadLog(t *testing.T) {
	for _, format := range []string{"text", "json"} {
		_, w := unreadPipe(t)
		const grace = time.Minute
		cmd := exec.Command("sandwich", "serve", "--listen", "127.0.0.1:0", "--grace", grace.String(), "--log", format)
		cmd.Stderr = w
		s := launchServer(t, cmd)
		s.models(2000)
		if dropped := s.sum("sandwich_log_dropped_total"); dropped <= 0 || dropped >= 2000 {
			t.Errorf("%s: %g lines dropped", format, dropped)
		}
		begun := time.Now()
		s.stop()
		if took := time.Since(begun); took > grace {
			t.Errorf("%s: it took %v to end", format, took)
		}
	}
}

// TestServeClosedOutput checks that readers of stdout and stderr may go away at any time.
func TestServeClosedOutput(t *testing.T) {
	t.Run("stderr", func(t *testing.T) {
		r, w := unreadPipe(t)
		cmd := exec.Command("sandwich", "serve", "--listen", "127.0.0.1:0")
		cmd.Stderr = w
		s := launchServer(t, cmd)
		w.Close()
		r.Close()
		s.models(50)
		waitFor(t, "a line that is counted as dropped", func() bool { return s.sum("sandwich_log_dropped_total") > 0 })
		s.stop()
	})
	t.Run("from the start", func(t *testing.T) {
		r, w := unreadPipe(t)
		r.Close()
		s := &served{t: t, url: "http://" + freeAddress(t)}
		s.cmd = exec.Command("sandwich", "serve", "--listen", strings.TrimPrefix(s.url, "http://"))
		s.cmd.Env = append(os.Environ(), "XDG_DATA_HOME="+t.TempDir())
		s.cmd.Stdout, s.cmd.Stderr = w, w // the announcement is lost, too
		if err := s.cmd.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(s.kill)
		waitFor(t, "ready", func() bool { code, _, _ := health(s.url); return code == http.StatusOK })
		s.models(50)
		s.stop()
	})
	t.Run("after a line", func(t *testing.T) {
		r, w := unreadPipe(t)
		s := &served{t: t, url: "http://" + freeAddress(t)}
		s.cmd = exec.Command("sandwich", "serve", "--listen", strings.TrimPrefix(s.url, "http://"))
		s.cmd.Env = append(os.Environ(), "XDG_DATA_HOME="+t.TempDir())
		s.cmd.Stdout, s.cmd.Stderr = w, w
		if err := s.cmd.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(s.kill)
		if _, err := bufio.NewReader(r).ReadString('\n'); err != nil { // as head -1
			t.Fatal(err)
		}
		w.Close()
		r.Close()
		waitFor(t, "ready", func() bool { code, _, _ := health(s.url); return code == http.StatusOK })
		s.models(50)
		s.stop()
	})
}

// TestServeReopenedLog checks that a late reader gets the retained lines, the number of dropped
// lines, and all lines that follow.
func TestServeReopenedLog(t *testing.T) {
	r, w := unreadPipe(t)
	cmd := exec.Command("sandwich", "serve", "--listen", "127.0.0.1:0")
	cmd.Stderr = w
	s := launchServer(t, cmd)
	s.models(2000)
	w.Close()
	log := &syncBuffer{}
	go func() { _, _ = io.Copy(log, r) }()
	waitFor(t, "a report", func() bool { return strings.Contains(log.String(), "log lines were dropped") })
	s.models(8)
	s.stop()
	waitFor(t, "the last line", func() bool { return strings.HasSuffix(log.String(), "stopped\n") })
	for line := range strings.Lines(log.String()) {
		if !strings.HasSuffix(line, "\n") || strings.Count(line, "time=") > 1 {
			t.Errorf("a damaged line: %q", line)
		}
	}
}

// TestServeFewDescriptors checks that connections of which the bodies do not arrive do not lock
// others out where the process may open fewer descriptors than the table has places.
func TestServeFewDescriptors(t *testing.T) {
	s := launchServer(t, exec.Command("sh", "-c", `ulimit -n 128; exec sandwich serve --listen 127.0.0.1:0`))
	for i := range 400 {
		d := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, byte(2+i%5))}}
		c, err := d.Dial("tcp", strings.TrimPrefix(s.url, "http://"))
		if err != nil {
			t.Skipf("no second loopback address; give the loopback interface all of 127.0.0.0/8: %v", err)
		}
		defer c.Close()
		fmt.Fprintf(c, "POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9\r\n\r\n{")
	}
	waitFor(t, "others are answered", func() bool {
		code, _, _ := health(s.url)
		return code == http.StatusOK
	})
	for range 50 {
		http.DefaultClient.CloseIdleConnections()
		if code, _, _ := health(s.url); code != http.StatusOK {
			t.Errorf("status %d", code)
		}
	}
	if text := s.stderr.String(); !strings.Contains(text, "ulimit -n") {
		t.Errorf("the limit is not named: %s", text)
	}
	_ = s.cmd.Process.Signal(syscall.SIGTERM)
	if err := s.cmd.Wait(); err != nil {
		t.Errorf("%v: %s", err, &s.stderr)
	}
}
