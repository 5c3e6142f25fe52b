package client

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync/atomic"
	"testing"

	"sandwich/tuner/replay"
)

// TestAskAgainOnAKeptConnection checks that a request is sent once more, on another connection, if
// the server closes an idle connection at the moment of the request.
func TestAskAgainOnAKeptConnection(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	var connections, answers atomic.Int32
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			connections.Add(1)
			go func() {
				defer c.Close()
				in := bufio.NewReader(c)
				for n := range 2 {
					req, err := http.ReadRequest(in)
					if err != nil || n == 1 { // the second one finds it closed
						return
					}
					body := `data: {"choices":[{"text":"a","finish_reason":null}]}` + "\n\ndata: [DONE]\n\n"
					if _, sent := req.Header["Idempotency-Key"]; sent {
						body = ""
					}
					_, _ = io.Copy(io.Discard, req.Body)
					answers.Add(1)
					fmt.Fprintf(c, "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nContent-Length: %d\r\n\r\n%s",
						len(body), body)
				}
			}()
		}
	}()
	s := &Server{URL: "http://" + l.Addr().String()}
	for i := range 3 {
		tokens := 0
		_, err := s.Ask(t.Context(), []int32{1, 2, 3}, replay.Request{Prompt: 3, Output: 1}, func() { tokens++ })
		if err != nil || tokens != 1 {
			t.Fatalf("request %d: %d tokens, %v", i, tokens, err)
		}
	}
	if connections.Load() != 3 || answers.Load() != 3 {
		t.Errorf("%d connections, %d answers", connections.Load(), answers.Load())
	}
}
