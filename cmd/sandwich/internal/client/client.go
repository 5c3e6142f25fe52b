// Package client sends requests to a server with the OpenAI API.
package client

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"

	"sandwich/runtime/api"
	"sandwich/tuner/measure/load"
	"sandwich/tuner/replay"
)

// Server is a load.Target that sends requests to the /v1/completions endpoint of a server.
type Server struct {
	URL string // with scheme, without a path
	Key string // "": none
}

// remoteVocab is a number of token ids that the vocabulary of every model has.
const remoteVocab = 4096

// Vocab returns a number of token ids that every server accepts.
func (*Server) Vocab() int { return remoteVocab }

// Begin does nothing, since the state of a server is unknown.
func (*Server) Begin() {}

// End does nothing.
func (*Server) End(*load.Run) {}

// Ask streams one completion.
func (s *Server) Ask(
	ctx context.Context, prompt []int32, r replay.Request, token func(),
) (load.Stood, error) {
	return load.Stood{}, s.stream(ctx, prompt, r, token)
}

// stream requests one completion. The class is sent as a header, since servers may reject unknown
// fields.
func (s *Server) stream(ctx context.Context, prompt []int32, r replay.Request, token func()) error {
	body, err := json.Marshal(map[string]any{"prompt": prompt, "max_tokens": r.Output, "ignore_eos": true,
		"temperature": 0, "stream": true})
	if err != nil {
		return err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, s.URL+"/v1/completions", bytes.NewReader(body))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("X-Sandwich-Priority", r.Class.String())
	// Sent again where the server gave up a connection that it had kept (llama-server does, after
	// five idle seconds or a hundred requests) without a word of an answer. Nil is not sent.
	req.Header["Idempotency-Key"] = nil
	if s.Key != "" {
		req.Header.Set("Authorization", "Bearer "+s.Key)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return fmt.Errorf("--url: %w", err)
	}
	defer resp.Body.Close()
	if resp.StatusCode == http.StatusTooManyRequests {
		return &api.QueueFullError{}
	}
	if resp.StatusCode != http.StatusOK {
		text, _ := io.ReadAll(io.LimitReader(resp.Body, 500))
		return fmt.Errorf("--url: the server answered %s (a smaller --ctx shortens the requests): %s", resp.Status,
			api.Printable(strings.TrimSpace(string(text)), ""))
	}
	lines := bufio.NewScanner(resp.Body)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		if data, ok := strings.CutPrefix(lines.Text(), "data:"); ok && strings.Contains(data, `"finish_reason":null`) {
			token() // a chunk is taken for a token: servers join few
		}
	}
	return lines.Err()
}
