package server

import (
	"bufio"
	"context"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

func get(t *testing.T, url string) (int, string, http.Header) {
	t.Helper()
	return getBy(t, http.DefaultClient, url)
}

func getBy(t *testing.T, by *http.Client, url string) (int, string, http.Header) {
	t.Helper()
	resp, err := by.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(text), resp.Header
}

// A server without its model reports the progress of loading and refuses other requests until it is
// ready.
func TestHealthWhileLoading(t *testing.T) {
	url, srv := start(t, nil, Options{})
	srv.Progress("packing weights", 0.42)
	srv.Progress("packing weights", 0.3) // from a slower worker
	const want = `{"status":"loading","stage":"packing weights","progress":0.42}`
	if code, text, _ := get(t, url+"/health"); code != 503 || text != want {
		t.Errorf("loading: status %d %s", code, text)
	}
	for _, path := range []string{"/v1/models", "/v1/models/x", "/metrics"} {
		code, text, h := get(t, url+path)
		if code != 503 || !strings.Contains(text, "the model is loading") || h.Get("Retry-After") == "" {
			t.Errorf("%s: status %d %s", path, code, text)
		}
	}
	resp, err := send(t, t.Context(), url, chatStream)
	if err != nil || resp.StatusCode != 503 {
		t.Fatalf("a chat: %v %v", resp, err)
	}
	resp.Body.Close()
	srv.Ready(&fake{words: []string{"x"}})
	if code, text, _ := get(t, url+"/health"); code != 200 || text != `{"status":"ok"}` {
		t.Errorf("ready: status %d %s", code, text)
	}
	if resp, err = send(t, t.Context(), url, chatOnce); err != nil || resp.StatusCode != 200 {
		t.Fatalf("a chat: %v %v", resp, err)
	}
	resp.Body.Close()
}

// A draining server keeps listening: /health reports the state and requests are refused until the
// last answer has ended. It does not wait for silent clients, to whom net/http allows 5 s.
func TestListensWhileDraining(t *testing.T) {
	inMemory(t, func(t *testing.T, n *network) {
		f := &fake{words: []string{"a", "b"}, first: make(chan struct{}), started: make(chan struct{}, 1)}
		srv := New(f, Options{Heartbeat: 10 * time.Millisecond})
		ctx, stop := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- srv.Serve(ctx, n) }()
		const url = "http://localhost"
		n.dial(t) // a client that sends nothing
		resp, err := sendBy(t, t.Context(), n.client, url, chatStream)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		<-f.started
		stop()
		synctest.Wait()
		if code, text, _ := getBy(t, n.client, url+"/health"); code != 503 || !strings.Contains(text, "shutting down") {
			t.Errorf("health: status %d: %s", code, text)
		}
		refused, err := sendBy(t, t.Context(), n.client, url, chatOnce)
		if err != nil {
			t.Fatal(err)
		}
		text, _ := io.ReadAll(refused.Body)
		refused.Body.Close()
		if refused.StatusCode != 503 || !refused.Close || !strings.Contains(string(text), "shutting_down") {
			t.Errorf("a new request: status %d, close %v: %s", refused.StatusCode, refused.Close, text)
		}
		select {
		case err := <-done:
			t.Fatalf("Serve returned before the stream ended: %v", err)
		default:
		}
		begun := time.Now()
		close(f.first)
		if got := chunks(t, bufio.NewReader(resp.Body)); len(got) != 4 {
			t.Errorf("%d chunks", len(got))
		}
		if err := <-done; err != nil {
			t.Error(err)
		}
		if took := time.Since(begun); took > time.Second {
			t.Errorf("Serve took %v after the last answer", took)
		}
		if _, err := n.connect("127.0.0.1"); err == nil {
			t.Error("the listener is still open")
		}
	})
}

// New keys apply to the next request; running answers continue.
func TestSetKeys(t *testing.T) {
	f := &fake{words: []string{"x"}, first: make(chan struct{}), started: make(chan struct{}, 1)}
	url, srv := start(t, f, Options{APIKeys: []string{"old"}})
	answered := make(chan int, 1)
	conn := dial(t, url)
	request := strings.Replace(rawPost(chatOnce), "Host: x", "Host: x\r\nAuthorization: Bearer old", 1)
	go func() { answered <- ask(t, conn, request, never) }()
	<-f.started
	srv.SetKeys([]string{"new", "newer"})
	for key, want := range map[string]int{"old": 401, "new": 200, "newer": 200, "": 401} {
		if w := serve(srv, "GET", "/v1/models", "Bearer "+key); w.Code != want {
			t.Errorf("key %q: status %d, want %d", key, w.Code, want)
		}
	}
	close(f.first)
	if code := <-answered; code != 200 {
		t.Errorf("the answer under way: status %d", code)
	}
}

// TestDrainDelay checks that a server that is about to shut down reports it, but accepts requests
// until the delay is over, on connections that end with the answer.
func TestDrainDelay(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	hurry := make(chan struct{})
	srv := New(&fake{words: []string{"a"}}, Options{DrainDelay: time.Hour, Hurry: hurry})
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- srv.Serve(ctx, ln) }()
	url := "http://" + ln.Addr().String()
	ask := func() *http.Response {
		resp, err := send(t, t.Context(), url, chatOnce)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		return resp
	}
	if resp := ask(); resp.StatusCode != 200 || resp.Close {
		t.Fatalf("before: status %d, close %v", resp.StatusCode, resp.Close)
	}
	stop()
	eventually(t, "health says that the server ends", func() bool {
		code, text, _ := get(t, url+"/health")
		return code == 503 && strings.Contains(text, "shutting down")
	})
	if resp := ask(); resp.StatusCode != 200 || !resp.Close {
		t.Errorf("during the delay: status %d, close %v", resp.StatusCode, resp.Close)
	}
	close(hurry)
	if err := <-done; err != nil {
		t.Error(err)
	}
}

// TestNoDrainDelayWhileLoading checks that a server that loads its model ends at once.
func TestNoDrainDelayWhileLoading(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	stop()
	if err := New(nil, Options{DrainDelay: time.Hour}).Serve(ctx, ln); err != nil {
		t.Error(err)
	}
}
