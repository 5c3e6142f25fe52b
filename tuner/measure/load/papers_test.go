package load

import (
	"math"
	"os"
	"strings"
	"testing"
	"time"

	"sandwich/runtime/sched"
	"sandwich/tuner/replay"
)

// TestXPUParams reads the file of the repository, and files with missing or invalid values.
func TestXPUParams(t *testing.T) {
	text, err := os.ReadFile("../../../docs/papers.params.yaml")
	if err != nil {
		t.Fatal(err)
	}
	p, err := ParseXPUParams(text)
	if err != nil {
		t.Fatal(err)
	}
	if p.Models != [2]string{"llama-3.2-3b", "llama-3.1-8b"} || p.Chunk != 256 || len(p.Sets) != 3 ||
		p.Reduced[1][2] != 96.70 || p.Pending != 0.048 || p.Minutes != 15 {
		t.Errorf("%+v", p)
	}
	for old, c := range map[string][2]string{
		"pending: {value: 0.048":        {"pending: {value: none", "agentxpu.pending with a positive number"},
		"value: [1, 3, 5]":              {"value: [1, -3, 5]", "agentxpu.reactive with a list of at least 1"},
		"value: [91.61, 93.84, 96.01]":  {"value: [91.61, 93.84]", "agentxpu.reduced_small with a list of at least 3"},
		"small: {value: llama-3.2-3b":   {"small: {value: 7", "agentxpu.small with a text"},
		"[proactivebench, samsum, cnn-": {"[proactivebench, cnn-", "agentxpu.figure8_sets with a list of 3 texts"},
		"agentxpu:":                     {"other:", "has no agentxpu."},
		"smepilot:":                     {"\tx", "is invalid"},
	} {
		bad := strings.Replace(string(text), old, c[0], 1)
		if bad == string(text) {
			t.Fatalf("the file has no %q", old)
		}
		if _, err := ParseXPUParams([]byte(bad)); err == nil || !strings.Contains(err.Error(), c[1]) {
			t.Errorf("%s: %v, want %q", c[0], err, c[1])
		}
	}
}

// TestRateAt checks the interpolation of rates.
func TestRateAt(t *testing.T) {
	rates := []float64{5, 10, 20}
	for _, c := range []struct {
		latency []float64
		want    float64
	}{{[]float64{0.2, 0.6, 1.4}, 15}, {[]float64{0.2, 0.3, 0.4}, 0}, {[]float64{2, 3, 4}, 0},
		{[]float64{0.5, 1.5, 9}, 7.5}, {nil, 0}} {
		if got := rateAt(1, rates, c.latency); math.Abs(got-c.want) > 1e-9 {
			t.Errorf("%v: %g requests a minute, want %g", c.latency, got, c.want)
		}
	}
}

// TestPaperRows checks the rows of figures 9 and 10 of requests with given times, which are
// multiplied by the factor.
func TestPaperRows(t *testing.T) {
	text, err := os.ReadFile("../../../docs/papers.params.yaml")
	if err != nil {
		t.Fatal(err)
	}
	x := &XPU{Figures: []string{"9", "10"}}
	if x.Params, err = ParseXPUParams(text); err != nil {
		t.Fatal(err)
	}
	r := xpuRun{XPU: x, model: XPUModel{Name: "m"}, factor: 10}
	report := func(scale time.Duration) *replay.Report {
		one := func(c sched.Class, start, first, end time.Duration) replay.Outcome {
			return replay.Outcome{Request: replay.Request{At: time.Second, Class: c, Prompt: 5, Output: 2}, Tokens: 2,
				Started: time.Second + start*scale, First: time.Second + first*scale, End: time.Second + end*scale}
		}
		return &replay.Report{Elapsed: time.Second, Outcomes: []replay.Outcome{
			one(sched.Reactive, 10, 30, 60), one(sched.Proactive, 20, 60, 120)}}
	}
	l := xpuLoad{set: "mixed", reactive: 1, proactive: 6}
	base, ours := report(4*time.Millisecond), report(time.Millisecond)
	r.mixed(l, base, ours, 0, 1)
	r.breakdown(l, base, ours)
	for i, want := range []PaperRow{
		{What: "reactive latency, mean, % less", Baseline: 2.4, Ours: 0.6, Change: 75, Paper: "96.23 %"},
		{What: "reactive latency, P90, % less", Baseline: 2.4, Ours: 0.6, Change: 75, Paper: "more than of the mean"},
		{What: "proactive latency, mean, % less", Baseline: 4.8, Ours: 1.2, Change: 75, Paper: "34.4 %"},
		{What: "reactive pending, mean, % less", Baseline: 0.4, Ours: 0.1, Change: 75, Paper: "0.048 s"},
		{What: "reactive prefill, mean, % less", Baseline: 0.8, Ours: 0.2, Change: 75},
		{What: "reactive decode, mean, % less", Baseline: 1.2, Ours: 0.3, Change: 75},
		{What: "proactive pending, mean, % less", Baseline: 0.8, Ours: 0.2, Change: 75},
	} {
		want.Load, want.Model, want.Factor, want.Requests = "reactive 1/min, proactive 6/min", "m", 10, 1
		want.Figure = "9"
		if i > 2 {
			want.Figure = "10"
		}
		if i == 2 {
			want.Paper = "58.7 %"
		}
		got := r.rows[i]
		for _, v := range []*float64{&got.Baseline, &got.Ours, &got.Change} {
			*v = math.Round(*v*1e6) / 1e6
		}
		if got != want {
			t.Errorf("row %d: %+v, want %+v", i, got, want)
		}
	}
	if got := r.throughput(ours); math.Abs(got-1.4) > 1e-9 {
		t.Errorf("%g tokens/s, want 1.4", got)
	}
}
