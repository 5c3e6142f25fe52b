package server

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

const (
	chatOnce   = `{"messages":[{"role":"user","content":"hi"}]}`
	chatStream = `{"messages":[{"role":"user","content":"hi"}],"stream":true}`
)

func send(t *testing.T, ctx context.Context, url, body string) (*http.Response, error) {
	t.Helper()
	return sendBy(t, ctx, http.DefaultClient, url, body)
}

func sendBy(t *testing.T, ctx context.Context, by *http.Client, url, body string) (*http.Response, error) {
	t.Helper()
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, url+"/v1/chat/completions", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	return by.Do(r)
}

// A client that disconnects during prefill cancels Generate, whether it streams or not.
func TestHangUpInPrefill(t *testing.T) {
	for _, body := range []string{chatOnce, chatStream} {
		f := &fake{words: []string{"x"}, first: make(chan struct{}), started: make(chan struct{}, 1)}
		url, srv := start(t, f, Options{})
		ctx, hangUp := context.WithCancel(t.Context())
		failed := make(chan error, 1)
		go func() {
			_, err := send(t, ctx, url, body)
			failed <- err
		}()
		<-f.started
		hangUp()
		if err := <-failed; err == nil {
			t.Fatal("a client that hung up had an answer")
		}
		eventually(t, "Generate is cancelled", func() bool { return f.cancels.Load() == 1 && f.running.Load() == 0 })
		eventually(t, "the hang-up is counted", func() bool {
			return strings.Contains(serve(srv, "GET", "/metrics", "").Body.String(), `code="499"} 1`)
		})
	}
}

func TestHangUpInStream(t *testing.T) {
	f := &fake{words: strings.Split(strings.Repeat("word ", 5000), " "), delay: 50 * time.Millisecond}
	url, _ := start(t, f, Options{})
	ctx, hangUp := context.WithCancel(t.Context())
	resp, err := send(t, ctx, url, chatStream)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := bufio.NewReader(resp.Body).ReadString('\n'); err != nil {
		t.Fatal(err)
	}
	hangUp()
	eventually(t, "Generate is cancelled", func() bool { return f.cancels.Load() == 1 })
	resp.Body.Close()
}

// A client that stops reading is disconnected after WriteTimeout.
func TestClientThatDoesNotRead(t *testing.T) {
	f := &fake{words: make([]string, 4096)}
	for i := range f.words {
		f.words[i] = strings.Repeat("x", 8<<10)
	}
	url, _ := start(t, f, Options{WriteTimeout: 200 * time.Millisecond})
	resp, err := send(t, t.Context(), url, chatStream)
	if err != nil {
		t.Fatal(err)
	}
	eventually(t, "Generate is stopped", func() bool { return f.cancels.Load() == 1 })
	resp.Body.Close()
}

func TestConcurrentStreams(t *testing.T) {
	f := &fake{words: strings.SplitAfter(strings.Repeat("one two three ", 40), " "), delay: 200 * time.Microsecond}
	url, srv := start(t, f, Options{})
	want := strings.Join(f.words, "")
	var wg sync.WaitGroup
	for i := range 32 {
		wg.Go(func() {
			resp, err := send(t, t.Context(), url, chatStream[:len(chatStream)-1]+
				`,"stream_options":{"include_usage":true}}`)
			if err != nil {
				t.Error(err)
				return
			}
			defer resp.Body.Close()
			if i%8 == 7 {
				return // disconnects at once
			}
			text, sc := "", bufio.NewScanner(resp.Body)
			for sc.Scan() {
				if data, ok := strings.CutPrefix(sc.Text(), "data: "); ok && data != "[DONE]" {
					s, _ := at(parsed(t, []byte(data)), "choices", 0, "delta", "content").(string)
					text += s
				}
			}
			if text != want || sc.Err() != nil {
				t.Errorf("stream %d: %d bytes of %d, %v", i, len(text), len(want), sc.Err())
			}
		})
	}
	wg.Wait()
	eventually(t, "nothing runs", func() bool { return srv.run.Counters.InFlight.Load() == 0 })
	if got := f.finished.Load() + f.cancels.Load(); got != 32 {
		t.Errorf("%d requests ended, want 32", got)
	}
	if held := srv.run.BodyMemory(); held != 0 {
		t.Errorf("%d bytes of bodies are still held", held)
	}
}

// endless is an endless body that counts the bytes read.
type endless struct{ taken atomic.Int64 }

func (e *endless) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = ' '
	}
	e.taken.Add(int64(len(p)))
	return len(p), nil
}

// A body of a gigabyte is refused by its Content-Length, or after MaxBody bytes if it has none, and
// takes no memory beyond that. After the refusal the server discards at most 256 MiB.
func TestHugeBody(t *testing.T) {
	url, srv := start(t, &fake{words: []string{"x"}}, Options{MaxBody: 1 << 20})
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for _, length := range []int64{1 << 30, -1} {
		src := &endless{}
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url+"/v1/completions",
			io.LimitReader(src, 1<<30))
		if err != nil {
			t.Fatal(err)
		}
		r.ContentLength = length
		resp, err := http.DefaultTransport.RoundTrip(r)
		switch {
		case err != nil:
			// The server closed the connection while the client was writing; that is a refusal as
			// well.
		case resp.StatusCode != http.StatusRequestEntityTooLarge:
			t.Errorf("length %d: status %d", length, resp.StatusCode)
		default:
			resp.Body.Close()
		}
		if taken := src.taken.Load(); taken > 320<<20 {
			t.Errorf("length %d: the server took %d bytes", length, taken)
		}
	}
	runtime.ReadMemStats(&after)
	if grown := after.TotalAlloc - before.TotalAlloc; grown > 64<<20 {
		t.Errorf("%d bytes allocated for a body that was refused", grown)
	}
	eventually(t, "the bytes are given back", func() bool { return srv.run.BodyMemory() == 0 })

	// Without a network in between, the status is certain.
	for _, body := range []string{strings.Repeat(" ", 1<<20) + chatOnce} {
		if w := post(t, srv, "/v1/chat/completions", body); w.Code != http.StatusRequestEntityTooLarge ||
			!strings.Contains(w.Body.String(), "1048576 bytes") {
			t.Errorf("status %d %s", w.Code, w.Body)
		}
	}
}

func TestBodyBudget(t *testing.T) {
	f := &fake{words: []string{"x"}, first: make(chan struct{}), started: make(chan struct{}, 2)}
	s := New(f, Options{BodyBudget: 64 << 10})
	var wg sync.WaitGroup
	wg.Go(func() {
		if w := post(t, s, "/v1/chat/completions", strings.Repeat(" ", 40<<10)+chatOnce); w.Code != 200 {
			t.Errorf("the first request: status %d %s", w.Code, w.Body)
		}
	})
	<-f.started
	if w := post(t, s, "/v1/chat/completions", chatOnce); w.Code != 503 || w.Header().Get("Retry-After") == "" {
		t.Errorf("beyond the budget: status %d %s", w.Code, w.Body)
	}
	close(f.first)
	wg.Wait()
	if w := post(t, s, "/v1/chat/completions", chatOnce); w.Code != 200 {
		t.Errorf("afterwards: status %d %s", w.Code, w.Body)
	}
}

func dial(t *testing.T, url string) net.Conn {
	t.Helper()
	c, err := net.Dial("tcp", strings.TrimPrefix(url, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

// Clients that send a part of their header or body, or nothing, are disconnected.
func TestSlowClients(t *testing.T) {
	const post = "POST /v1/completions HTTP/1.1\r\nHost: x\r\n"
	for name, c := range map[string]struct {
		text, answer string
		after        time.Duration
	}{
		"nothing": {"", "", time.Second},
		"header":  {post + "X-Slow", "", time.Second},
		"body":    {post + "Content-Length: 100\r\n\r\n{", "HTTP/1.1 408", 2 * time.Second},
		"chunked": {post + "Transfer-Encoding: chunked\r\n\r\n5\r\n{", "HTTP/1.1 408", 2 * time.Second},
		"idle":    {"GET /health HTTP/1.1\r\nHost: x\r\n\r\n", "HTTP/1.1 200", 3 * time.Second},
		"refused": {strings.Replace(post, "/v1/completions", "/nothing", 1) + "Content-Length: 100\r\n\r\n{", "",
			4 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			inMemory(t, func(t *testing.T, n *network) {
				n.start(t, &fake{}, Options{HeaderTimeout: time.Second, BodyTimeout: 2 * time.Second,
					IdleTimeout: 3 * time.Second})
				begun, conn := time.Now(), n.dial(t)
				conn.SetDeadline(begun.Add(time.Minute))
				if _, err := io.WriteString(conn, c.text); err != nil {
					t.Fatal(err)
				}
				answer, err := io.ReadAll(conn)
				if err != nil || !strings.HasPrefix(string(answer), c.answer) {
					t.Errorf("answer %q, %v", answer, err)
				}
				if took := time.Since(begun); took < c.after || took > c.after+100*time.Millisecond {
					t.Errorf("the connection is closed after %v, want %v", took, c.after)
				}
			})
		})
	}
}

// drain runs Serve, starts one stream, ends Serve and returns what the client receives.
func drain(t *testing.T, n *network, f *fake, o Options) string {
	t.Helper()
	srv := New(f, o)
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	done := make(chan error, 1)
	go func() { done <- srv.Serve(ctx, n) }()
	resp, err := sendBy(t, t.Context(), n.client, "http://localhost", chatStream)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	stop()
	eventually(t, "/health says so", func() bool { return serve(srv, "GET", "/health", "").Code == 503 })
	if w := post(t, srv, "/v1/chat/completions", chatOnce); w.Code != 503 {
		t.Errorf("a new request while draining: status %d", w.Code)
	}
	text, _ := io.ReadAll(resp.Body)
	if err := <-done; err != nil {
		t.Errorf("Serve: %v", err)
	}
	if _, err := n.connect("127.0.0.1"); err == nil {
		t.Error("the listener is still open")
	}
	return string(text)
}

func TestShutdownLetsAnswersFinish(t *testing.T) {
	inMemory(t, func(t *testing.T, n *network) {
		f := &fake{words: strings.SplitAfter(strings.Repeat("x ", 100), " "), delay: 2 * time.Millisecond}
		text := drain(t, n, f, Options{})
		if !strings.HasSuffix(text, "data: [DONE]\n\n") || f.finished.Load() != 1 {
			t.Fatalf("the answer was cut: %q", text[max(0, len(text)-200):])
		}
	})
}

func TestShutdownCutsAfterGrace(t *testing.T) {
	inMemory(t, func(t *testing.T, n *network) {
		f := &fake{words: strings.SplitAfter(strings.Repeat("x ", 100_000), " "), delay: time.Millisecond}
		text := drain(t, n, f, Options{Grace: 50 * time.Millisecond})
		if !strings.Contains(text, `"code":"shutting_down"`) || f.cancels.Load() != 1 {
			t.Fatalf("the client was not told: %q", text[max(0, len(text)-200):])
		}
	})
}

// A stream that waits for its first token sends keep-alive comments and still reports its error.
func TestHeartbeat(t *testing.T) {
	f := &fake{words: []string{"x"}, first: make(chan struct{})}
	url, _ := start(t, f, Options{Heartbeat: 10 * time.Millisecond})
	resp, err := send(t, t.Context(), url, chatStream)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	in := bufio.NewReader(resp.Body)
	for range 3 {
		if line, err := in.ReadString('\n'); err != nil || line != ": waiting\n" {
			t.Fatalf("%q %v", line, err)
		}
		in.ReadString('\n')
	}
	close(f.first)
	if got := chunks(t, in); at(got[0], "choices", 0, "delta", "role") != "assistant" || len(got) != 3 {
		t.Fatalf("chunks %v", got)
	}

	f = &fake{words: []string{"x"}, first: make(chan struct{}), endErr: fmt.Errorf("boom")}
	url, _ = start(t, f, Options{Heartbeat: 10 * time.Millisecond})
	resp, err = send(t, t.Context(), url, chatStream)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	close(f.first)
	if text, _ := io.ReadAll(resp.Body); !strings.Contains(string(text), "boom") {
		t.Fatalf("%s", text)
	}
}

// With several requests on one connection, deadlines of one do not affect the next.
func TestKeepAlive(t *testing.T) {
	inMemory(t, func(t *testing.T, n *network) {
		n.start(t, &fake{words: []string{"x"}, delay: 30 * time.Millisecond},
			Options{WriteTimeout: 60 * time.Millisecond, BodyTimeout: 40 * time.Millisecond})
		for i := range 5 {
			resp, err := sendBy(t, t.Context(), n.client, "http://localhost", []string{chatOnce, chatStream}[i%2])
			if err != nil {
				t.Fatal(err)
			}
			if _, err := io.ReadAll(resp.Body); err != nil || resp.StatusCode != 200 {
				t.Fatalf("request %d: status %d, %v", i, resp.StatusCode, err)
			}
			resp.Body.Close()
			time.Sleep(80 * time.Millisecond)
		}
		if dials := n.dials.Load(); dials != 1 {
			t.Errorf("%d connections, want 1", dials)
		}
	})
}
