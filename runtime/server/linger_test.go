package server

import (
	"bufio"
	"fmt"
	"io"
	"log"
	"net/http"
	"strings"
	"testing"
	"time"
)

var discardLog = log.New(io.Discard, "", 0)

func rawPost(body string) string {
	return fmt.Sprintf("POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"+
		"Content-Length: %d\r\n\r\n%s", len(body), body)
}

// A client that writes its whole request before it reads receives the error response, not a reset.
func TestRefusalReachesClientThatWritesFirst(t *testing.T) {
	open, _ := start(t, &fake{words: []string{"x"}}, Options{})
	keyed, _ := start(t, &fake{words: []string{"x"}}, Options{APIKeys: []string{"secret"}})
	loading, _ := start(t, nil, Options{})
	const size = 24 << 20 // more than a body may have, and than sockets buffer
	announced := fmt.Sprintf("Content-Length: %d\r\n\r\n", size)
	chunked := fmt.Sprintf("Transfer-Encoding: chunked\r\n\r\n%x\r\n", size)
	rest := strings.Repeat(" ", size)
	const chat = "/v1/chat/completions"
	for name, c := range map[string]struct {
		url, path, framing string
		want               int
	}{
		"too large":          {open, chat, announced, http.StatusRequestEntityTooLarge},
		"too large, chunked": {open, chat, chunked, http.StatusRequestEntityTooLarge},
		"and closes":         {open, chat, "Connection: close\r\n" + announced, http.StatusRequestEntityTooLarge},
		"and no key":         {keyed, chat, "Connection: close\r\n" + announced, http.StatusUnauthorized},
		"no such path":       {open, "/v2/nothing", announced, http.StatusNotFound},
		"no key":             {keyed, "/v1/completions", announced, http.StatusUnauthorized},
		"loading":            {loading, "/v1/completions", announced, http.StatusServiceUnavailable},
	} {
		t.Run(name, func(t *testing.T) {
			conn := dial(t, c.url)
			conn.SetDeadline(time.Now().Add(never))
			const head = "POST %s HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n%s"
			_, err := fmt.Fprintf(conn, head, c.path, c.framing)
			if err == nil {
				_, err = io.WriteString(conn, rest)
			}
			if err != nil {
				t.Fatalf("the server does not take what is sent: %v", err)
			}
			resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
			if err != nil {
				t.Fatalf("the answer is lost: %v", err)
			}
			defer resp.Body.Close()
			if _, err := io.ReadAll(resp.Body); err != nil || resp.StatusCode != c.want {
				t.Errorf("status %d, want %d; %v", resp.StatusCode, c.want, err)
			}
		})
	}
}

// A client that never ends its refused body is disconnected after a bounded time.
func TestLingerIsBounded(t *testing.T) {
	url, _ := start(t, &fake{words: []string{"x"}}, Options{})
	conn := dial(t, url)
	conn.SetDeadline(time.Now().Add(never))
	const endless = "POST /nothing HTTP/1.1\r\nHost: x\r\nContent-Length: 1000000000\r\n\r\n"
	if _, err := io.WriteString(conn, endless); err != nil {
		t.Fatal(err)
	}
	begun := time.Now()
	for {
		if _, err := io.WriteString(conn, "x"); err != nil {
			break
		}
		time.Sleep(10 * time.Millisecond)
	}
	if took := time.Since(begun); took > never/2 {
		t.Errorf("the connection was open for %v", took)
	}
}
