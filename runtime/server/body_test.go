package server

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"
)

// lateBody is a request whose pieces arrive 200 ms apart.
type lateBody struct {
	name   string
	pieces []string
	want   int
}

func lateBodies() []lateBody {
	request := rawPost(strings.Repeat(" ", 8<<10) + chatOnce)
	head := len(request) - 8<<10 - len(chatOnce)
	return []lateBody{
		{"beyond the write timeout", []string{request[:head], request[head:]}, http.StatusOK},
		{"beyond the body timeout, at the rate", []string{request[:head], request[head : len(request)-9], "", "",
			request[len(request)-9:]}, http.StatusOK},
		{"never", []string{request[:head], "x"}, http.StatusRequestTimeout},
		{"no byte", []string{request[:head]}, http.StatusRequestTimeout},
		{"below the rate", append([]string{request[:head]}, strings.Split(strings.Repeat("x", 100), "")...),
			http.StatusRequestTimeout},
		{"chunked", []string{strings.Replace(request[:head], "Content-Length:", "Transfer-Encoding: chunked\r\nX:", 1),
			"5\r\nx"}, http.StatusRequestTimeout},
		{"and closes", []string{strings.Replace(request[:head], "Host", "Connection: close\r\nHost", 1), "x"},
			http.StatusRequestTimeout},
	}
}

// send writes the pieces and checks the status of the response.
func (b *lateBody) send(t *testing.T, conn net.Conn) {
	t.Helper()
	conn.SetDeadline(time.Now().Add(never))
	written := make(chan struct{})
	defer func() { <-written }()
	defer conn.Close()
	go func() {
		defer close(written)
		for _, piece := range b.pieces {
			if _, err := io.WriteString(conn, piece); err != nil {
				return // after status 408
			}
			time.Sleep(200 * time.Millisecond)
		}
	}()
	resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		t.Fatalf("the answer is lost: %v", err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != b.want {
		t.Errorf("status %d, want %d; %v, %s", resp.StatusCode, b.want, err, text)
	}
}

// TestLateBodies checks that slow bodies get an answer, also with status 408.
func TestLateBodies(t *testing.T) {
	for _, b := range lateBodies() {
		t.Run(b.name, func(t *testing.T) {
			inMemory(t, func(t *testing.T, n *network) {
				n.start(t, &fake{words: []string{"x"}},
					Options{WriteTimeout: 50 * time.Millisecond, BodyTimeout: 400 * time.Millisecond})
				b.send(t, n.dial(t))
			})
		})
	}
}

// TestLateBodiesOnSockets checks that status 408 arrives although bytes of the client are unread.
func TestLateBodiesOnSockets(t *testing.T) {
	url, _ := start(t, &fake{words: []string{"x"}}, Options{BodyTimeout: 100 * time.Millisecond})
	for _, b := range lateBodies() {
		if b.want == http.StatusOK {
			continue // depends on the speed of the machine
		}
		t.Run(b.name, func(t *testing.T) {
			t.Parallel()
			b.send(t, dial(t, url))
		})
	}
}

// TestRefusedSlowBody checks that a refused request is answered before its body arrives, and that
// the connection can be reused if the body arrives.
func TestRefusedSlowBody(t *testing.T) {
	const refused = "POST /nothing HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\n\r\n{"
	t.Run("never arrives", func(t *testing.T) {
		inMemory(t, func(t *testing.T, n *network) {
			n.start(t, &fake{}, Options{})
			if code := ask(t, n.dial(t), refused, never); code != http.StatusNotFound {
				t.Errorf("status %d", code)
			}
		})
	})
	t.Run("arrives", func(t *testing.T) {
		inMemory(t, func(t *testing.T, n *network) {
			n.start(t, &fake{}, Options{})
			c := n.dial(t)
			io.WriteString(c, refused)
			for _, next := range []struct {
				text string
				want int
			}{{"}\n", http.StatusNotFound}, {getHealth, http.StatusOK}} {
				if code := ask(t, c, next.text, never); code != next.want {
					t.Errorf("%q: status %d, want %d", next.text, code, next.want)
				}
			}
		})
	})
}
