package tuner

import (
	"errors"
	"fmt"
	"math"

	"sandwich/plans"
	"sandwich/runtime/pool"
)

// finalist is a phase that may enter the plan.
type finalist struct {
	set   activeSet
	phase plans.Phase
	arm   *arm
}

// chooseWinners measures whole forwards of each phase under its finalists: the default, the tuned
// tables on every surviving set of PUs, the default once more, which gives the A/A noise, and the
// default on threads that are bound to nothing. The default wins unless something beats it by more
// than the noise.
func (t *tuning) chooseWinners(l *pool.Leader) error {
	for i := range t.phases {
		end := kernelsEnd + (finalistsEnd-kernelsEnd)*float64(i+1)/2
		if err := t.chooseWinner(l, i, end); err != nil {
			return err
		}
	}
	return nil
}

func (t *tuning) chooseWinner(l *pool.Leader, i int, end float64) error {
	ph := &t.phases[i]
	def := phaseOf(t.def, i)
	ph.winner, ph.set = *def, activeSet{Name: "default", PUs: def.PUs}
	tuned := make([]finalist, len(ph.sets))
	for s, set := range ph.sets {
		tuned[s] = finalist{set: set, phase: plans.Phase{PUs: set.PUs, Tables: ph.tables[s]}}
	}
	if t.rig == nil { // nothing but the kernels to go by
		ph.winner, ph.set, ph.measured = tuned[0].phase, tuned[0].set, true
		return nil
	}
	var arms []*arm
	defer func() { closeArms(arms) }()
	add := func(name string, phase *plans.Phase, unpinned bool) (*arm, error) {
		a, err := t.rig.newArm(name, phase, unpinned)
		if err == nil {
			arms = append(arms, a)
		}
		return a, err
	}
	base, err := add(plans.ArmDefault, def, false)
	if err != nil {
		return err
	}
	same, err := add(plans.ArmAgain, def, false)
	if err != nil {
		return err
	}
	free, err := add(plans.ArmUnpinned, def, true)
	if err != nil {
		return err
	}
	base.stays, same.stays, free.stays = true, true, true
	for s := range tuned {
		if tuned[s].arm, err = add(fmt.Sprintf("tuned on PUs %s", tuned[s].set.PUs), &tuned[s].phase,
			false); err != nil {
			return err
		}
	}
	tests, err := t.tests(l, i, false, base, len(arms), end)
	if err != nil {
		return err
	}
	err = t.race(l, arms, tests, raceStage{"finalists", ph.name, end, 0})
	if errors.Is(err, errUndecided) {
		t.reject(ph.name, err.Error()+": the default stays; give a larger --budget")
		return nil
	}
	if err != nil {
		return err
	}
	t.judge(ph, arms, tests, base, same, tuned)
	return nil
}

// judge picks the winner of a phase and writes every arm into the evidence.
func (t *tuning) judge(ph *phaseTuning, arms []*arm, tests []*test, base, same *arm, tuned []finalist) {
	rounds := map[*arm][]plans.Arm{}
	for _, a := range arms {
		for k, x := range tests {
			rounds[a] = append(rounds[a], t.armEvidence(ph.name+", "+a.name, x, a.Samples(k)))
		}
	}
	noise := plans.Noise(rounds[base], rounds[same])
	t.noise = append(t.noise, noise)
	best, most := base, 0.0
	for _, f := range tuned {
		g, again := plans.GainOver(rounds[base], rounds[f.arm]), plans.GainOver(rounds[same], rounds[f.arm])
		if f.arm.Lost == "" && g.Beats(noise) && again.Low > 0 && g.Median > most { // both equal arms are the default
			best, most = f.arm, g.Median
			ph.winner, ph.set = f.phase, f.set
		}
	}
	ph.measured = true
	for _, a := range arms {
		for _, x := range rounds[a] {
			if a == best {
				x.Name = ph.name + ", " + plans.WinnerMark + a.name
			}
			t.evidence.Finalists = append(t.evidence.Finalists, x)
		}
		if a != best && a != same {
			g := plans.GainOver(rounds[base], rounds[a])
			why := fmt.Sprintf("%+.1f %% against the default, %+.1f to %+.1f %% in %d rounds; two equal arms "+
				"differ by up to %.1f %%", 100*g.Median, 100*g.Low, 100*g.High, g.Rounds, 100*noise)
			if a.Lost != "" {
				why += "; " + a.Lost
			}
			t.reject(ph.name+", "+a.name, why)
		}
	}
}

func (t *tuning) armEvidence(name string, x *test, seconds []float64) plans.Arm {
	return armOf(name, x.name, t.rig.part, x.tokens, seconds)
}

func armOf(name, test, part string, tokens int, seconds []float64) plans.Arm {
	out := plans.Arm{Name: name, Test: test, Unit: "tokens/s"}
	if part != "" {
		out.Test += ", " + part
	}
	for _, s := range seconds {
		out.Samples = append(out.Samples, round(float64(tokens)/s))
	}
	return out
}

// round keeps four significant digits.
func round(x float64) float64 {
	if x == 0 || math.IsInf(x, 0) || math.IsNaN(x) {
		return 0
	}
	unit := math.Pow(10, 3-math.Floor(math.Log10(math.Abs(x))))
	return math.Round(x*unit) / unit
}
