package server

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"sandwich/runtime/api"
)

// journal is a log that a test can read.
type journal struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (j *journal) Write(p []byte) (int, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.buf.Write(p)
}

func (j *journal) logger(level slog.Level) *slog.Logger {
	return slog.New(slog.NewJSONHandler(j, &slog.HandlerOptions{Level: level}))
}

func (j *journal) text() string {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.buf.String()
}

// lines returns the records with a message.
func (j *journal) lines(t *testing.T, msg string) (out []map[string]any) {
	t.Helper()
	for line := range strings.Lines(j.text()) {
		var m map[string]any
		if err := json.Unmarshal([]byte(line), &m); err != nil {
			t.Fatalf("%v in %s", err, line)
		}
		if m["msg"] == msg {
			out = append(out, m)
		}
	}
	return out
}

// timedFake reports how long a request waited.
type timedFake struct{ fake }

func (f *timedFake) Generate(ctx context.Context, r api.Request, emit func(api.Token) error) (api.Result, error) {
	result, err := f.fake.Generate(ctx, r, emit)
	result.Queued, result.DraftedTokens, result.AcceptedTokens = 1500*time.Microsecond, 5, 2
	return result, err
}

// TestRequestLog checks that each request has one line with figures and without prompt, answer or
// key.
func TestRequestLog(t *testing.T) {
	const private = "xyzzy"
	body := strings.Replace(chatOnce, "hi", private, 1)
	for _, stream := range []bool{false, true} {
		var j journal
		f := &timedFake{fake{words: []string{private, private, "c"}, delay: time.Millisecond}}
		s := New(f, Options{Log: j.logger(slog.LevelDebug), APIKeys: []string{private}})
		r := httptest.NewRequest("POST", chatPath,
			strings.NewReader(strings.Replace(body, "{",
				fmt.Sprintf(`{"stop":"%s","user":"%s","stream":%v,`, private, private, stream), 1)))
		r.Header.Set("Authorization", "Bearer "+private)
		w := httptest.NewRecorder()
		s.ServeHTTP(w, r)
		lines := j.lines(t, "request")
		if w.Code != 200 || len(lines) != 1 {
			t.Fatalf("status %d, log %s", w.Code, j.text())
		}
		l := lines[0]
		for name, want := range map[string]any{
			"id": w.Header().Get("X-Request-Id"), "route": chatPath, "method": "POST", "status": 200.,
			"stream": stream, "finish": "stop",
			"prompt_tokens": 7., "cached_tokens": 3., "completion_tokens": 3., "queue_ms": 1.5,
			"drafted_tokens": 5., "accepted_tokens": 2.,
		} {
			if l[name] != want {
				t.Errorf("%s is %v, want %v", name, l[name], want)
			}
		}
		ttft, _ := l["ttft_ms"].(float64)
		tpot, _ := l["tpot_ms"].(float64)
		total, _ := l["total_ms"].(float64)
		if ttft < 1 || tpot < 1 || total < ttft+2*tpot-0.01 {
			t.Errorf("to the first token %v ms, between tokens %v ms, in all %v ms", ttft, tpot, total)
		}
		if strings.Contains(j.text(), private) {
			t.Errorf("the log tells what was said: %s", j.text())
		}
		if p := j.lines(t, "parameters"); len(p) != 1 || p[0]["id"] != l["id"] {
			t.Errorf("parameters: %v", p)
		}
	}
}

// TestLogLevels checks that refusals have a line, and that probes and parameters appear only at
// level Debug.
func TestLogLevels(t *testing.T) {
	var j journal
	s := New(&fake{words: []string{"x"}}, Options{Log: j.logger(slog.LevelInfo)})
	post(t, s, chatPath, chatOnce)
	post(t, s, chatPath, `{"temprature":1}`)
	serve(s, "GET", "/health", "")
	serve(s, "GET", "/metrics", "")
	serve(s, "GET", "/a%0Ab", "")
	var got []string
	for _, l := range j.lines(t, "request") {
		got = append(got, fmt.Sprint(l["route"], " ", l["status"], " ", l["error"], " ", l["param"]))
	}
	want := []string{chatPath + " 200 <nil> <nil>", chatPath + " 400 <nil> temprature", "other 404 not_found <nil>"}
	if !slices.Equal(got, want) || len(j.lines(t, "parameters")) != 0 {
		t.Errorf("%v, want %s; %s", got, want, j.text())
	}
}

// TestFailedStreamIsLogged checks that a failure after the first token has its error code in the
// log.
func TestFailedStreamIsLogged(t *testing.T) {
	var j journal
	post(t, New(&fake{words: []string{"a"}, endErr: api.ErrClosed}, Options{Log: j.logger(slog.LevelInfo)}), chatPath,
		chatStream)
	if l := j.lines(t, "request"); len(l) != 1 || l[0]["status"] != 503. || l[0]["error"] != "shutting_down" {
		t.Errorf("log %s", j.text())
	}
}

// TestHangUpIsLogged checks that a client that disconnects has a line with status 499 and its token
// count.
func TestHangUpIsLogged(t *testing.T) {
	for _, body := range []string{chatOnce, chatStream} {
		var j journal
		f := &fake{words: []string{"x"}, first: make(chan struct{}), started: make(chan struct{}, 1)}
		url, _ := start(t, f, Options{Log: j.logger(slog.LevelInfo)})
		ctx, hangUp := context.WithCancel(t.Context())
		failed := make(chan error, 1)
		go func() {
			_, err := send(t, ctx, url, body)
			failed <- err
		}()
		<-f.started
		hangUp()
		<-failed
		eventually(t, "the hang-up is logged", func() bool { return strings.Contains(j.text(), `"status":499`) })
	}
}

// TestRequestIDs checks that a client's request id is kept if it is valid, and replaced otherwise.
func TestRequestIDs(t *testing.T) {
	s := New(&fake{words: []string{"x"}}, Options{})
	for id, kept := range map[string]bool{
		"abc-DEF_1.2:3": true, strings.Repeat("a", 128): true,
		"": false, strings.Repeat("a", 129): false, "a b": false, "a\tb": false, "é": false, `a"b`: false, "a=b": false,
	} {
		w := visit(s, "POST", chatPath, "X-Request-Id", id)
		if got := w.Header().Get("X-Request-Id"); (got == id) != kept || !kept && !strings.HasPrefix(got, "req-") {
			t.Errorf("%q becomes %q", id, got)
		}
	}
	if a, b := visit(s, http.MethodGet, "/health"),
		visit(s, http.MethodGet, "/health"); a.Header().Get("X-Request-Id") == b.Header().Get("X-Request-Id") {
		t.Error("two requests have one id")
	}
}

// TestUnknownFieldsAreNamedOnce checks that field names can neither break the log nor fill it.
func TestUnknownFieldsAreNamedOnce(t *testing.T) {
	var j journal
	s := New(&fake{words: []string{"x"}}, Options{Log: slog.New(slog.NewTextHandler(&j, nil))})
	with := func(fields string) {
		t.Helper()
		if w := post(t, s, chatPath, strings.TrimSuffix(chatOnce, "}")+","+fields+"}"); w.Code != 200 {
			t.Fatalf("status %d %s", w.Code, w.Body)
		}
	}
	with(`"frobnicate":1,"metadata":{}`)
	with(`"frobnicate":2`)
	with(`"forged\nlevel=INFO msg=\u001b[2J\u2028":1`)
	with(`"` + strings.Repeat("long", 1<<16) + `":1`)
	if n := strings.Count(j.text(), "frobnicate"); n != 1 {
		t.Errorf("a field is named %d times: %s", n, j.text())
	}
	if strings.Contains(j.text(), "metadata") || strings.ContainsAny(j.text(), "\x1b\u2028") || len(j.text()) > 4096 {
		t.Errorf("log: %.4096q", j.text())
	}
	for line := range strings.Lines(j.text()) {
		if !strings.HasPrefix(line, "time=") {
			t.Errorf("a forged line: %q", line)
		}
	}
	for i := range 10 * 64 {
		with(fmt.Sprintf(`"made_up_%d":1`, i))
	}
	if n := strings.Count(j.text(), "field="); n != 64 {
		t.Errorf("%d fields are named, want %d", n, 64)
	}
}

// TestDroppedLines checks that dropped log lines are counted in the metrics.
func TestDroppedLines(t *testing.T) {
	s := New(&fake{}, Options{LogDropped: func() int64 { return 7 }})
	text := serve(s, "GET", "/metrics", "").Body.String()
	for _, want := range []string{"# TYPE sandwich_log_dropped_total counter\n", "\nsandwich_log_dropped_total 7\n"} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in %s", want, text)
		}
	}
}
