package search

import (
	"context"
	"math"
	"testing"
	"time"

	"sandwich/microkernel"
	"sandwich/plans"
)

// TestPrefetchIsAnAxisFromTheStart checks that every strategy varies the prefetch, and that the
// paper's strategy finds the better kind while it screens and keeps it in its window.
func TestPrefetchIsAnAxisFromTheStart(t *testing.T) {
	for _, strategy := range Strategies() {
		h := newMachine(11)
		h.waits = 0.3
		p := h.problem(square, 64, Standard)
		p.Anchors = []int{1, 2, 4, 8, 16, 24, 32, 48, 64}
		o := h.options(Standard, 30*time.Second)
		o.Strategy, o.Sigma, o.Alone = strategy, 6, true
		spread, distance := map[string]int{}, 0
		o.Progress = func(e Event) {
			if e.Schedule.Kernel.Spread {
				spread[e.Stage]++
			} else {
				distance++
			}
		}
		r, err := Search(context.Background(), p, h, o)
		if err != nil {
			t.Fatal(err)
		}
		// its few fixed kernels are those of the largest M
		if len(spread) == 0 || distance == 0 && strategy != "cost-model" {
			t.Errorf("%s tried %v spread prefetches and %d at a distance", strategy, spread, distance)
		}
		if strategy != Strategies()[0] {
			continue
		}
		if spread["screening"] == 0 {
			t.Error("screening knows no spread prefetch")
		}
		for _, m := range []int{16, 32, 64} {
			if k := lookup(r.Rules, m).Kernel; !k.Spread && m > k.MR {
				t.Errorf("m %d: %s, though it waits for memory", m, k)
			}
		}
	}
}

// TestSearchCostsAThousandthOfStaticTuning compares the search for every M with a fixed number of
// trials for each M, on the clock of the simulated machine.
func TestSearchCostsAThousandthOfStaticTuning(t *testing.T) {
	const limit = 2048
	for _, sigma := range []int{4, 8, 16} {
		h := newMachine(12)
		o := h.options(Standard, 90*time.Second)
		o.Sigma, o.Alone = sigma, true
		if _, err := Search(context.Background(), h.problem(square, limit, Standard), h, o); err != nil {
			t.Fatal(err)
		}
		spent := h.clock
		s := newMachine(12)
		p := s.problem(square, limit, Standard)
		p.Anchors = []int{9, 11, 23, 45, 100, 300, 700, 1500}
		o = s.options(Standard, 10*time.Minute)
		o.Strategy, o.Alone = "static", true
		r, err := Search(context.Background(), p, s, o)
		if err != nil {
			t.Fatal(err)
		}
		if all := r.Trial * StaticTrials * limit; spent.Seconds() > all/1000 {
			t.Errorf("sigma %d takes %v, static tuning %.0f s", sigma, spent, all)
		}
	}
}

func TestFinalistsAreJudgedOverTheirRange(t *testing.T) {
	s := space{key: square, m: 128, columns: 4096, threads: 2, kernel: MicroKernel{}, unitK: 16}
	c := plans.Schedule{Kernel: microkernel.Spec{MR: 6, NR: 64}, BM: 36, BN: 192, BK: 512, WaysM: 2, WaysN: 1}
	for m, want := range map[int]float64{128: 1, 113: 1, 100: 4.0 / 3} { // 4, 4 and 3 slices of rows
		s.m = m
		if got := s.busiest(c); math.Abs(got-want) > 1e-9 {
			t.Errorf("m %d: the busiest thread has %v of the mean, want %v", m, got, want)
		}
	}
	static := s.unevenness(c, 97, 128, 128, 113)
	if want := 1 + 12.0/32/3; math.Abs(static-want) > 1e-9 { // 97 to 108 lose a third
		t.Errorf("unevenness of two ways along m %v, want %v", static, want)
	}
	c.WaysM, c.WaysN = 0, 0
	if got := s.unevenness(c, 97, 128, 128, 113); math.Abs(got-1) > 0.02 {
		t.Errorf("unevenness of slices handed out %v", got)
	}
	if got := s.unevenness(c, 128, 128, 128); got != 1 {
		t.Errorf("a range of one M loses %v to itself", got)
	}
}

func TestInsideOf(t *testing.T) {
	r := &run{}
	for _, c := range []struct{ before, m, from, inside int }{{0, 4, 4, 0}, {7, 8, 8, 0}, {8, 10, 9, 9},
		{24, 32, 25, 29}, {96, 128, 97, 113}, {768, 1024, 769, 0}} {
		if r.res.Anchors = nil; c.before > 0 {
			r.res.Anchors = []Anchor{{M: c.before}}
		}
		if from, inside := r.rangeFrom(c.m), r.insideOf(c.m); from != c.from || inside != c.inside {
			t.Errorf("anchors %d and %d: from %d, inside %d, want %d, %d", c.before, c.m, from, inside,
				c.from, c.inside)
		}
	}
}

// TestSubProblems checks that a newly measured ceiling changes no sub-problem, so that a resumed
// search requests the same trials.
func TestSubProblems(t *testing.T) {
	h := newMachine(1)
	p := h.problem(square, 2048, Standard)
	widths := func(faster float64) (out []int) {
		p.Ceiling.Bandwidth, p.Ceiling.Targets[0].Peak = faster*h.bandw, faster*2*h.peak
		r := newRun(context.Background(), &p, h, h.options(Standard, time.Second))
		for _, m := range []int{1, 16, 64, 128, 512, 2048} {
			out = append(out, r.columns(m))
		}
		return out
	}
	base := widths(1)
	for i, want := range []int{4096, 4096, 4096, 2048, 1024, 1024} {
		if base[i] != want {
			t.Errorf("sub-problems are %v columns wide", base)
			break
		}
	}
	for _, faster := range []float64{0.97, 1.03} {
		for i, n := range widths(faster) {
			if n != base[i] {
				t.Errorf("a ceiling %v times as high changes sub-problem %d from %d to %d columns", faster, i,
					base[i], n)
			}
		}
	}
}
