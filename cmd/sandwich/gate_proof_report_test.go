package main

import (
	"fmt"
	"strings"
	"testing"
)

// report returns the effects and the results so far in Markdown.
func (p *proof) report() string {
	var out strings.Builder
	fmt.Fprintf(&out, "# The gate's proof\n\nHost %s, model %s, %s a run.\n\n", p.Fingerprint, p.Model, *proofBudget)
	fmt.Fprintf(&out, "%d damages were looked at for %s each, %d paired for %s.\n\n", len(p.Refined), *proofRefine,
		len(p.Established), *proofPairs)
	out.WriteString("| kind | damage | row | slower | 95 % | pairs | |\n|---|---|---|---:|---:|---:|---|\n")
	for i := range p.Established {
		e := &p.Established[i]
		use := ""
		switch {
		case e.within(aboutFive):
			use = "used"
		case e.within(aboutOne):
			use = "for orientation"
		}
		fmt.Fprintf(&out, "| %s | %s | %s | %.2f %% | %.2f..%.2f | %d | %s |\n", e.Kind, e.Damage, e.Row, 100*e.Slower,
			100*e.Low, 100*e.High, e.Pairs, use)
	}
	out.WriteString("\n| runs | of | called regressed | not proven | passed | unfit runner | other |\n" +
		"|---|---:|---:|---:|---:|---:|---:|\n")
	for _, c := range proofCounts {
		n := p.outcomes(c.what)
		other := -n["called regressed"] - n["not proven"] - n["passed"] - n["unfit runner"]
		all := 0
		for _, k := range n {
			all += k
		}
		fmt.Fprintf(&out, "| %s | %d of %d | %d | %d | %d | %d | %d |\n", c.what, all, c.n, n["called regressed"],
			n["not proven"], n["passed"], n["unfit runner"], other+all)
	}
	return out.String()
}

// outcomes counts the runs of one kind by their outcome.
func (p *proof) outcomes(what string) map[string]int {
	out := map[string]int{}
	for i := range p.Runs {
		if p.Runs[i].What == what {
			out[p.Runs[i].outcome()]++
		}
	}
	return out
}

// judge holds the counts that the gate promises; runs on an unfit runner count for neither.
func (p *proof) judge(t *testing.T) {
	damaged, equal, improved := p.outcomes(runDamaged), p.outcomes(runEqual), p.outcomes(runImproved)
	const maxMissed, maxAlarms, maxUnfit = 2, 2, 6
	if missed := damaged["not proven"] + damaged["passed"]; missed > maxMissed {
		t.Errorf("%d slowdowns were missed", missed)
	}
	if n := equal["called regressed"]; n > maxAlarms {
		t.Errorf("%d equal plans were called regressed", n)
	}
	if n := damaged["unfit runner"] + equal["unfit runner"]; n > maxUnfit {
		t.Errorf("%d runs ended on an unfit runner", n)
	}
	if n := improved["called regressed"] + improved["not proven"]; n > 0 {
		t.Errorf("%d improvements did not pass", n)
	}
	for _, what := range []string{runDrift, runTwo} {
		if n := p.outcomes(what)["decided with a neighbor"]; n > 0 {
			t.Errorf("%s: %d runs were decided", what, n)
		}
	}
}
