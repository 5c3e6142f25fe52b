package tuner

import (
	"context"
	"fmt"
	"slices"

	"sandwich/plans"
	"sandwich/runtime/exec"
	"sandwich/runtime/mem"
	"sandwich/runtime/pool"
)

// worthRanks is how much of the time of one rank several may take, since they cost the bit-equality
// of rule 6; noisyRanks is what they may take where the user allows them for any gain.
const (
	worthRanks = 0.9
	noisyRanks = 0.98
)

// ranksEnd is the part of the budget in which partitions are compared, ranksLimit that which the
// first rounds of all may take.
const (
	ranksEnd   = 0.1
	ranksLimit = 0.15
)

// chosenRanks is the partition that a plan is made for, and what was measured to choose it.
type chosenRanks struct {
	service  *plans.ServiceConfig // nil: one rank
	rejected []plans.Rejected
	arms     []plans.Arm
}

func (c *chosenRanks) reject(candidate, format string, args ...any) {
	c.rejected = append(c.rejected, plans.Rejected{Candidate: candidate, Reason: fmt.Sprintf(format, args...)})
}

// chooseRanks races whole configurations of several ranks, each on the partition and the PUs that
// the ranking gave it, against the untuned and the unpinned one of one rank. Each partition cuts
// the weights in its own way. Where a model cannot be run one rank stays.
func (t *tuning) chooseRanks(candidates []*Ranked) (out chosenRanks, err error) {
	if len(candidates) == 0 {
		return out, nil
	}
	run := &partitions{t: t, open: map[string]*tuning{}}
	defer run.closeAll()
	run.add(plans.ArmDefault, nil, false)
	run.add(plans.ArmUnpinned, nil, true)
	run.arms[0].Stays, run.arms[1].Stays = true, true
	for _, c := range candidates {
		s, err := c.Config.Service()
		if err != nil {
			return out, err
		}
		run.add(c.Names[0], &s, false)
	}
	if err := run.calibrate(); err != nil || run.rigless {
		return out, err
	}
	o := RaceOptions{Arms: run.contenders(), Tests: 2, Least: minRounds, Most: maxRounds, Seed: t.o.Seed,
		Budget: t.until(ranksEnd).Seconds(), Limit: t.until(ranksLimit).Seconds(),
		Said: func(arm, test int, seconds float64) {
			t.say("ranks", fmt.Sprintf("%s, %s: %.4g s", run.arms[arm].Name, phaseNames[test], seconds), false)
		}}
	standings, err := Race(t.ctx, run, o)
	if err != nil {
		return out, err
	}
	run.judge(standings, &out)
	return out, nil
}

var phaseNames = [2]string{prefill: "prefill", decode: "decode"}

// judge takes the configuration of several ranks that gains most, if it gains what its bits are
// worth.
func (p *partitions) judge(standings []Standing, out *chosenRanks) {
	worth := worthRanks
	if p.t.o.AllowTP {
		worth = noisyRanks
	}
	best := worth
	for i, s := range standings {
		a := &p.arms[i]
		for k := range phaseNames {
			if len(s.Laps) > 0 {
				name, tokens := p.test(k)
				out.arms = append(out.arms, armOf("ranks, "+a.Name, name, p.part, tokens, s.Samples(k)))
			}
		}
		g := s.GainOver(&standings[0])
		if ratio := 1 / (1 + g.Median); i > 1 && s.Lost == "" && g.Rounds >= minRounds && g.Low > 0 && ratio < best {
			best, out.service = ratio, a.service
		}
	}
	for i, s := range standings {
		a := &p.arms[i]
		switch g := s.GainOver(&standings[0]); {
		case a.service == nil || a.service == out.service:
		case g.Rounds < minRounds:
			out.reject(a.Name, "measured in %d rounds: the budget has no time for more; give a larger --budget, "+
				"or --tp",
				g.Rounds)
		default:
			why := s.Lost
			if why != "" {
				why = "; " + why
			}
			out.reject(a.Name, "takes %.2f times as long as one rank with the default schedules, in %d rounds; "+
				"several "+
				"ranks change the bits and must take less than %.2f (--allow tp takes any gain)%s", 1/(1+g.Median),
				g.Rounds, worth, why)
		}
	}
}

// partitions implements Runner with whole configurations of unlike partitions.
type partitions struct {
	t       *tuning
	arms    []partitionArm
	open    map[string]*tuning // that were loaded, by partition
	times   [2]int             // forwards a sample, by phase
	part    string
	rigless bool
}

// partitionArm is a configuration under the untuned schedules.
type partitionArm struct {
	Contender
	service  *plans.ServiceConfig // nil: that of the default plan
	unpinned bool
	phases   [2]*arm // nil until it ran
	tests    [2]*test
}

func (p *partitions) add(name string, s *plans.ServiceConfig, unpinned bool) {
	a := partitionArm{Contender: Contender{Name: name}, service: s, unpinned: unpinned}
	if s != nil {
		a.Partition = fmt.Sprint(s.Ranks)
	}
	p.arms = append(p.arms, a)
}

func (p *partitions) contenders() (out []Contender) {
	for _, a := range p.arms {
		out = append(out, a.Contender)
	}
	return out
}

// calibrate sets how many forwards a sample has, for all arms alike.
func (p *partitions) calibrate() error {
	for k := range phaseNames {
		s, err := p.t.rec.forward("first forward of one rank, "+phaseNames[k], func() (float64, error) {
			p.times[k] = 1
			return p.sample(0, k)
		})
		if err != nil || p.rigless {
			return err
		}
		p.times[k] = repeats(s.Seconds)
	}
	return nil
}

// Open implements Runner. The weights are read when a sample is not in the journal.
func (p *partitions) Open(context.Context, string) error { return nil }

// Close implements Runner.
func (p *partitions) Close(partition string) {
	for i := range p.arms {
		if a := &p.arms[i]; a.Partition == partition {
			for k, x := range a.phases {
				if x != nil {
					x.executor.Close()
				}
				a.phases[k] = nil
			}
		}
	}
	if t := p.open[partition]; t != nil {
		delete(p.open, partition)
		t.close()
	}
}

func (p *partitions) closeAll() {
	for _, a := range p.arms {
		p.Close(a.Partition)
	}
}

// Sample implements Runner.
func (p *partitions) Sample(_ context.Context, arm, k int) (Timing, error) {
	a := &p.arms[arm]
	return p.t.rec.forward(fmt.Sprintf("%s forward x %d by %s on %s", phaseNames[k], p.times[k], a.Name, a.Partition),
		func() (float64, error) { return p.sample(arm, k) })
}

// sample runs a phase of an arm, after warming it up where it did not run yet.
func (p *partitions) sample(arm, k int) (seconds float64, err error) {
	a := &p.arms[arm]
	on, err := p.load(a)
	if err != nil || p.rigless {
		return 1, err
	}
	on.workers.Pool.Lead(func(l *pool.Leader) {
		if a.phases[k] == nil {
			if err = a.compile(on, k); err != nil {
				return
			}
			a.tests[k].times = 1
			if _, err = on.rig.sample(l, a.phases[k], a.tests[k]); err != nil {
				return
			}
		}
		a.tests[k].times = p.times[k]
		seconds, err = on.rig.sample(l, a.phases[k], a.tests[k])
	})
	return seconds, err
}

// load brings the weights into memory as the partition of an arm cuts them. A partition besides the
// first that has no room there is left out of the race.
func (p *partitions) load(a *partitionArm) (*tuning, error) {
	if on := p.open[a.Partition]; on != nil {
		return on, nil
	}
	o := p.t.o
	o.service = a.service
	on := &tuning{ctx: p.t.ctx, o: o, began: p.t.began, rec: p.t.rec}
	if err := on.describe(); err != nil {
		return nil, err
	}
	if a.service != nil {
		list, err := exec.Foresee(on.def, on.rigSize().blocks(on.def.Chunk), on.def.BatchMax)
		if err != nil {
			return nil, err
		}
		need := int64(0)
		for _, f := range list {
			need += f.Total(1)
		}
		if free := mem.Available(); free > 0 && need > free {
			return nil, &absent{fmt.Sprintf("it needs %s beside the default plan, and %s is free",
				mem.FormatBytes(need),
				mem.FormatBytes(free))}
		}
	}
	p.open[a.Partition] = on
	if err := on.ready(); err != nil {
		return nil, err
	}
	if on.rig == nil {
		if a.service != nil {
			return nil, &absent{"its weights could not be loaded beside those of the default plan"}
		}
		p.rigless = true
		return on, nil
	}
	p.part = on.rig.part
	return on, nil
}

// test is the name of a phase's test and its tokens.
func (p *partitions) test(k int) (string, int) {
	if k == decode {
		return "tg batch 1", 1
	}
	n := min(p.t.def.Chunk, 128)
	return fmt.Sprintf("pp%d", n), n
}

// compile makes a phase of the arm, on a partition that was loaded for it or for another of its
// kind.
func (a *partitionArm) compile(on *tuning, k int) (err error) {
	x := on.rig.prefillTest(min(on.def.Chunk, 128))
	if k == decode {
		x = on.rig.decodeTest(1, min(decodeDepth, max(1, on.shape.Context-1)))
	}
	a.tests[k] = &x
	phase := *phaseOf(on.def, k)
	if a.service != nil {
		phase.PUs = [2]plans.PUSet{prefill: a.service.PrefillPUs, decode: a.service.DecodePUs}[k]
	}
	a.phases[k], err = on.rig.newArm(a.Name, &phase, a.unpinned)
	return err
}

// severalRanks are the best candidates that are predicted to beat one rank, of which what comes
// behind the best of one rank is not.
func (r *Ranking) severalRanks(topK int) []*Ranked {
	n := slices.IndexFunc(r.Ranked, func(c *Ranked) bool { return c.Config.TP() == 1 })
	if n < 0 {
		n = len(r.Ranked)
	}
	return r.Ranked[:min(n, topK)]
}
