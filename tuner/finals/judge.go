package finals

import (
	"fmt"
	"math"

	"sandwich/plans/evidence"
	"sandwich/runtime/phase"
	"sandwich/tuner/arms"
)

// judge picks the winners of a race and records why other arms do not win. The first two arms are
// the default and its repetition.
func judge(r *arms.Race, allowTP bool) Result {
	j := &jury{Race: r, allowTP: allowTP, out: Default(r.Home)}
	j.out.Race = r
	base, same := r.Arms[0], r.Arms[1]
	var best [phase.Count]*arms.Arm
	for _, ph := range r.Home.Served() {
		j.out.Noise = append(j.out.Noise, j.noise(ph))
		best[ph] = j.phase(ph, true)
	}
	if a := j.ranks(best); a != nil {
		best = [phase.Count]*arms.Arm{a, a}
	}
	for _, ph := range r.Home.Served() {
		if on := best[ph].On; on != r.Home {
			other := Default(on)
			j.out.Partition, j.out.Phases = on, other.Phases
		}
	}
	for _, ph := range r.Home.Served() {
		b, won := best[ph], &j.out.Phases[ph]
		won.Measured = true
		won.OnDevice = b.OnDevice[ph]
		if won.OnDevice && b.On == r.Home {
			b = j.phase(ph, false) // what the cores run without the device
		}
		if b != base {
			won.Phase, won.Set = *b.Phases[ph], b.Sets[ph]
		}
		b = best[ph]
		for _, a := range r.Arms {
			name := ph.String() + ", " + a.Name
			if a == b {
				name = ph.String() + ", " + evidence.WinnerMark + a.Name
			}
			j.out.Samples = append(j.out.Samples, r.Evidence(a, ph, name)...)
			if a != b && a != same && a != base {
				r.Run.Reject(ph.String()+", "+a.Name, j.whyNot(a, ph))
			}
		}
	}
	return j.out
}

// jury judges one race.
type jury struct {
	*arms.Race
	allowTP bool
	out     Result
}

// over returns the gain of an arm over the default in the tests of a phase.
func (j *jury) over(arm *arms.Arm, ph phase.Phase) evidence.Gain {
	list := map[string][]evidence.Arm{}
	for _, a := range []*arms.Arm{j.Arms[0], j.Arms[1], arm} {
		list[a.Name] = j.Evidence(a, ph, "")
	}
	return evidence.Over(list, arm.Name)
}

// speed returns the speed of a pair of arms, one for each phase, relative to the default: the
// geometric mean over the served phases.
func (j *jury) speed(pair [phase.Count]*arms.Arm) float64 {
	sum := 0.0
	for _, ph := range j.Home.Served() {
		sum += math.Log1p(j.over(pair[ph], ph).Median)
	}
	return math.Exp(sum / float64(len(j.Home.Served())))
}

// noise returns the difference between the default and its repetition.
func (j *jury) noise(ph phase.Phase) float64 {
	return evidence.Noise(j.Evidence(j.Arms[0], ph, ""), j.Evidence(j.Arms[1], ph, ""))
}

// phase returns the arm of the default plan's partition that wins a phase, with arms on devices or
// without. All of these arms produce the same bits, so choosing one that is no faster has no cost.
func (j *jury) phase(ph phase.Phase, devices bool) *arms.Arm {
	noise := j.noise(ph)
	equal := j.over(j.Arms[1], ph)
	// If the equal arms differ significantly, the rounds measure something else as well.
	differ := equal.Rounds > 0 && (equal.Low > 0 || equal.High < 0)
	best, gain := j.Arms[0], 0.0
	for _, a := range j.Arms[2:] {
		if a.On != j.Home || a.Unpinned || a.Lost != "" || a.OnDevice[ph] && !devices {
			continue
		}
		if g := j.over(a, ph); (g.Beats(noise) || g.Likely() && !differ) && g.Median > gain {
			best, gain = a, g.Median
		}
	}
	return best
}

// ranks returns the arm of another partition that wins both phases, or nil if no gain outweighs the
// change of bits.
func (j *jury) ranks(home [phase.Count]*arms.Arm) (best *arms.Arm) {
	fastest := j.speed(home) / arms.Worth(j.allowTP)
	for _, a := range j.Arms[2:] {
		g := a.GainOver(&j.Arms[0].Standing)
		if a.On == j.Home || a.Lost != "" || g.Rounds < arms.MinRounds || g.Low <= 0 {
			continue
		}
		if speed := j.speed([phase.Count]*arms.Arm{a, a}); speed > fastest {
			best, fastest = a, speed
		}
	}
	return best
}

// whyNot describes the result of an arm in a phase that it did not win.
func (j *jury) whyNot(a *arms.Arm, ph phase.Phase) string {
	g := j.over(a, ph)
	if g.Rounds == 0 {
		return a.Lost
	}
	why := fmt.Sprintf("%+.1f %% against the default, %+.1f to %+.1f %% in %d rounds; two equal arms differ by up to "+
		"%.1f %%", 100*g.Median, 100*g.Low, 100*g.High, g.Rounds, 100*j.noise(ph))
	if a.On != j.Home {
		what := "several ranks change the bits"
		if a.Device != nil {
			what = "other arithmetic changes the bits"
		}
		why += fmt.Sprintf("; %s and must take less than %.2f of the time (--allow "+
			"tp takes any gain)", what, arms.Worth(j.allowTP))
	}
	if a.Lost != "" {
		why += "; " + a.Lost
	}
	return why
}
