package main

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"encoding/xml"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sandwich/tuner/measure/load"
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
	var rows []load.Row
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
