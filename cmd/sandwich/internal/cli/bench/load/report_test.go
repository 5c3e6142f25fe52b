package load

import (
	"bytes"
	"strings"
	"testing"

	"sandwich/tuner/measure/load"
	"sandwich/tuner/replay"
)

// TestClocksAreCompared checks that tables name the clocks, count the simulated times within the
// goals, and say whether there were enough requests.
func TestClocksAreCompared(t *testing.T) {
	row := func(clock string, times float64) load.Row {
		q := load.Quantiles{Mean: times, P50: times, P90: times, P99: times}
		return load.Row{Policy: "fcfs", Clock: clock, Class: "reactive", Requests: 40, Finished: 40, TTFT: q, TPOT: q,
			Utilization: 0.5}
	}
	var out bytes.Buffer
	other := func(r load.Row) load.Row {
		r.Policy = "share"
		return r
	}
	// Two policies whose TTFT and TPOT differ, and are simulated the other way round.
	rows := []load.Row{row("wall", 1), row("virtual", 1.2), other(row("wall", 2)), other(row("virtual", 1.1))}
	rows[1].TPOT.Mean = 1
	if err := tableLoad(&out, rows, replay.SLO{}); err != nil {
		t.Fatal(err)
	}
	if err := compareClocks(&out, rows); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{" measured ", " simulated ", "+20.0", "3 of 8 are within the goals", "has only 40 requests",
		"in 1 of 2 cases"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %q in\n%s", want, &out)
		}
	}
}

// TestGoalTable checks the bounds, the verdicts and the range over seeds in the table.
func TestGoalTable(t *testing.T) {
	var text bytes.Buffer
	list := []load.Figure{{Goal: "open", Policy: "sandwich", What: "a", Alone: 2, Mixed: 3, Measured: 1.5, Bound: 1.8},
		{Goal: "halt", Policy: "sandwich", What: "b", Mixed: 0.03, Measured: 0.03, Bound: 0.025},
		{Goal: "open", Policy: "fcfs", What: "c", Alone: 1, Mixed: 9, Measured: 9, Seeds: 3, Lowest: 8, Highest: 10.5}}
	if err := tableGoals(&text, list, "a model on a machine"); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"<= 1.80", "30 ms", "<= 25 ms", "missed", "1 of 2 bounds", "a model on a machine",
		"9.00 (8.00 to 10.50)", "every seed"} {
		if !strings.Contains(text.String(), want) {
			t.Errorf("no %q in\n%s", want, &text)
		}
	}
}
