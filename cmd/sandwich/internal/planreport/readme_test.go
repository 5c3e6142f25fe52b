package planreport

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sandwich/plans/evidence"
)

// TestReadme checks that the race that README.md shows is as tune prints it: this test prints the
// same figures.
func TestReadme(t *testing.T) {
	var e evidence.Evidence
	add := func(arm, test string, median, half float64) {
		samples := []float64{median - half, median + half}
		for len(samples) < 11 {
			samples = append(samples, median)
		}
		e.Finalists = append(e.Finalists, evidence.Arm{Name: "decode, " + arm, Test: test, Unit: "tokens/s",
			Samples: samples})
	}
	for arm, figures := range map[string][6]float64{
		evidence.WinnerMark + evidence.ArmDefault: {28, 6, 93, 13, 192, 24},
		"tuned on PUs 0-1":                        {26, 4, 94, 16, 192, 22},
		"unpinned":                                {21, 4, 71, 14, 143, 36},
	} {
		for i, test := range []string{"tg batch 1", "tg batch 4", "tg batch 16"} {
			add(arm, test, figures[2*i], figures[2*i+1])
		}
	}
	header, rows := RaceTable(&e, "decode")
	text, err := os.ReadFile(filepath.Join("..", "..", "..", "..", "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(text), "`tune` ends with the race")
	_, block, _ := strings.Cut(section, "```\n")
	block, _, _ = strings.Cut(block, "```")
	var shown [][]string
	for line := range strings.Lines(block) {
		shown = append(shown, fields(line))
	}
	want := append([][]string{header}, rows...)
	if len(shown) != len(want) {
		t.Fatalf("README.md shows\n%s\ntune prints the rows %q", block, want)
	}
	for i, row := range want {
		if got := strings.Join(fields(strings.Join(row, "  ")), "|"); got != strings.Join(shown[i], "|") {
			t.Errorf("README.md shows %q, tune prints %q", strings.Join(shown[i], "|"), got)
		}
	}
}

// fields divides a line of a table at two blanks and more.
func fields(line string) (list []string) {
	for _, f := range strings.Split(strings.TrimSpace(line), "  ") {
		if f = strings.TrimSpace(f); f != "" {
			list = append(list, f)
		}
	}
	return list
}
