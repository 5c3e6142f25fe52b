package server

import (
	"context"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"sandwich/runtime/api"
	"sandwich/runtime/server/exchange"
)

// reading is a Generator with a long prefill.
type reading struct{ fake }

func (g *reading) Generate(ctx context.Context, r api.Request, emit func(api.Token) error) (api.Result, error) {
	r.Queued(api.Queue{Ahead: 1, Wait: 20 * time.Millisecond, First: 90 * time.Millisecond})
	for i := 1; i <= 8; i++ {
		time.Sleep(10 * time.Millisecond)
		r.Progress(api.Progress{Total: 80, Done: 10 * i, Cached: 5, Took: 10 * time.Millisecond})
	}
	return g.fake.Generate(ctx, r, emit)
}

// TestProgress checks that a stream with a long prompt reports progress without changing its text
// and events, that its header predicts the first token, and that other answers are unaffected.
func TestProgress(t *testing.T) { synctest.Test(t, testProgress) }

func testProgress(t *testing.T) {
	s := New(&reading{fake{words: []string{"a", "b"}}}, Options{Heartbeat: 50 * time.Millisecond})
	for path, c := range map[string]struct{ body, text, end string }{
		chatPath:          {chatOnce, `"content":"a"`, "data: [DONE]\n\n"},
		"/v1/completions": {`{"prompt":"x"}`, `"text":"a"`, "data: [DONE]\n\n"},
		responsesPath:     {`{"input":"x"}`, `"delta":"a"`, `"type":"response.completed"}` + "\n\n"},
		messagesPath: {`{"messages":[{"role":"user","content":"x"}]}`, `"text":"a"`, `{"type":"message_stop"}` +
			"\n\n"},
		"/api/generate": {`{"prompt":"x"}`, `"response":"a"`, "}\n"},
	} {
		var w *httptest.ResponseRecorder
		for _, stream := range []string{"true", "false"} {
			w = post(t, s, path, strings.TrimSuffix(c.body, "}")+`,"stream":`+stream+`}`)
			n := strings.Count(w.Body.String(), `"prompt_progress":{"total":80,"cache":5,"processed":`)
			if streams := stream == "true"; w.Code != 200 || streams != (n >= 2) ||
				w.Header().Get(exchange.FirstTokenHeader) != "0.090" ||
				w.Header().Get(exchange.QueuePlaceHeader) != "1" ||
				streams && (!strings.Contains(w.Body.String(), c.text) || !strings.HasSuffix(w.Body.String(), c.end)) {
				t.Errorf("%s, stream %s: %d, %d events of progress, %v\n%s", path, stream, w.Code, n, w.Header(),
					w.Body)
			}
		}
	}
	// Clients that ask for progress get each step, also for short prompts; chunks keep their
	// format.
	s = New(&reading{fake{words: []string{"a", "b"}}}, Options{Heartbeat: time.Minute})
	w := post(t, s, chatPath, strings.TrimSuffix(chatStream, "}")+`,"return_progress":true}`)
	text, parts := "", 0
	for i, c := range chunks(t, w.Body) {
		piece, _ := at(c, "choices", 0, "delta", "content").(string)
		text += piece
		if done, ok := at(c, "prompt_progress", "processed").(float64); ok {
			if parts++; done != float64(10*parts) {
				t.Errorf("chunk %d: %v", i, c)
			}
		}
		if (at(c, "choices", 0, "delta", "role") == "assistant") != (i == 0) {
			t.Errorf("chunk %d: %v", i, c)
		}
	}
	if text != "ab" || parts != 8 {
		t.Errorf("%q after %d parts", text, parts)
	}
	// Anthropic's events stay in order: progress is a ping after the start of the message.
	w = post(t, New(&reading{fake{words: []string{"a"}}}, Options{Heartbeat: 50 * time.Millisecond}), messagesPath,
		`{"messages":[{"role":"user","content":"x"}],"stream":true}`)
	kinds := ""
	for _, e := range events(t, w.Body.String()) {
		if kind := e["type"].(string); kind != "ping" {
			kinds += kind + " "
		}
	}
	if kinds != "message_start content_block_start content_block_delta content_block_stop message_delta message_stop " {
		t.Errorf("%s", kinds)
	}
}
