package llm

import (
	"strings"
	"testing"

	"sandwich/tuner/measure/llm"
)

// TestPrintEnergy checks the lines of rows with energy, with a reason and without a meter.
func TestPrintEnergy(t *testing.T) {
	rows := []llm.Row{{Test: "pp512", Plan: "untuned", JoulesPerToken: 0.125, JoulesOf: "package-0"},
		{Test: "tg64", Plan: "untuned", Batch: 8, NoEnergy: "package: the driver\nis gone",
			BySource: map[string]float64{"cuda:0": 0.5}},
		{Test: "tg64"}}
	var b strings.Builder
	if err := printEnergy(&b, rows); err != nil {
		t.Fatal(err)
	}
	want := "joules per token: pp512 (untuned) 0.125; counters of package-0\n" +
		"joules per token of cuda:0 alone: tg64 x 8 (untuned) 0.5\n" +
		"energy: not readable: package: the driver\\u000ais gone\n"
	if b.String() != want {
		t.Errorf("%q, want %q", b.String(), want)
	}
	line := speedReport.Line(&rows[0])
	if !strings.HasSuffix(line, ",0.125") || strings.Count(line, ",") != strings.Count(speedReport.Header, ",") {
		t.Errorf("line %s of the header %s", line, speedReport.Header)
	}
}
