package tuner

import (
	"testing"

	"sandwich/plans"
)

// TestJudge: a candidate enters the plan only where it stands out of what two equal arms differ by,
// and the evidence tells the same afterwards.
func TestJudge(t *testing.T) {
	for _, c := range []struct {
		name             string
		again, candidate []float64 // seconds, where the default takes 1
		kept             bool
	}{
		{"faster in quiet", []float64{1, 1.01, 0.99, 1, 1, 1}, []float64{0.9, 0.91, 0.9, 0.9, 0.89, 0.9}, false},
		{"inside the noise", []float64{1.1, 0.9, 1.05, 0.95, 1.1, 0.9}, []float64{0.97, 0.95, 0.96, 0.97, 0.98, 0.96},
			true},
		{"slower", []float64{1, 1, 1, 1, 1, 1}, []float64{1.1, 1.1, 1.1, 1.1, 1.1, 1.1}, true},
		{"the fastest sample alone", []float64{1, 1, 1, 1, 1, 1}, []float64{0.5, 1.1, 1.1, 0.5, 1.1, 1.1}, true},
		{"one round, little", []float64{1}, []float64{0.95}, true},
		{"one round, plain", []float64{1}, []float64{0.7}, false},
		{"only against one of the equal arms", []float64{0.8, 0.81, 0.8, 0.82, 0.8, 0.8},
			[]float64{0.78, 0.79, 0.83, 0.78, 0.78, 0.77}, true},
	} {
		def := make([]float64, len(c.again))
		for i := range def {
			def[i] = 1
		}
		base := &arm{name: plans.ArmDefault, Standing: lapsOf(def)}
		same := &arm{name: plans.ArmAgain, Standing: lapsOf(c.again)}
		fast := &arm{name: "tuned on PUs 0-1", Standing: lapsOf(c.candidate)}
		run := &tuning{rig: &rig{}}
		ph := &phaseTuning{name: "prefill"}
		run.judge(ph, []*arm{base, same, fast}, []*test{{name: "pp64", tokens: 64}}, base, same,
			[]finalist{{phase: plans.Phase{PUs: plans.PUSet{7}}, arm: fast}})
		o := run.evidence.Outcomes()
		if len(o) != 1 || o[0].Kept != c.kept || c.kept == (len(ph.winner.PUs) == 1) || !ph.measured {
			t.Errorf("%s: %+v, winner on PUs %v", c.name, o, ph.winner.PUs)
		}
	}
}

// lapsOf is how an arm came out of rounds of one test.
func lapsOf(seconds []float64) (s Standing) {
	for i, x := range seconds {
		s.Laps = append(s.Laps, Lap{i, []float64{x}})
	}
	return s
}
