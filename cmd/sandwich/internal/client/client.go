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

// Ask streams one completion and calls token for each chunk with text.
func (s *Server) Ask(ctx context.Context, prompt []int32, r replay.Request, token func()) (load.Stood, error) {
	resp, err := s.request(ctx, prompt, r)
	if err != nil {
		return load.Stood{}, err
	}
	defer resp.Body.Close()
	return load.Stood{}, readChunks(resp.Body, token)
}

// request requests one completion as a stream. The class is sent as a header, because servers may
// refuse unknown fields. A full queue is an *api.QueueFullError.
func (s *Server) request(ctx context.Context, prompt []int32, r replay.Request) (*http.Response, error) {
	body, err := json.Marshal(map[string]any{"prompt": prompt, "max_tokens": r.Output, "ignore_eos": true,
		"temperature": 0, "stream": true})
	if err != nil {
		return nil, err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, s.URL+"/v1/completions", bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("X-Sandwich-Priority", r.Class.String())
	// With this key, http.Transport sends a request again if the server closed a kept connection
	// before it answered, as llama-server does after five idle seconds or a hundred requests. A nil
	// value keeps the header itself from being sent.
	req.Header["Idempotency-Key"] = nil
	if s.Key != "" {
		req.Header.Set("Authorization", "Bearer "+s.Key)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil, fmt.Errorf("--url: %w", err)
	}
	if resp.StatusCode == http.StatusOK {
		return resp, nil
	}
	defer resp.Body.Close()
	if resp.StatusCode == http.StatusTooManyRequests {
		return nil, &api.QueueFullError{}
	}
	text, _ := io.ReadAll(io.LimitReader(resp.Body, maxError))
	return nil, fmt.Errorf("--url: the server answered %s (a smaller --ctx shortens the requests): %s", resp.Status,
		api.Printable(strings.TrimSpace(string(text)), ""))
}

// maxError is the number of bytes of an error that are printed.
const maxError = 500

// readChunks reads the events of a stream until its end. Each chunk with text counts as one token,
// because servers rarely join tokens. An error that the server reports in the stream is returned.
func readChunks(stream io.Reader, token func()) error {
	lines := bufio.NewScanner(stream)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		data, isData := strings.CutPrefix(lines.Text(), "data:")
		switch {
		case !isData:
		case strings.Contains(data, `"finish_reason":null`):
			token()
		case strings.Contains(data, `"error"`) && !strings.Contains(data, `"choices"`):
			data = strings.TrimSpace(data)
			return fmt.Errorf("--url: the server ended the answer with an error: %s",
				api.Printable(data[:min(len(data), maxError)], ""))
		}
	}
	return lines.Err()
}
