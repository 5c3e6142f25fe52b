package bench

import (
	"strings"
	"testing"
)

// TestPredictErrors checks that errors are absolute values, grouped in the order of the rows and
// overall, and that the table names them.
func TestPredictErrors(t *testing.T) {
	row := func(model string, tp int, phase string, off float64) predictRow {
		return predictRow{Model: model, CPU: "a CPU", PUs: "0,1", TP: tp, Phase: phase, Rows: 4, Predicted: 1 + off,
			Seconds: 1, Error: off, name: "four"}
	}
	o := &predictOut{rows: []predictRow{row("b", 1, "prefill", -0.5), row("a", 2, "decode", 0.1),
		row("b", 2, "decode", -0.2)}}
	o.assume("a ceiling")
	o.assume("a ceiling")
	want := []predictErrors{{"b", 2, 0.35, 0.5}, {"a", 1, 0.1, 0.1}, {"PUs 0,1", 1, 0.5, 0.5},
		{"PUs 0,1, TP 2", 2, 0.15000000000000002, 0.2}, {"prompts", 1, 0.5, 0.5},
		{"generation", 2, 0.15000000000000002, 0.2}, {"all", 3, 0.2, 0.5}}
	got := o.errors()
	if len(got) != len(want) {
		t.Fatalf("errors are %v", got)
	}
	for i := range want {
		if got[i] != want[i] {
			t.Errorf("errors are %v, want %v", got[i], want[i])
		}
	}
	var text strings.Builder
	if err := o.print(&text, "table"); err != nil {
		t.Fatal(err)
	}
	words := strings.Join(strings.Fields(text.String()), " ")
	for _, want := range []string{"b PUs 0,1 four ", " -50 %", " all 3 20 % 50 %"} {
		if !strings.Contains(words, want) {
			t.Errorf("no %q in\n%s", want, text.String())
		}
	}
	if n := strings.Count(text.String(), "- a ceiling"); n != 1 {
		t.Errorf("what predictions rest on stands there %d times", n)
	}
}
