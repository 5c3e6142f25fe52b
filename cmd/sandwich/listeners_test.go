package main

import (
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"sandwich/cmd/sandwich/internal/cli/exit"
)

// waitFor waits up to three minutes for a condition in another process.
func waitFor(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for begun := time.Now(); time.Since(begun) < 3*time.Minute; time.Sleep(5 * time.Millisecond) {
		if ok() {
			return
		}
	}
	t.Fatalf("never: %s", what)
}

// TestServeHangUp checks that SIGHUP reads the keys again and costs no request, and that a broken
// key file changes nothing.
func TestServeHangUp(t *testing.T) {
	keys := filepath.Join(t.TempDir(), "keys")
	write := func(text string) {
		if err := os.WriteFile(keys, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("old\n")
	s := startServe(t, "--api-key-file", keys)
	hangUp := func(told string) {
		t.Helper()
		if err := s.cmd.Process.Signal(syscall.SIGHUP); err != nil {
			t.Fatal(err)
		}
		waitFor(t, told, func() bool { return strings.Contains(s.stderr.String(), told) })
	}
	req, err := http.NewRequest("POST", s.url+"/v1/completions",
		strings.NewReader(`{"prompt":"Once","max_tokens":400,"ignore_eos":true,"stream":true}`))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer old")
	req.Header.Set("Content-Type", "application/json")
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	write("new\nnewer\n")
	hangUp("SIGHUP: loaded 2 keys from")
	for key, want := range map[string]int{"old": http.StatusUnauthorized, "new": http.StatusOK,
		"newer": http.StatusOK} {
		if code, _, _ := s.do("GET", "/v1/models", "", key); code != want {
			t.Errorf("key %q after SIGHUP: status %d, want %d", key, code, want)
		}
	}
	if rest, err := io.ReadAll(res.Body); err != nil || !strings.HasSuffix(string(rest), "data: [DONE]\n\n") {
		t.Errorf("the answer under way was cut: %v", err)
	}
	write("# no keys\n")
	hangUp("has no key; write one per line; nothing is changed")
	if code, _, _ := s.do("GET", "/v1/models", "", "new"); code != http.StatusOK {
		t.Errorf("after a broken key file: status %d", code)
	}
	s.stop()
}

func TestServeHangUpWithoutKeys(t *testing.T) {
	s := startServe(t)
	if err := s.cmd.Process.Signal(syscall.SIGHUP); err != nil {
		t.Fatal(err)
	}
	waitFor(t, "a word on SIGHUP", func() bool {
		return strings.Contains(s.stderr.String(), "there is no --api-key-file and no --config to reload")
	})
	if code, text, _ := s.do("GET", "/health", "", ""); code != http.StatusOK {
		t.Errorf("status %d: %s", code, text)
	}
	s.stop()
}

// TestTuneHangUp checks that a lost terminal ends a tune as Ctrl-C does, and does not under nohup.
func TestTuneHangUp(t *testing.T) {
	// Under nohup these tests would hand on that SIGHUP is ignored; not once they hear it.
	heard := make(chan os.Signal, 1)
	signal.Notify(heard, syscall.SIGHUP)
	defer signal.Stop(heard)
	host := unmeasuredHost(t)
	// The two tunes run at the same time, since each measures for seconds before its journal.
	start := func(command ...string) (*exec.Cmd, *syncBuffer) {
		out := filepath.Join(t.TempDir(), "x.plan")
		c := exec.Command(command[0], append(command[1:], "sandwich", "tune", "--profile", host, "--budget", "10m",
			"-o", out)...)
		stderr := &syncBuffer{}
		c.Stderr = stderr
		if err := c.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			_ = c.Process.Kill()
			_ = c.Wait()
		})
		return c, stderr
	}
	waitForJournal := func(c *exec.Cmd) {
		t.Helper()
		out := c.Args[len(c.Args)-1]
		waitFor(t, "a journal", func() bool { _, err := os.Stat(out + ".journal"); return err == nil })
	}
	_, err := exec.LookPath("nohup")
	plain, plainErr := start("env")
	var immune *exec.Cmd
	var immuneErr *syncBuffer
	if err == nil {
		immune, immuneErr = start("nohup")
	}
	wantInterrupted := func(c *exec.Cmd, stderr *syncBuffer, what string) {
		t.Helper()
		err := c.Wait()
		if c.ProcessState.ExitCode() != exit.Failed || !strings.Contains(stderr.String(), "interrupted") {
			t.Errorf("%s: %v: %s", what, err, stderr)
		}
	}
	waitForJournal(plain)
	_ = plain.Process.Signal(syscall.SIGHUP)
	wantInterrupted(plain, plainErr, "SIGHUP")
	if err != nil {
		t.Skip("nohup is not installed: install coreutils")
	}
	waitForJournal(immune)
	_ = immune.Process.Signal(syscall.SIGHUP)
	time.Sleep(200 * time.Millisecond)
	_ = immune.Process.Signal(syscall.SIGTERM) // a process that SIGHUP ended would not hear this one
	wantInterrupted(immune, immuneErr, "SIGHUP under nohup, then SIGTERM")
}

// launch starts a verb that serves and returns at once, before the server is ready.
func launch(t *testing.T, args ...string) *served {
	t.Helper()
	addr := freeAddress(t)
	s := &served{t: t, url: "http://" + addr, cmd: exec.Command("sandwich", append(args, "--listen", addr)...)}
	s.cmd.Env = append(os.Environ(), "XDG_DATA_HOME="+t.TempDir())
	s.cmd.Stderr = &s.stderr
	if err := s.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.kill)
	return s
}

// freeAddress returns an address that nothing listens on. Its port is below the usual range of
// ephemeral ports: other sockets do not get it before the caller uses it, and a client that tries
// it too early cannot connect to itself.
func freeAddress(t *testing.T) string {
	t.Helper()
	var last error
	for range 1000 {
		ln, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", 10_000+rand.IntN(20_000)))
		if err == nil {
			defer ln.Close()
			return ln.Addr().String()
		}
		last = err
	}
	t.Fatalf("no free port: %v", last)
	return ""
}

// health asks a server that may not listen yet: status 0.
func health(url string) (code int, status, stage string) {
	res, err := http.Get(url + "/health")
	if err != nil {
		return 0, "", ""
	}
	defer res.Body.Close()
	var h struct{ Status, Stage string }
	_ = json.NewDecoder(res.Body).Decode(&h)
	return res.StatusCode, h.Status, h.Stage
}

// TestHealthWhileLoading checks that a server answers /health from the start on both listeners and
// reports the progress of loading.
func TestHealthWhileLoading(t *testing.T) {
	model := filepath.Join(t.TempDir(), "m.gguf")
	synth := exec.Command("sandwich", "model", "synth", "--preset", "llama-160m", "-o", model)
	if out, err := synth.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	loads := func(args []string, expected func(stages map[string]bool) bool) {
		var stages map[string]bool
		for range 5 { // a test that the system stops for seconds misses the stages
			if stages = stagesOf(t, args...); expected(stages) && !stages[""] {
				return
			}
		}
		t.Errorf("%s: stages %v were seen before it was ready", args[0], stages)
	}
	loads([]string{"serve", "--model", model}, func(stages map[string]bool) bool { return len(stages) > 0 })
	loads([]string{"run", "--budget", "2s"}, func(stages map[string]bool) bool { return stages["tuning"] })
}

// stagesOf starts a server, stops it when it is ready, and returns the stages of loading that it
// reported.
func stagesOf(t *testing.T, args ...string) (stages map[string]bool) {
	t.Helper()
	own := freeAddress(t)
	s := launch(t, append(args, "--health-listen", own)...)
	stages = map[string]bool{}
	waitFor(t, "ready", func() bool {
		code, status, stage := health(s.url)
		if code == http.StatusServiceUnavailable && status == "loading" {
			stages[stage] = true
		}
		return code == http.StatusOK && status == "ok"
	})
	if code, _, _ := health("http://" + own); code != http.StatusOK {
		t.Errorf("%s: the health listener: status %d", args[0], code)
	}
	s.stop()
	return stages
}

// TestStopWhileLoading checks that SIGTERM does not wait for the model.
func TestStopWhileLoading(t *testing.T) {
	s := launch(t, "run", "--budget", "10m")
	waitFor(t, "loading", func() bool { code, _, _ := health(s.url); return code == http.StatusServiceUnavailable })
	if code, text, h := s.do("POST", "/v1/completions", `{"prompt":"x"}`, ""); code != http.StatusServiceUnavailable ||
		h.Get("Retry-After") == "" || !strings.Contains(text, "the model is loading") {
		t.Errorf("a request while loading: status %d: %s", code, text)
	}
	begun := time.Now()
	if err := s.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	_ = s.cmd.Wait()
	if took := time.Since(begun); took > 2*time.Minute {
		t.Errorf("it took %v to stop", took)
	}
	text := s.stderr.String()
	if !strings.Contains(text, "stopped before the model was loaded") && !strings.Contains(text, "interrupted") {
		t.Errorf("stderr: %s", text)
	}
}
