package search

import (
	"context"
	"errors"
	"math"
	"reflect"
	"slices"
	"testing"
	"time"

	"sandwich/microkernel"
	"sandwich/plans"
)

var square = plans.WeightKey{N: 4096, K: 4096, Type: "f32"}

func lookup(rules []plans.Rule, m int) plans.Schedule {
	ph := plans.Phase{Tables: []plans.Table{{WeightKey: square, Rules: rules}}}
	s, _ := ph.Lookup(square, m)
	return s
}

func TestSearchFindsNearOptimalSchedules(t *testing.T) {
	h := newMachine(1)
	p := h.problem(square, 1024, Standard)
	r, err := Search(context.Background(), p, h, h.options(Standard, 10*time.Minute))
	if err != nil {
		t.Fatal(err)
	}
	if r.Cut != 0 {
		t.Errorf("%d anchors cut with a budget that is not used up (clock %v)", r.Cut, h.clock)
	}
	// Held-out M, anchors and others.
	for _, m := range []int{1, 3, 11, 16, 29, 64, 200, 512, 1000, 3000} {
		got := h.exact(square, square.N, m, lookup(r.Rules, m))
		best := h.bestExact(&p, m)
		if got > 1.12*best {
			t.Errorf("m %d: %s takes %.3g s, the grid's best %.3g s", m, lookup(r.Rules, m), got, best)
		}
	}
	t.Logf("%d trials, %v on the clock, %d rules, noise %.3f, reused from %d, reopened %v", r.Trials, h.clock,
		len(r.Rules), r.Noise, r.Reused, r.Reopened)
}

func TestSearchIsDeterministicBySeed(t *testing.T) {
	run := func(strategy string) *Result {
		h := newMachine(5)
		o := h.options(Quick, 20*time.Second)
		o.Strategy = strategy
		r, err := Search(context.Background(), h.problem(square, 256, Quick), h, o)
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	for _, s := range Strategies() {
		if a, b := run(s), run(s); !reflect.DeepEqual(a, b) {
			t.Errorf("%s: two searches with equal seeds differ", s)
		}
	}
}

func TestBudgetIsKept(t *testing.T) {
	for _, strategy := range Strategies() {
		for _, budget := range []time.Duration{0, 50 * time.Millisecond, time.Second, 5 * time.Second} {
			h := newMachine(2)
			p := h.problem(square, 2048, Standard)
			o := h.options(Standard, budget)
			o.Strategy = strategy
			r, err := Search(context.Background(), p, h, o)
			if err != nil {
				t.Fatal(err)
			}
			// The budget may be exceeded by one call of the slowest schedule.
			if over := h.clock - budget; over > max(300*time.Millisecond, budget/10) {
				t.Errorf("%s with a budget of %v took %v", strategy, budget, h.clock)
			}
			checkRules(t, r.Rules)
			if budget == 0 && r.Cut != len(p.Anchors) {
				t.Errorf("%s without a budget cut %d of %d anchors", strategy, r.Cut, len(p.Anchors))
			}
		}
	}
}

// checkRules checks for ascending ranges without gaps, the last one open.
func checkRules(t *testing.T, rules []plans.Rule) {
	t.Helper()
	lo := 1
	for i, r := range rules {
		if r.MLo != lo || (r.MHi == 0) != (i == len(rules)-1) || r.MHi != 0 && r.MHi < r.MLo {
			t.Fatalf("rule %d is for m %d to %d, want it to start at %d", i, r.MLo, r.MHi, lo)
		}
		lo = r.MHi + 1
	}
}

func TestNeverSlowerThanTheIncumbent(t *testing.T) {
	for seed := range uint64(5) {
		h := newMachine(seed)
		h.noise = 0.08
		p := h.problem(square, 512, Quick)
		// An optimal incumbent must survive noise.
		best := map[int]plans.Schedule{}
		for _, m := range p.Anchors {
			smallest := math.Inf(1)
			for _, k := range p.Kernels {
				s := newSpace(&p, k, m, p.Key.N)
				for _, c := range s.grid() {
					if x := h.exact(square, square.N, m, c); x < smallest {
						smallest, best[m] = x, c
					}
				}
			}
		}
		p.Incumbent = func(m int) plans.Schedule { return best[m] }
		r, err := Search(context.Background(), p, h, h.options(Quick, 30*time.Second))
		if err != nil {
			t.Fatal(err)
		}
		for _, a := range r.Anchors {
			got, had := h.exact(square, square.N, a.M, a.Schedule), h.exact(square, square.N, a.M, best[a.M])
			if got > 1.1*had {
				t.Errorf("seed %d m %d: the winner takes %.3g s, the incumbent %.3g s", seed, a.M, got, had)
			}
		}
	}
}

func TestSlidingWindowAndReuse(t *testing.T) {
	h := newMachine(3)
	h.noise, h.spikes = 0.001, 0
	p := h.problem(square, 4096, Full)
	o := h.options(Full, time.Hour)
	o.Sigma = 4
	kernels := map[int]map[MicroKernel]bool{}
	o.Progress = func(e Event) {
		if kernels[e.M] == nil {
			kernels[e.M] = map[MicroKernel]bool{}
		}
		kernels[e.M][MicroKernel{e.Schedule.Kernel.WithPrefetch(0), e.Schedule.Widen}] = true
		if e.GFLOPS <= 0 || e.OfCeiling <= 0 || e.OfCeiling > 1.5 {
			t.Fatalf("event %+v", e)
		}
	}
	r, err := Search(context.Background(), p, h, o)
	if err != nil {
		t.Fatal(err)
	}
	for i, a := range r.Anchors {
		open := i < o.Sigma || slices.Contains(r.Reopened, a.M)
		if n := len(kernels[a.M]); !open && n > o.Sigma+2 {
			t.Errorf("m %d, beyond the window: %d micro-kernels tried", a.M, n)
		} else if open && n <= o.Sigma {
			t.Errorf("m %d, all micro-kernels open: only %d tried", a.M, n)
		}
	}
	if len(r.Reopened) != 1 {
		t.Errorf("the regime is crossed once, reopened at %v", r.Reopened)
	}
	if r.Reused == 0 || r.Reused == p.Anchors[len(p.Anchors)-1] {
		t.Errorf("schedules are reused from m %d", r.Reused)
	}
	checkRules(t, r.Rules)
}

func TestRacingStopsLosersAndTiesAreMeasuredAgain(t *testing.T) {
	l := Limit{MinReps: 5, MaxReps: 9, Time: time.Second, GiveUp: 1}
	s, err := l.Repeat(func() (float64, error) { return 1.5, nil })
	if err != nil || len(s.Seconds) != 2 || !s.Stopped {
		t.Errorf("a loser made %d calls, stopped %v, %v", len(s.Seconds), s.Stopped, err)
	}
	n := 0
	s, err = l.Repeat(func() (float64, error) { n++; return []float64{1.9, 0.5, 0.5, 0.5, 0.5, 0.5}[min(n-1, 5)], nil })
	if err != nil || s.Stopped || len(s.Seconds) < 5 {
		t.Errorf("one disturbed call sank a good schedule: %+v %v", s, err)
	}
	h := newMachine(4)
	h.noise = 0.05
	p := h.problem(square, 64, Quick)
	if _, err := Search(context.Background(), p, h, h.options(Quick, time.Minute)); err != nil {
		t.Fatal(err)
	}
	again := 0
	for _, n := range h.distinct {
		if n > 1 {
			again++
		}
	}
	if again == 0 {
		t.Error("nothing was measured twice")
	}
}

// broken rejects every kernel wider than one panel, and fails permanently after some calls.
type broken struct {
	*machine
	after int
}

var errGone = errors.New("the machine is gone")

func (b *broken) Time(t Trial) (Sample, error) {
	if b.calls > b.after {
		return Sample{}, errGone
	}
	if t.Schedule.Kernel.NR > microkernel.PanelWidth {
		return Sample{}, ErrUnfit
	}
	return b.machine.Time(t)
}

func TestErrorsOfTheTimer(t *testing.T) {
	h := newMachine(6)
	b := &broken{h, 1 << 30}
	r, err := Search(context.Background(), h.problem(square, 8, Quick), b, h.options(Quick, time.Minute))
	if err != nil {
		t.Fatal(err)
	}
	if len(r.Rejected) == 0 {
		t.Error("schedules that do not run are not recorded")
	}
	for _, rule := range r.Rules {
		if rule.Schedule.Kernel.NR > microkernel.PanelWidth {
			t.Errorf("a schedule that does not run won: %s", rule.Schedule)
		}
	}
	b.after = h.calls + 20
	if _, err := Search(context.Background(), h.problem(square, 64, Quick), b, h.options(Quick,
		time.Minute)); !errors.Is(err, errGone) {
		t.Errorf("got %v", err)
	}
	ctx, cancel := context.WithCancelCause(context.Background())
	cancel(errGone)
	if _, err := Search(ctx, h.problem(square, 8, Quick), h, h.options(Quick, time.Minute)); !errors.Is(err, errGone) {
		t.Errorf("a cancelled search returned %v", err)
	}
}

func TestProblemsAreRefused(t *testing.T) {
	h := newMachine(1)
	for name, spoil := range map[string]func(*Problem, *Options){
		"no anchors":  func(p *Problem, _ *Options) { p.Anchors = nil },
		"descending":  func(p *Problem, _ *Options) { p.Anchors = []int{4, 2} },
		"zero m":      func(p *Problem, _ *Options) { p.Anchors = []int{0, 2} },
		"no threads":  func(p *Problem, _ *Options) { p.Threads = 0 },
		"no strategy": func(_ *Problem, o *Options) { o.Strategy = "magic" },
	} {
		p, o := h.problem(square, 8, Quick), h.options(Quick, time.Second)
		spoil(&p, &o)
		if _, err := Search(context.Background(), p, h, o); err == nil {
			t.Errorf("%s: not refused", name)
		}
	}
}

func TestAnchorLengths(t *testing.T) {
	for _, c := range []struct {
		max, octave int
		want        []int
	}{
		{1, 2, []int{1}},
		{16, 1, []int{1, 2, 4, 8, 16}},
		{64, 2, []int{1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 14, 16, 24, 32, 48, 64}},
		{100, 1, []int{1, 2, 4, 8, 16, 32, 64, 100}},
	} {
		if got := AnchorLengths(c.max, c.octave); !slices.Equal(got, c.want) {
			t.Errorf("AnchorLengths(%d, %d) = %v, want %v", c.max, c.octave, got, c.want)
		}
	}
}

// TestMatrixUnitsAreCandidates checks that the search tries a matrix unit early if the machine has
// one, and otherwise never.
func TestMatrixUnitsAreCandidates(t *testing.T) {
	const x86, arm = microkernel.HasAVX2 | microkernel.HasAVX512 | microkernel.HasVNNI, microkernel.HasNEON |
		microkernel.HasDotProd
	for _, c := range []struct {
		isa  microkernel.ISA
		host microkernel.Features
		unit microkernel.Features
		dot  microkernel.Dot
	}{
		{microkernel.AVX512, x86, microkernel.HasAMX, microkernel.AMX},
		{microkernel.NEON, arm, microkernel.HasSME | microkernel.HasSME512 | microkernel.HasSMEInt8, microkernel.MOPA},
	} {
		for _, b := range []microkernel.WeightType{microkernel.Q8_0, microkernel.Q4_0, microkernel.Q4_K,
			microkernel.Q6_K} {
			first := func(host microkernel.Features) (at int) {
				for i, g := range groupTiles(Candidates(host, c.isa, microkernel.ComputeInt8, b), 512, 4096) {
					for _, k := range g.variants {
						if k.Spec.Dot == c.dot {
							return i
						}
					}
				}
				return -1
			}
			if at := first(c.host); at >= 0 {
				t.Errorf("%s: %s offered to a host without it", b, c.unit)
			}
			if at := first(c.host | c.unit); at < 0 || at > 4 {
				t.Errorf("%s: %s is tile %d", b, c.unit, at)
			}
		}
	}
}

func TestPolymerizations(t *testing.T) {
	want := [][2]int{{0, 0}, {1, 6}, {2, 3}, {3, 2}, {6, 1}}
	if got := Polymerizations(6); !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

// TestProposalsAreLegal checks that every schedule that any strategy proposes is legal in plans, by
// validating a table of them.
func TestProposalsAreLegal(t *testing.T) {
	for _, key := range []plans.WeightKey{{N: 768, K: 768, Type: "q8_0"}, {N: 40, K: 96, Type: "q4_0"},
		{N: 1000, K: 288, Type: "f16"}, {N: 4096, K: 11008, Type: "bf16"}} {
		for _, strategy := range Strategies() {
			h := newMachine(9)
			p := h.problem(key, 96, Quick)
			o := h.options(Quick, 3*time.Second)
			o.Strategy = strategy
			o.Progress = func(e Event) {
				s := e.Schedule
				if e.Stage == "incumbent" {
					return
				}
				step := 16
				if wt, err := microkernel.ParseWeightType(key.Type); err == nil {
					step = max(step, wt.KStep())
				}
				switch {
				case s.Kernel.Validate() != nil,
					s.BM < 1 || s.BM%s.Kernel.MR != 0, s.BN < 1 || s.BN%s.Kernel.NR != 0, s.BK < 0 || s.BK%step != 0,
					s.WaysM != 0 && s.WaysM*s.WaysN != h.threads,
					s.Widen == (s.Kernel.B.String() == key.Type):
					t.Fatalf("%s %s m %d: illegal %s", strategy, key, e.M, s)
				}
			}
			if _, err := Search(context.Background(), p, h, o); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// TestFormsOfCandidatesAreKernels checks that the default heuristic's prefetch of a candidate's
// first trial exists for that candidate. Matrix units have none.
func TestFormsOfCandidatesAreKernels(t *testing.T) {
	hosts := map[microkernel.ISA]microkernel.Features{
		microkernel.AVX512: microkernel.HasAVX2 | microkernel.HasAVX512 | microkernel.HasVNNI | microkernel.HasAMX,
		microkernel.NEON:   microkernel.HasNEON | microkernel.HasDotProd | microkernel.HasSME | microkernel.HasSMEInt8,
	}
	for isa, host := range hosts {
		for _, k := range Candidates(host, isa, microkernel.ComputeInt8, microkernel.Q4_K) {
			for _, m := range []int{1, 16, 17, 64, 512} {
				if form, _ := k.at(m); form.Spec.Validate() != nil {
					t.Fatalf("M = %d: %v", m, form.Spec.Validate())
				}
			}
		}
	}
}
