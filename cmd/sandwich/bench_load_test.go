package main

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"encoding/xml"
	"errors"
	"io"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sandwich/cmd/sandwich/internal/cli/exit"
	"sandwich/cmd/sandwich/internal/cli/root"
	"sandwich/tuner/measure/load"
)

// execute runs a command line in this process.
func execute(t *testing.T, args ...string) (out, failure string, code int) {
	t.Helper()
	var text bytes.Buffer
	command := root.New(verbs()...)
	command.SetArgs(args)
	command.SetOut(&text)
	if err := command.ExecuteContext(t.Context()); err != nil {
		return text.String(), err.Error(), exit.Code(err)
	}
	return text.String(), "", exit.OK
}

// loadArgs returns a short run of bench load, or of its subcommand verb, with more arguments.
func loadArgs(verb string, more ...string) []string {
	args := []string{"bench", "load"}
	if verb != "" {
		args = append(args, verb)
	}
	return append(append(args, "--duration", "2s", "--reactive", "120", "--proactive", "240", "--ctx",
		"96"), more...)
}

// TestBenchLoad checks that real runs under two policies and the same arrivals on the virtual clock
// give rows for both classes, that a recording can be replayed, and that the picture is XML with
// all requests.
func TestBenchLoad(t *testing.T) {
	if testing.Short() {
		t.Skip("sends requests for seconds; run without -short")
	}
	dir := t.TempDir()
	arrivals, picture := filepath.Join(dir, "a.jsonl"), filepath.Join(dir, "l.svg")
	out, _, code := execute(t, loadArgs("simulate", "--policy", "sandwich,fcfs", "--record", arrivals, "--format",
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

// TestBenchLoadGoals checks that every goal has a row with its bound in JSON, CSV and the table.
func TestBenchLoadGoals(t *testing.T) {
	if testing.Short() {
		t.Skip("sends requests for seconds; run without -short")
	}
	args := loadArgs("goal", "--duration", "1s", "--aging", "1s")
	out, _, code := execute(t, append(args, "halt", "quanta", "open", "--format", "json")...)
	var figures []load.Figure
	if err := json.Unmarshal([]byte(out), &figures); code != 0 || err != nil {
		t.Fatalf("exit code %d: %v\n%s", code, err, out)
	}
	bound := map[string]bool{}
	for _, f := range figures {
		bound[f.Goal] = bound[f.Goal] || f.Bound > 0
	}
	if len(bound) != 3 || !bound[load.GoalHalt] || !bound[load.GoalQuanta] || !bound[load.GoalOpen] {
		t.Errorf("%+v", figures)
	}
	out, _, code = execute(t, append(args, "backlog", "--policy", "sandwich,preempt", "--format", "csv")...)
	table, err := csv.NewReader(strings.NewReader(out)).ReadAll()
	if code != 0 || err != nil || len(table) != 9 || table[1][0] != "backlog" || table[5][1] != "preempt" {
		t.Errorf("exit code %d, %v\n%s", code, err, out)
	}
}

// TestBenchLoadSweep checks that all multiples of the rate serve the same requests, that the part
// within the level rises with the level, and that the picture has a line for each class. TestSweep
// of tuner/measure/load checks the effect of the rate, with times that are not measured.
func TestBenchLoadSweep(t *testing.T) {
	if testing.Short() {
		t.Skip("sends requests for seconds; run without -short")
	}
	for _, by := range load.Sweeps() {
		picture := filepath.Join(t.TempDir(), "s.svg")
		out, _, code := execute(t, loadArgs("sweep", by, "--format", "json", "--svg", picture,
			"--slo-ttft", "50ms", "--slo-tpot", "20ms")...)
		var rows []load.SweepRow
		if err := json.Unmarshal([]byte(out), &rows); code != 0 || err != nil || len(rows) < 12 {
			t.Fatalf("exit code %d, %d rows: %v\n%s", code, len(rows), err, out)
		}
		first, last := rows[0], rows[len(rows)-2]
		if first.Class != "reactive" || last.Class != "reactive" || first.Requests != last.Requests ||
			first.Scale >= 1 || last.Scale <= 1 {
			t.Errorf("%+v\n%+v", first, last)
		}
		ratio := last.Scale / first.Scale
		switch by {
		case load.ByRate:
			if math.Abs(last.Rate/first.Rate/ratio-1) > 1e-3 || last.TTFT.P90 <= 0 {
				t.Errorf("%+v\n%+v", first, last)
			}
		case load.BySLO:
			if math.Abs(last.MostTTFT/first.MostTTFT/ratio-1) > 1e-3 || last.TTFT != first.TTFT ||
				last.Attainment < first.Attainment {
				t.Errorf("%+v\n%+v", first, last)
			}
		}
		svg, err := os.ReadFile(picture)
		if err != nil || strings.Count(string(svg), "<polyline") != 2 {
			t.Errorf("the picture: %v\n%.2000s", err, svg)
		}
	}
}

// TestBenchLoadDevices checks that the devices of a built-in machine run with the policies.
func TestBenchLoadDevices(t *testing.T) {
	out, failure, code := execute(t, loadArgs("devices", "core-ultra-125h", "--model", "llama-3.2-3b", "--lanes",
		"gpu", "--format", "csv")...)
	table, err := csv.NewReader(strings.NewReader(out)).ReadAll()
	if code != 0 || err != nil || len(table) != 3 || !strings.Contains(table[1][0], "on gpu") {
		t.Errorf("exit code %d, %s, %v\n%s", code, failure, err, out)
	}
}

func TestBenchLoadBadInput(t *testing.T) {
	bad := filepath.Join(t.TempDir(), "bad.jsonl")
	if err := os.WriteFile(bad, []byte(`{"at": 1, "class": "urgent", "prompt": 1, "output": 1}`), 0o644); err != nil {
		t.Fatal(err)
	}
	for want, args := range map[string][]string{ // the verb, and its arguments
		"policy":          {"", "--policy", "beauty"},
		"rate":            {"", "--reactive", "-1"},
		"no request":      {"", "--reactive", "0", "--proactive", "0"},
		"set":             {"", "--reactive-set", "wikipedia"},
		"duration":        {"", "--duration", "0s"},
		"--url":           {"", "--url", "localhost:8080"},
		"flag --url":      {"simulate", "--url", "http://localhost:1"},
		"trace line 1":    {"", "--replay", bad},
		"--replay":        {"", "--replay", bad + ".missing"},
		"flag --replay":   {"goodput", "3", "--replay", bad},
		"--quantum":       {"", "--quantum", "NaN"},
		"--op-bound":      {"", "--op-bound", "-1ms"},
		"--ctx":           {"", "--ctx", "1"},
		"\"moods\"":       {"sweep", "moods"},
		"peace":           {"goal", "peace"},
		"--url out":       {"goal", "halt", "--url", "http://localhost:1"},
		"flag --simulate": {"goal", "halt", "--simulate"},
		"--seeds 0":       {"goal", "open", "--seeds", "0"},
		"flag --seeds":    {"", "--seeds", "3"},
		"or two":          {"devices", "m4pro", "--lanes", "a,b,c"},
		"missing":         {"devices", "m4pro"},
		"of runs":         {"goodput", "30"},
	} {
		_, text, code := execute(t, loadArgs(args[0], args[1:]...)...)
		if code != exit.Input || !strings.Contains(text, want) {
			t.Errorf("%v: exit code %d, %q", args, code, text)
		}
	}
}
