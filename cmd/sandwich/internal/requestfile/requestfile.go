// Package requestfile runs requests from files as a server would, without a network.
package requestfile

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"path/filepath"
	"strings"

	"sandwich/profiles/retention"
	"sandwich/runtime/server"
	"sandwich/runtime/server/generation"
)

// maxRequest limits the size of a file in bytes.
const maxRequest = 64 << 20

// Request is a body for an endpoint of the server.
type Request struct {
	endpoint string
	body     []byte
}

// Read reads a file. A file NAME.json is the body of a request to an endpoint; its settings for
// streams, formats and tool choice are removed. Any other file is a text to continue.
func Read(file, endpoint string) (r Request, err error) {
	data, err := retention.ReadRegular(file, maxRequest)
	if err != nil {
		return r, err
	}
	fields := map[string]any{"prompt": string(data)}
	if filepath.Ext(file) == ".json" {
		fields = nil
		if err := json.Unmarshal(data, &fields); err != nil || fields == nil {
			return r, fmt.Errorf("%s is not a JSON object; give the body of a request", file)
		}
	} else {
		endpoint = "/v1/completions"
	}
	for _, name := range []string{"stream", "stream_options", "n", "response_format", "tool_choice", "stop"} {
		delete(fields, name)
	}
	if strings.HasPrefix(endpoint, "/v1/messages") {
		fields["max_tokens"] = 1 // required
	}
	r.endpoint = endpoint
	r.body, err = json.Marshal(fields)
	return r, err
}

// Run answers a request with a generator. It returns an error if the request is refused.
func (r *Request) Run(ctx context.Context, g generation.Generator) error {
	h, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://localhost"+r.endpoint, bytes.NewReader(r.body))
	if err != nil {
		return err
	}
	h.Header.Set("Content-Type", "application/json")
	out := &response{header: http.Header{}}
	server.New(g, server.Options{}).ServeHTTP(out, h)
	if err := ctx.Err(); err != nil {
		return err
	}
	if out.status != http.StatusOK {
		return fmt.Errorf("the request is refused with status %d: %s", out.status, bytes.TrimSpace(out.body.Bytes()))
	}
	return nil
}

// response is an http.ResponseWriter in memory.
type response struct {
	header http.Header
	status int
	body   bytes.Buffer
}

func (r *response) Header() http.Header { return r.header }

func (r *response) WriteHeader(status int) {
	if r.status == 0 {
		r.status = status
	}
}

func (r *response) Write(p []byte) (int, error) {
	r.WriteHeader(http.StatusOK)
	return r.body.Write(p)
}
