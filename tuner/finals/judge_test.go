package finals

import (
	"testing"

	"sandwich/plans"
	"sandwich/plans/evidence"
	"sandwich/runtime/phase"
	"sandwich/topotree"
	"sandwich/tuner/arms"
	"sandwich/tuner/partition"
	"sandwich/tuner/race"
	"sandwich/tuner/rig"
	"sandwich/tuner/run"
)

// TestJudge checks that a candidate enters the plan only if its gain exceeds the difference of two
// equal arms, or if equal arms would hardly show it, and that the evidence gives the same verdict
// later.
func TestJudge(t *testing.T) {
	for _, c := range []struct {
		name             string
		again, candidate []float64 // seconds; the default takes 1
		kept             bool
	}{
		{"faster in quiet", []float64{1, 1.01, 0.99, 1, 1, 1}, []float64{0.9, 0.91, 0.9, 0.9, 0.89, 0.9}, false},
		{"inside the noise", []float64{1.1, 0.9, 1.05, 0.95, 1.1, 0.9}, []float64{0.97, 0.95, 0.96, 0.97, 0.98, 0.96},
			true},
		{"little, in nearly every round", []float64{1.03, 0.97, 1.02, 0.99, 1, 0.98, 1.01, 0.97, 1.03, 1, 1.01},
			[]float64{0.96, 0.97, 0.99, 1.02, 0.95, 0.97, 1.01, 0.96, 0.98, 0.97, 0.95}, false},
		{"little, in half of the rounds", []float64{1.03, 0.97, 1.02, 0.99, 1, 0.98, 1.01, 0.97, 1.03, 1, 1.01},
			[]float64{0.96, 1.04, 0.99, 1.02, 0.95, 1.03, 1.01, 0.96, 1.02, 0.97, 1.05}, true},
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
		r := judge(raced(lapsOf(def), lapsOf(c.again), lapsOf(c.candidate)), false)
		o, won := (&evidence.Evidence{Finalists: r.Samples}).Outcomes(), r.Phases[phase.Prefill]
		if len(o) != 2 || o[0].Kept != c.kept || c.kept == (won.Phase.PUs.Count() == 1) || !won.Measured {
			t.Errorf("%s: %+v, winner on PUs %v", c.name, o, won.Phase.PUs)
		}
	}
}

// raced returns a race of the default, the default again, an arm for PU 7 on the default's
// partition, and arms of another partition for PU 8 each.
func raced(came ...race.Standing) *arms.Race {
	home := &partition.Partition{Plan: &plans.Plan{}}
	r := &arms.Race{Run: run.New(run.Options{}), Home: home, Tests: []rig.Test{
		{Phase: phase.Prefill, N: 64, Times: 1}, {Phase: phase.Decode, N: 1, Times: 1}}}
	other := &partition.Partition{Plan: &plans.Plan{Ranks: make([]plans.Rank, 2)}}
	for i, s := range came {
		c := &arms.Arm{Contender: race.Contender{Name: "tuned"}, On: home, Standing: s}
		pus := topotree.NewCPUSet(7)
		switch {
		case i == 0:
			c.Name = evidence.ArmDefault
		case i == 1:
			c.Name = evidence.ArmAgain
		case i > 2:
			c.Name, c.On, pus = "tuned, 2 ranks", other, topotree.NewCPUSet(8)
		}
		c.Phases = [phase.Count]*plans.Phase{{PUs: pus}, {PUs: pus}}
		r.Arms = append(r.Arms, c)
	}
	return r
}

// TestJudgeRanks checks that another partition enters the plan, in both phases, if it is 10 %
// faster than the best that keeps the bits, or with any gain if that is allowed.
func TestJudgeRanks(t *testing.T) {
	seconds := func(x float64) []float64 { return []float64{x, x * 1.01, x * 0.99, x, x, x} }
	for _, c := range []struct {
		tuned, ranks float64
		allow, won   bool
	}{
		{1, 0.8, false, true},
		{1, 0.95, false, false},
		{1, 0.95, true, true},
		{0.85, 0.8, false, false},
		{0.85, 0.8, true, true},
		{0.85, 0.7, false, true},
		{1, 1.2, true, false},
	} {
		f := raced(lapsOf(seconds(1)), lapsOf(seconds(1)), lapsOf(seconds(c.tuned)), lapsOf(seconds(c.ranks)))
		r := judge(f, c.allow)
		o := (&evidence.Evidence{Finalists: r.Samples}).Outcomes()
		if (r.Partition != f.Home) != c.won {
			t.Errorf("%+v: %+v", c, o)
		}
		if c.won && (o[0].Arm != "tuned, 2 ranks" || o[1].Arm != o[0].Arm) {
			t.Errorf("%+v: %+v", c, o)
		}
	}
}

// lapsOf returns the standing of an arm from rounds of two tests.
func lapsOf(seconds []float64) (s race.Standing) {
	for i, x := range seconds {
		s.Laps = append(s.Laps, race.Lap{Round: i, Seconds: []float64{x, x}})
	}
	return s
}

// TestJudgeDevice checks that a device wins the phases in which it is faster, that the cores keep
// their fastest tables for these phases, and that another partition for a device must be worth the
// change of bits.
func TestJudgeDevice(t *testing.T) {
	laps := func(prefill, decode float64) (s race.Standing) {
		for i, x := range []float64{1, 1.01, 0.99, 1, 1, 1} {
			s.Laps = append(s.Laps, race.Lap{Round: i, Seconds: []float64{x * prefill, x * decode}})
		}
		return s
	}
	for _, c := range []struct {
		name            string
		prefill, decode float64 // seconds of the device; the default takes 1, the tuned arm 0.8
		other           bool    // the arm is of another partition
		want            [phase.Count]bool
	}{
		{"faster in prompts", 0.1, 2, false, [phase.Count]bool{true, false}},
		{"faster in both", 0.1, 0.5, false, [phase.Count]bool{true, true}},
		{"slower than the tuned arm", 0.9, 0.9, false, [phase.Count]bool{}},
		{"other paths, much faster", 0.1, 0.5, true, [phase.Count]bool{true, true}},
		{"other paths, hardly faster", 0.78, 0.78, true, [phase.Count]bool{}},
	} {
		r := raced(laps(1, 1), laps(1.01, 1.01), laps(0.8, 0.8), laps(c.prefill, c.decode))
		a := r.Arms[3]
		a.Name, a.OnDevice = plans.DeviceArm("sim:0"), [phase.Count]bool{true, true}
		if !c.other {
			a.On = r.Home
		}
		won := judge(r, false)
		for _, ph := range phase.All {
			if w := won.Phases[ph]; w.OnDevice != c.want[ph] || !w.Measured {
				t.Errorf("%s: %s is on the device: %v", c.name, ph, w.OnDevice)
			} else if wantPU := map[bool]int{false: 7, true: 8}[c.other && c.want[ph]]; w.Phase.PUs.First() != wantPU {
				t.Errorf("%s: the cores run %s on PUs %v, want %d", c.name, ph, w.Phase.PUs, wantPU)
			}
		}
	}
}
