package client

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"sandwich/tuner/measure/load"
	"sandwich/tuner/replay"
)

// TestOfferToAServer checks that every server with OpenAI's API receives the same requests, with
// their class in a header, that a full queue is a recorded outcome, and that any other error ends
// the run.
func TestOfferToAServer(t *testing.T) {
	classes := make(chan string, 100)
	full := true
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var body struct {
			Prompt []int
			Stream bool
		}
		if err := json.NewDecoder(r.Body).Decode(&body); err != nil || len(body.Prompt) == 0 || !body.Stream ||
			r.Header.Get("Authorization") != "Bearer k" {
			http.Error(w, "no", http.StatusTeapot)
			return
		}
		classes <- r.Header.Get("X-Sandwich-Priority")
		if full && r.Header.Get("X-Sandwich-Priority") == "proactive" {
			http.Error(w, "full", http.StatusTooManyRequests)
			return
		}
		io.WriteString(w, "data: {\"choices\":[{\"text\":\"a\",\"finish_reason\":null}]}\n\n"+
			"data: {\"choices\":[{\"text\":\"b\",\"finish_reason\":null}]}\n\n"+
			"data: {\"choices\":[{\"text\":\"\",\"finish_reason\":\"length\"}]}\n\ndata: [DONE]\n\n")
	}))
	defer server.Close()
	tr := replay.Trace{{Prompt: 5, Output: 2}, {At: time.Millisecond, Class: 1, Prompt: 7, Output: 2}}
	run, err := load.Offer(t.Context(), tr, 1, &Server{server.URL, "k"})
	if err != nil || run.Outcomes[0].Tokens != 2 || !run.Outcomes[1].Rejected {
		t.Fatalf("%+v: %v", run, err)
	}
	if a, b := <-classes, <-classes; a == b {
		t.Errorf("both requests came as %s", a)
	}
	if _, err := load.Offer(t.Context(), tr, 1, &Server{server.URL, "wrong"}); err == nil ||
		!strings.Contains(err.Error(), "418") {
		t.Errorf("an error of the server is %v", err)
	}
}

// TestErrorInStream checks that an error after the header of a stream fails the request.
func TestErrorInStream(t *testing.T) {
	const chunk = "data: {\"choices\":[{\"text\":\"\\\"error\\\"\",\"finish_reason\":null}]}\n\n"
	tokens := 0
	count := func() { tokens++ }
	err := readChunks(strings.NewReader(chunk+"data: {\"error\":{\"message\":\"lost\"}}\n\n"), count)
	if err == nil || !strings.Contains(err.Error(), "lost") || tokens != 1 {
		t.Errorf("%d tokens, %v", tokens, err)
	}
	if err := readChunks(strings.NewReader(chunk+"data: [DONE]\n\n"), count); err != nil || tokens != 2 {
		t.Errorf("%d tokens, %v", tokens, err)
	}
}
