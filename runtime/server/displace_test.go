package server

import (
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"
)

// slowBody is a request whose body does not arrive.
const slowBody = "POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n" +
	"Content-Length: 100\r\n\r\n{"

// attackers opens n connections from each of five addresses whose bodies do not arrive.
func attackers(t *testing.T, url string, n int) (all []net.Conn) {
	t.Helper()
	for i := range 5 * n {
		c := dialFrom(t, fmt.Sprintf("127.0.0.%d", 2+i%5), url)
		io.WriteString(c, slowBody)
		all = append(all, c)
	}
	return all
}

// TestSlowBodiesGiveWay checks that connections whose bodies do not arrive are displaced by those
// of their own and of other addresses, and that requests that are answered or arrive are not.
func TestSlowBodiesGiveWay(t *testing.T) {
	f := &fake{words: []string{"x"}, first: make(chan struct{}), started: make(chan struct{}, 4)}
	var j journal
	url, srv := start(t, f, Options{MaxConns: 60, ClientConns: 15, Log: j.logger(slog.LevelInfo)})
	answers := make(chan int, 4)
	for _, from := range []string{"127.0.0.2", "127.0.0.7"} {
		busy := dialFrom(t, from, url)
		go func() { answers <- ask(t, busy, rawPost(chatOnce), time.Minute) }()
		<-f.started
	}
	arrives, end := make(chan struct{}), make(chan struct{})
	for _, from := range []string{"127.0.0.3", "127.0.0.8"} {
		c := dialFrom(t, from, url)
		go func() {
			body := strings.Repeat(" ", 64<<10) + chatOnce
			request := rawPost(body)
			io.WriteString(c, request[:len(request)-len(body)])
			for n := 0; n < len(body)-len(chatOnce); n += 1 << 10 {
				io.WriteString(c, body[n:n+1<<10])
				if n == 8<<10 {
					arrives <- struct{}{}
				}
				time.Sleep(5 * time.Millisecond)
			}
			<-end
			answers <- ask(t, c, chatOnce, time.Minute)
		}()
		<-arrives
	}
	eventually(t, "bodies arrive", func() bool { return srv.run.BodyMemory() > 32<<10 })

	attackers(t, url, 40)
	for _, from := range []string{"127.0.0.9", "127.0.0.2", "127.0.0.6"} {
		for range 20 {
			if code := ask(t, dialFrom(t, from, url), getHealth, 20*time.Second); code != http.StatusOK {
				t.Fatalf("%s: status %d", from, code)
			}
		}
	}
	close(end)
	close(f.first)
	for range 4 {
		if code := <-answers; code != http.StatusOK {
			t.Errorf("a request that was answered or arrived: status %d", code)
		}
	}
	eventually(t, "displaced requests are logged", func() bool { return strings.Contains(j.text(), `"status":444`) })
	if text := j.text(); strings.Contains(text, `"status":400`) || strings.Contains(text, `"status":408`) {
		t.Errorf("displaced requests are logged as answered: %s", text)
	}
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
			t.Parallel()
			url, health, _ := crowded(t, &fake{}, Options{MaxConns: 20, ClientConns: 20})
			for range healthConns + 1 {
				io.WriteString(dial(t, health), strings.Replace(request, "/nothing", "/health", 1))
			}
			for range 30 {
				io.WriteString(dial(t, url), request)
			}
			for _, listener := range []string{url, health} {
				code := 0
				for range 50 { // until the server has read what was sent
					if code = ask(t, dial(t, listener), getHealth, 20*time.Second); code == http.StatusOK {
						break
					}
					time.Sleep(10 * time.Millisecond)
				}
				if code != http.StatusOK {
					t.Errorf("status %d", code)
				}
			}
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
