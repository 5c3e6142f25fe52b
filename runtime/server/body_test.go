package server

import (
	"bufio"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"
)

// TestLateBodies checks that slow bodies get an answer, also with status 408.
func TestLateBodies(t *testing.T) {
	f := &fake{words: []string{"x"}}
	url, _ := start(t, f, Options{WriteTimeout: 50 * time.Millisecond, BodyTimeout: 400 * time.Millisecond})
	request := rawPost(strings.Repeat(" ", 8<<10) + chatOnce)
	head := len(request) - 8<<10 - len(chatOnce)
	for _, c := range []struct {
		name   string
		pieces []string
		want   int
	}{
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
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			conn := dial(t, url)
			conn.SetDeadline(time.Now().Add(time.Minute))
			go func() {
				for _, piece := range c.pieces {
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
			if err != nil || resp.StatusCode != c.want {
				t.Errorf("status %d, want %d; %v, %s", resp.StatusCode, c.want, err, text)
			}
		})
	}
}

// TestRefusedSlowBody checks that a refused request is answered before its body arrives, and that
// the connection can be reused if the body arrives.
func TestRefusedSlowBody(t *testing.T) {
	url, _ := start(t, &fake{}, Options{})
	const refused = "POST /nothing HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\n\r\n{"
	t.Run("never arrives", func(t *testing.T) {
		t.Parallel()
		if code := ask(t, dial(t, url), refused, time.Minute); code != http.StatusNotFound {
			t.Errorf("status %d", code)
		}
	})
	t.Run("arrives", func(t *testing.T) {
		t.Parallel()
		c := dial(t, url)
		io.WriteString(c, refused)
		for _, next := range []struct {
			text string
			want int
		}{{"}\n", http.StatusNotFound}, {getHealth, http.StatusOK}} {
			if code := ask(t, c, next.text, time.Minute); code != next.want {
				t.Errorf("%q: status %d, want %d", next.text, code, next.want)
			}
		}
	})
}
