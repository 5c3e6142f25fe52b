package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
)

// served is a process that runs `sandwich serve` with the embedded model.
type served struct {
	t      *testing.T
	cmd    *exec.Cmd
	url    string
	curl   string     // the line it printed to try
	stdout syncBuffer // until the announcement
	stderr syncBuffer
}

// syncBuffer collects the output of a running process; it may be read concurrently.
type syncBuffer struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (b *syncBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.Write(p)
}

func (b *syncBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.String()
}

func startServe(t *testing.T, args ...string) *served {
	t.Helper()
	return launchServer(t, exec.Command("sandwich", append([]string{"serve", "--listen", "127.0.0.1:0"}, args...)...))
}

// launchServer starts a command that serves and returns once it has announced its address.
func launchServer(t *testing.T, cmd *exec.Cmd) *served {
	t.Helper()
	s := &served{t: t, cmd: cmd}
	if s.cmd.Env == nil {
		s.cmd.Env = append(os.Environ(), "XDG_DATA_HOME="+t.TempDir())
	}
	if s.cmd.Stderr == nil {
		s.cmd.Stderr = &s.stderr
	}
	out, err := s.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := s.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.kill)
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		fmt.Fprintln(&s.stdout, lines.Text())
		if m := regexp.MustCompile(`on (?:.* and )?(https?://\S+); try:`).FindStringSubmatch(lines.Text()); m != nil {
			s.url = m[1]
		}
		if strings.HasPrefix(lines.Text(), "curl ") {
			s.curl = lines.Text()
			break
		}
	}
	if s.url == "" || s.curl == "" {
		_ = s.cmd.Wait()
		t.Fatalf("serve did not announce itself: %s", &s.stderr)
	}
	return s
}

func (s *served) do(method, path, body, key string) (int, string, http.Header) {
	s.t.Helper()
	req, err := http.NewRequest(method, s.url+path, strings.NewReader(body))
	if err != nil {
		s.t.Fatal(err)
	}
	if key != "" {
		req.Header.Set("Authorization", "Bearer "+key)
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		s.t.Error(err)
		return 0, "", nil
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		s.t.Error(err)
	}
	return res.StatusCode, string(text), res.Header
}

// kill ends the server if it still runs.
func (s *served) kill() {
	_ = s.cmd.Process.Kill()
	_ = s.cmd.Wait()
}

// stop sends SIGTERM and checks that the server ends well.
func (s *served) stop() {
	s.t.Helper()
	if err := s.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		s.t.Fatal(err)
	}
	if err := s.cmd.Wait(); err != nil {
		s.t.Errorf("serve ended with %v: %s", err, &s.stderr)
	}
}

func TestServe(t *testing.T) {
	s := startServe(t)
	code, text, _ := s.do("POST", "/v1/chat/completions",
		`{"messages":[{"role":"user","content":"Hello!"}],"temperature":0,"max_tokens":60}`, "")
	var answer struct {
		Choices []struct {
			Message struct{ Content string }
			Finish  string `json:"finish_reason"`
		}
		Usage struct {
			Prompt     int `json:"prompt_tokens"`
			Completion int `json:"completion_tokens"`
			Total      int `json:"total_tokens"`
		}
	}
	if err := json.Unmarshal([]byte(text), &answer); err != nil || code != http.StatusOK || len(answer.Choices) != 1 {
		t.Fatalf("chat: status %d, %v: %s", code, err, text)
	}
	if c := answer.Choices[0]; !strings.HasPrefix(c.Message.Content, "I am a teller of tales.") || c.Finish != "stop" {
		t.Errorf("chat: answered %q, finish %q", c.Message.Content, c.Finish)
	}
	if u := answer.Usage; u.Prompt == 0 || u.Completion == 0 || u.Total != u.Prompt+u.Completion {
		t.Errorf("chat: usage %+v", u)
	}

	_, text, _ = s.do("POST", "/v1/completions",
		`{"prompt":"Once upon a time","max_tokens":4,"temperature":0,"stream":true,"logprobs":2}`, "")
	if n := strings.Count(text, "data: {"); n < 4 || !strings.HasSuffix(text, "data: [DONE]\n\n") {
		t.Errorf("stream of %d events: %s", n, text)
	}
	for path, want := range map[string]string{"/v1/models": `"tales-6m-q8_0"`, "/health": `ok`,
		"/metrics": "sandwich_memory_moved_bytes{rank=\"0\",what=\"weights\"} 0"} {
		if code, text, _ := s.do("GET", path, "", ""); code != http.StatusOK || !strings.Contains(text, want) {
			t.Errorf("%s: status %d: %s", path, code, text)
		}
	}
	long := fmt.Sprintf(`{"prompt":%q}`, strings.Repeat("the king ", 600))
	if code, text, _ := s.do("POST", "/v1/completions", long, ""); code != http.StatusBadRequest ||
		!strings.Contains(text, "512") {
		t.Errorf("prompt beyond the context: status %d: %s", code, text)
	}
	if code, text, _ := s.do("POST", "/v1/completions", `{"prompt":[1,99999]}`, ""); code != http.StatusBadRequest ||
		!strings.Contains(text, "vocabulary") {
		t.Errorf("token outside the vocabulary: status %d: %s", code, text)
	}
	s.stop()
}

// TestServeBatchInvariant checks that equal requests get equal answers regardless of the batch, and
// that a full queue answers with Retry-After.
func TestServeBatchInvariant(t *testing.T) {
	s := startServe(t, "--parallel", "4", "--queue", "2")
	const body = `{"prompt":"Once upon a time","max_tokens":120,"temperature":0,"ignore_eos":true}`
	content := func(text string) string {
		var a struct{ Choices []struct{ Text string } }
		if err := json.Unmarshal([]byte(text), &a); err != nil || len(a.Choices) != 1 {
			t.Errorf("%v: %s", err, text)
			return ""
		}
		return a.Choices[0].Text
	}
	_, text, _ := s.do("POST", "/v1/completions", body, "")
	alone := content(text)
	var wg sync.WaitGroup
	var mu sync.Mutex
	counts := map[int]int{}
	for range 24 {
		wg.Go(func() {
			code, text, header := s.do("POST", "/v1/completions", body, "")
			mu.Lock()
			defer mu.Unlock()
			counts[code]++
			switch {
			case code == http.StatusOK && content(text) != alone:
				t.Errorf("in a batch: %q, alone: %q", content(text), alone)
			case code == http.StatusTooManyRequests && header.Get("Retry-After") == "":
				t.Error("429 without Retry-After")
			}
		})
	}
	wg.Wait()
	if counts[http.StatusOK] == 0 || counts[http.StatusOK]+counts[http.StatusTooManyRequests] != 24 {
		t.Errorf("answers by status: %v", counts)
	}
	s.stop()
}

// TestServeHugePrompts checks that prompts that cannot fit are refused for their length, without
// the memory and the time of their tokens. What the start of the server takes does not count.
func TestServeHugePrompts(t *testing.T) {
	s := startServe(t)
	before, measured := s.resetPeak()
	text := strings.Repeat("a", 8<<20-1024)
	var all sync.WaitGroup
	for path, body := range map[string]string{
		"/v1/completions":      fmt.Sprintf(`{"prompt":%q}`, text),
		"/v1/chat/completions": fmt.Sprintf(`{"messages":[{"role":"user","content":%q}]}`, text),
	} {
		all.Go(func() {
			code, text, _ := s.do("POST", path, body, "")
			if code != http.StatusBadRequest || !strings.Contains(text, "at least") ||
				!strings.Contains(text, "context_length_exceeded") {
				t.Errorf("%s: status %d: %.400s", path, code, text)
			}
		})
	}
	all.Wait()
	// A little over the context the count is exact.
	code, text, _ := s.do("POST", "/v1/completions", fmt.Sprintf(`{"prompt":%q}`, strings.Repeat("the king ", 300)), "")
	if code != http.StatusBadRequest || strings.Contains(text, "at least") ||
		!strings.Contains(text, "prompt is too long: 60") {
		t.Errorf("status %d: %s", code, text)
	}
	if took := s.status("VmHWM") - before; measured && took > 192<<20 {
		t.Errorf("two prompts of 8 MB took %d MiB of memory", took>>20)
	} else {
		t.Logf("two prompts of 8 MB took %d MiB of memory; measured: %v", took>>20, measured)
	}
	s.stop()
}

// resetPeak resets the peak of the server's resident memory and returns the resident bytes; false
// if the system does not support that.
func (s *served) resetPeak() (resident int64, ok bool) {
	err := os.WriteFile(fmt.Sprintf("/proc/%d/clear_refs", s.cmd.Process.Pid), []byte("5"), 0)
	if err != nil {
		s.t.Logf("peak memory cannot be measured here: %v", err)
	}
	return s.status("VmRSS"), err == nil
}

// status returns a field of the server's /proc/PID/status in bytes; 0 if there is none.
func (s *served) status(field string) (bytes int64) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", s.cmd.Process.Pid))
	if err != nil {
		return 0
	}
	if m := regexp.MustCompile(field + `:\s+(\d+) kB`).FindSubmatch(text); m != nil {
		_, _ = fmt.Sscan(string(m[1]), &bytes)
	}
	return bytes << 10
}

// TestServeApart checks that a key cannot learn from the cache what another key asked, that foreign
// pages run nothing, and that the log contains no text of requests.
func TestServeApart(t *testing.T) {
	keys := filepath.Join(t.TempDir(), "keys")
	if err := os.WriteFile(keys, []byte("first\nsecond\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	s := startServe(t, "--api-key-file", keys, "--log", "json", "-v")
	body := fmt.Sprintf(`{"prompt":%q,"max_tokens":2,"temperature":0,"frobnicate":1}`,
		strings.Repeat("the secret king ", 40))
	cached := func(key string) int {
		code, text, _ := s.do("POST", "/v1/completions", body, key)
		var a struct {
			Usage struct {
				Details struct {
					Cached int `json:"cached_tokens"`
				} `json:"prompt_tokens_details"`
			}
		}
		if err := json.Unmarshal([]byte(text), &a); err != nil || code != http.StatusOK {
			t.Fatalf("status %d, %v: %s", code, err, text)
		}
		return a.Usage.Details.Cached
	}
	for i, c := range []struct {
		key string
		hit bool
	}{{"first", false}, {"second", false}, {"first", true}, {"second", true}} {
		if n := cached(c.key); (n > 0) != c.hit {
			t.Errorf("request %d, with the %s key: %d tokens were cached", i, c.key, n)
		}
	}
	for want, header := range map[int][2]string{
		http.StatusUnsupportedMediaType: {"Content-Type", "text/plain"},
		http.StatusForbidden:            {"Origin", "https://evil.example"},
		http.StatusMisdirectedRequest:   {"Host", "evil.example"},
	} {
		req, err := http.NewRequest("POST", s.url+"/v1/completions", strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Authorization", "Bearer first")
		req.Header.Set(header[0], header[1])
		if header[0] == "Host" {
			req.Host = header[1]
		}
		res, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		res.Body.Close()
		if res.StatusCode != want {
			t.Errorf("%s: %s: status %d, want %d", header[0], header[1], res.StatusCode, want)
		}
	}
	s.stop()
	log := s.stderr.String()
	for text, n := range map[string]int{`"msg":"request"`: 7, `"queue_ms":`: 4, `"msg":"parameters"`: 4,
		"frobnicate": 1, "secret": 0, "first": 0, `"second"`: 0} {
		if strings.Count(log, text) != n {
			t.Errorf("%s stands %d times in the log, want %d: %s", text, strings.Count(log, text), n, log)
		}
	}
}

// TestServeDrains checks that SIGTERM lets an answer under way finish, and that keys are asked for.
func TestServeDrains(t *testing.T) {
	keys := filepath.Join(t.TempDir(), "keys")
	if err := os.WriteFile(keys, []byte("# ours\nsecret\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	s := startServe(t, "--api-key-file", keys, "--grace", "10m")
	if !strings.Contains(s.curl, "Authorization: Bearer") {
		t.Errorf("the line to try has no key: %s", s.curl)
	}
	if code, _, _ := s.do("GET", "/v1/models", "", ""); code != http.StatusUnauthorized {
		t.Errorf("without a key: status %d", code)
	}
	if code, _, _ := s.do("GET", "/health", "", ""); code != http.StatusOK {
		t.Errorf("/health without a key: status %d", code)
	}
	req, err := http.NewRequest("POST", s.url+"/v1/completions",
		strings.NewReader(`{"prompt":"Once","max_tokens":400,"ignore_eos":true,"stream":true}`))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer secret")
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	head := make([]byte, 64)
	if _, err := io.ReadFull(res.Body, head); err != nil { // the answer has begun
		t.Fatal(err)
	}
	if err := s.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	rest, err := io.ReadAll(res.Body)
	if err != nil || !strings.HasSuffix(string(rest), "data: [DONE]\n\n") {
		t.Errorf("the answer under way was cut: %v", err)
	}
	if err := s.cmd.Wait(); err != nil {
		t.Errorf("serve ended with %v: %s", err, &s.stderr)
	}
}
