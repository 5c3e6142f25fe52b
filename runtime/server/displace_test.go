package server

import (
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// slowBody is a request whose body does not arrive.
const slowBody = "POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n" +
	"Content-Length: 100\r\n\r\n{"

// attackers opens n connections from each of five addresses whose bodies do not arrive.
func attackers(t *testing.T, dialFrom func(from string) net.Conn, n int) {
	t.Helper()
	for i := range 5 * n {
		io.WriteString(dialFrom(fmt.Sprintf("127.0.0.%d", 2+i%5)), slowBody)
	}
}

// TestSlowBodiesGiveWay checks that connections whose bodies do not arrive are displaced by those
// of their own and of other addresses, and that requests that are answered or arrive are not.
func TestSlowBodiesGiveWay(t *testing.T) {
	inMemory(t, func(t *testing.T, n *network) {
		f := &fake{words: []string{"x"}, first: make(chan struct{}), started: make(chan struct{}, 4)}
		var j journal
		srv := n.start(t, f, Options{MaxConns: 60, ClientConns: 15, Log: j.logger(slog.LevelInfo)})
		answers := make(chan int, 4)
		for _, from := range []string{"127.0.0.2", "127.0.0.7"} {
			busy := n.dialFrom(t, from)
			go func() { answers <- ask(t, busy, rawPost(chatOnce), never) }()
			<-f.started
		}
		end := make(chan struct{})
		finish := sync.OnceFunc(func() { close(end) })
		defer finish()
		for _, from := range []string{"127.0.0.3", "127.0.0.8"} {
			c := n.dialFrom(t, from)
			go func() { answers <- arrive(t, c, end) }()
		}
		time.Sleep(250 * time.Millisecond)
		if srv.run.BodyMemory() <= 32<<10 {
			t.Fatal("the bodies do not arrive")
		}

		dial := func(from string) net.Conn {
			time.Sleep(2 * time.Millisecond) // the byte of a slow body is worth 1 ms
			return n.dialFrom(t, from)
		}
		attackers(t, dial, 40)
		for _, from := range []string{"127.0.0.9", "127.0.0.2", "127.0.0.6"} {
			for range 20 {
				if code := ask(t, dial(from), getHealth, never); code != http.StatusOK {
					t.Fatalf("%s: status %d", from, code)
				}
			}
		}
		finish()
		close(f.first)
		for range 4 {
			if code := <-answers; code != http.StatusOK {
				t.Errorf("a request that was answered or arrived: status %d", code)
			}
		}
		synctest.Wait()
		if text := j.text(); !strings.Contains(text, `"status":444`) || strings.Contains(text, `"status":400`) ||
			strings.Contains(text, `"status":408`) {
			t.Errorf("displaced requests are not logged, or as answered: %s", text)
		}
	})
}

// arrive sends a request with a body of 64 KiB, 1 KiB every 5 ms. It sends the last part at the
// end, and returns the status of the response.
func arrive(t *testing.T, c net.Conn, end <-chan struct{}) int {
	body := strings.Repeat(" ", 64<<10) + chatOnce
	request := rawPost(body)
	io.WriteString(c, request[:len(request)-len(body)])
	for at := 0; at < len(body)-len(chatOnce); at += 1 << 10 {
		io.WriteString(c, body[at:at+1<<10])
		time.Sleep(5 * time.Millisecond)
	}
	<-end
	return ask(t, c, chatOnce, never)
}

// TestSlowBodyKinds checks that no kind of request with a body that does not arrive occupies
// connections.
func TestSlowBodyKinds(t *testing.T) {
	const rest = " HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
	for name, request := range map[string]string{
		"announced":   slowBody,
		"chunked":     "POST /v1/completions" + rest + "Transfer-Encoding: chunked\r\n\r\n5\r\n{",
		"no body yet": "POST /v1/completions" + rest + "Content-Length: 9\r\n\r\n",
		"expecting":   "POST /v1/completions" + rest + "Expect: 100-continue\r\nContent-Length: 9\r\n\r\n",
		"refused":     "POST /nothing" + rest + "Content-Length: 9\r\n\r\n{",
		"closing":     "POST /nothing" + rest + "Connection: close\r\nContent-Length: 9\r\n\r\n{",
		"of GET":      "GET /health" + rest + "Content-Length: 9\r\n\r\n{",
		"large":       "POST /nothing" + rest + "Content-Length: 1000000\r\n\r\n{",
	} {
		t.Run(name, func(t *testing.T) {
			inMemory(t, func(t *testing.T, n *network) {
				health := newNetwork()
				serveHealth(t, health, n.start(t, &fake{}, Options{MaxConns: 20, ClientConns: 20}))
				for range healthConns + 1 {
					io.WriteString(health.dial(t), strings.Replace(request, "/nothing", "/health", 1))
				}
				for range 30 {
					io.WriteString(n.dial(t), request)
				}
				time.Sleep(2 * time.Millisecond) // a byte of a body is worth 1 ms
				for _, listener := range []*network{n, health} {
					if code := ask(t, listener.dial(t), getHealth, never); code != http.StatusOK {
						t.Errorf("status %d", code)
					}
				}
			})
		})
	}
}

// TestShutdownDoesNotWaitForSlowBodies checks that bodies that do not arrive do not use up the
// grace period.
func TestShutdownDoesNotWaitForSlowBodies(t *testing.T) {
	url, srv := start(t, &fake{}, Options{Grace: time.Hour, BodyTimeout: time.Hour})
	io.WriteString(dial(t, url), slowBody)
	eventually(t, "the body is read", func() bool { return srv.run.BodyMemory() > 0 })
	// The cleanup of start shuts the server down.
}
