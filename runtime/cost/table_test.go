package cost

import (
	"math/rand/v2"
	"testing"
	"time"

	"sandwich/runtime/phase"
)

// machine returns a table, and the costs of the ops that it will observe, of two classes of
// workers.
func machine() (*Table, func(op int, l Load) time.Duration) {
	t := New([]Class{
		{Name: "product", Prior: [2]Prior{{Row: 1e-5, Fixed: 1e-4}, {Row: 1e-5, Fixed: 1e-4}}},
		{Name: "attention", Attend: true, Prior: [2]Prior{{Position: 1e-7}, {Position: 1e-7}}},
		{Name: "head", Head: true, Prior: [2]Prior{{Row: 1e-3}, {Row: 1e-3}}},
	}, []int{0, 1, 0, 1, 2})
	return t, func(op int, l Load) time.Duration {
		switch op {
		case 4:
			return time.Duration(l.Heads) * 2 * time.Millisecond
		case 1, 3:
			return time.Duration(l.Positions) * 3 * time.Microsecond
		}
		return max(500*time.Microsecond, time.Duration(l.Rows)*70*time.Microsecond)
	}
}

// run tells the table of one forward, some of whose times are off by noise.
func run(t *Table, of phase.Phase, l Load, cost func(int, Load) time.Duration, noise func() float64) {
	for op := range t.Ops() {
		for range 4 {
			t.Observe(op, 4, time.Duration(noise()*float64(cost(op, l))/4))
		}
	}
	t.Learn(of, l)
}

// TestPredictionsCorrectThemselves checks that predictions become right after some forwards, for
// every prior and after the machine became ten times slower or faster, although one forward in
// fifty contains a pause.
func TestPredictionsCorrectThemselves(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	table, cost := machine()
	within := func(when string, factor float64, l Load) {
		t.Helper()
		want := time.Duration(0)
		for op := range table.Ops() {
			want += time.Duration(factor * float64(cost(op, l)))
		}
		if got := table.Forward(phase.Prefill, l); float64(got) < 0.7*float64(want) ||
			float64(got) > 1.4*float64(want) {
			t.Errorf("%s: %+v is predicted at %s, takes %s", when, l, got, want)
		}
	}
	load := Span(512, 256)
	load.Heads = 1
	for _, stage := range []struct {
		factor float64
		n      int
	}{{1, 1}, {10, 24}, {1, 24}, {0.1, 24}} {
		for range stage.n {
			run(table, phase.Prefill, load, cost, func() float64 {
				if stage.n > 1 && rng.IntN(50) == 0 {
					return 3 * stage.factor
				}
				return stage.factor * (0.95 + 0.1*rng.Float64())
			})
		}
		within("trained", stage.factor, load)
	}
	// A load that was not seen is predicted by the nearest one, the other phase by this one.
	if l := Span(512, 400); table.Forward(phase.Prefill, l) <= table.Forward(phase.Prefill, Span(512, 100)) {
		t.Error("more rows are not predicted to take longer")
	}
	if got := table.Forward(phase.Decode, Span(100, 1)); got <= 0 {
		t.Errorf("a decode step is predicted at %s", got)
	}
}

// TestWhole checks that a table that observed slow and then fast forwards predicts the last ones,
// and that Whole predicts the mean of all.
func TestWhole(t *testing.T) {
	table, cost := machine()
	load := Span(0, 100)
	load.Heads = 1
	for i := range 100 {
		slow := 1.0
		if i < 25 {
			slow = 5
		}
		run(table, phase.Prefill, load, cost, func() float64 { return slow })
		table.ObserveBetween(time.Duration(slow * float64(time.Millisecond)))
	}
	late, whole := table.Forward(phase.Prefill, load), table.Whole().Forward(phase.Prefill, load)
	if ratio := whole.Seconds() / late.Seconds(); ratio < 1.99 || ratio > 2.01 {
		t.Errorf("of late %s, all in all %s", late, whole)
	}
	if late, whole := table.Between(), table.Whole().Between(); late > 1010*time.Microsecond ||
		(whole-2*time.Millisecond).Abs() > time.Microsecond {
		t.Errorf("between forwards of late %s, all in all %s", late, whole)
	}
}

// TestWholeIsOfWork checks that Whole divides the total time of an op by the total work, so that a
// part of an op counts by its part of the work.
func TestWholeIsOfWork(t *testing.T) {
	table, _ := machine()
	load := Load{Rows: 100}
	for range 50 {
		table.Observe(0, 100, 30*time.Microsecond) // a hundredth of a millisecond, three times
		table.Learn(phase.Prefill, load)
	}
	table.Observe(0, 1, time.Millisecond)
	table.Learn(phase.Prefill, load)
	want := (50*30*time.Microsecond + time.Millisecond) * 2 / 3 // of one and a half ops
	if got := table.Whole().Op(phase.Prefill, 0, load); (got - want).Abs() > time.Microsecond {
		t.Errorf("all in all the op is predicted at %s, one took %s", got, want)
	}
}

func TestPriorsHoldAtFirst(t *testing.T) {
	table, _ := machine()
	if got, want := table.Op(phase.Prefill, 0, Load{Rows: 100}), time.Millisecond; got != want {
		t.Errorf("a product of 100 rows is predicted at %s, believed at %s", got, want)
	}
	if got := table.Op(phase.Prefill, 4, Load{Rows: 100}); got != 0 {
		t.Errorf("a head without rows is predicted at %s", got)
	}
	c := table.Clone()
	run(table, phase.Prefill, Load{Rows: 100}, func(int, Load) time.Duration { return time.Second },
		func() float64 { return 1 })
	if got := c.Op(phase.Prefill, 0, Load{Rows: 100}); got != time.Millisecond {
		t.Errorf("a clone learns what the original sees: %s", got)
	}
	if got := testing.AllocsPerRun(100, func() {
		table.Observe(0, 1, time.Millisecond)
		table.Learn(phase.Decode, Load{Rows: 3})
		table.Forward(phase.Decode, Load{Rows: 3})
	}); got != 0 {
		t.Errorf("%g allocations a forward", got)
	}
}
