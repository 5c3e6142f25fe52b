package main

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"encoding/xml"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"sandwich/tuner/trace"
)

// execute runs a command line in this process.
func execute(t *testing.T, args ...string) (out, failure string, code int) {
	t.Helper()
	var text bytes.Buffer
	root := newRoot()
	root.SetArgs(args)
	root.SetOut(&text)
	if err := root.ExecuteContext(t.Context()); err != nil {
		return text.String(), err.Error(), exitCode(err)
	}
	return text.String(), "", exitOK
}

func loadArgs(more ...string) []string {
	return append([]string{"bench", "load", "--duration", "2s", "--reactive", "120", "--proactive", "240", "--ctx",
		"96"}, more...)
}

// TestBenchLoad: real runs under two policies and the same arrivals on the virtual clock give rows
// for both classes; what was recorded is offered again; the picture is XML with all requests.
func TestBenchLoad(t *testing.T) {
	if testing.Short() {
		t.Skip("offers requests for seconds")
	}
	dir := t.TempDir()
	arrivals, picture := filepath.Join(dir, "a.jsonl"), filepath.Join(dir, "l.svg")
	out, _, code := execute(t, loadArgs("--policy", "sandwich,fcfs", "--simulate", "--record", arrivals, "--format",
		"json", "--svg", picture)...)
	var rows []loadRow
	if err := json.Unmarshal([]byte(out), &rows); code != 0 || err != nil || len(rows) != 8 {
		t.Fatalf("exit code %d, %d rows: %v\n%s", code, len(rows), err, out)
	}
	for i, r := range rows {
		wantClass, wantClock := []string{"reactive", "proactive"}[i%2], []string{"wall", "virtual"}[i/2%2]
		if r.Class != wantClass || r.Clock != wantClock || r.Finished != r.Requests ||
			r.Requests != rows[i%2].Requests || r.TTFT.Mean <= 0 || r.TTFT.P50 > r.TTFT.P99 {
			t.Errorf("row %d is %+v", i, r)
		}
	}
	svg, err := os.ReadFile(picture)
	if err != nil || strings.Count(string(svg), "tokens in") < rows[0].Requests+rows[1].Requests {
		t.Errorf("the picture lacks requests: %v", err)
	}
	for d := xml.NewDecoder(bytes.NewReader(svg)); ; {
		if _, err := d.Token(); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
	}
	out, _, code = execute(t, "bench", "load", "--replay", arrivals, "--ctx", "96", "--format", "csv")
	table, err := csv.NewReader(strings.NewReader(out)).ReadAll()
	if code != 0 || err != nil || len(table) != 3 || table[1][2] != "reactive" {
		t.Errorf("replayed: exit code %d, %v\n%s", code, err, out)
	}
}

// TestBenchLoadOfAServer: any server with OpenAI's API is offered the same, and is told the class
// by a header; a full queue is an outcome, another error ends the run.
func TestBenchLoadOfAServer(t *testing.T) {
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
	tr := trace.Trace{{Prompt: 5, Output: 2}, {At: time.Millisecond, Class: 1, Prompt: 7, Output: 2}}
	run, err := offer(t.Context(), tr, 1, &remote{server.URL, "k"})
	if err != nil || run.Outcomes[0].Tokens != 2 || !run.Outcomes[1].Rejected {
		t.Fatalf("%+v: %v", run, err)
	}
	if a, b := <-classes, <-classes; a == b {
		t.Errorf("both requests came as %s", a)
	}
	if _, err := offer(t.Context(), tr, 1, &remote{server.URL, "wrong"}); err == nil ||
		!strings.Contains(err.Error(), "418") {
		t.Errorf("an error of the server is %v", err)
	}
}

func TestBenchLoadBadInput(t *testing.T) {
	bad := filepath.Join(t.TempDir(), "bad.jsonl")
	if err := os.WriteFile(bad, []byte(`{"at": 1, "class": "urgent", "prompt": 1, "output": 1}`), 0o644); err != nil {
		t.Fatal(err)
	}
	for want, args := range map[string][]string{
		"policy":       {"--policy", "beauty"},
		"rate":         {"--reactive", "-1"},
		"no request":   {"--reactive", "0", "--proactive", "0"},
		"set":          {"--reactive-set", "wikipedia"},
		"duration":     {"--duration", "0s"},
		"--url":        {"--url", "localhost:8080"},
		"--simulate":   {"--url", "http://localhost:1", "--simulate"},
		"trace line 1": {"--replay", bad},
		"--replay":     {"--replay", bad + ".missing"},
		"--goodput":    {"--goodput", "3", "--replay", bad},
		"--quantum":    {"--quantum", "NaN"},
		"--op-bound":   {"--op-bound", "-1ms"},
		"--ctx":        {"--ctx", "1"},
	} {
		_, text, code := execute(t, loadArgs(args...)...)
		if code != exitInput || !strings.Contains(text, want) {
			t.Errorf("%v: exit code %d, %q", args, code, text)
		}
	}
}
