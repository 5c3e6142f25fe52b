package engine

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"sandwich/runtime/api"
	"sandwich/runtime/engine/forecast"
	"sandwich/runtime/pool"
	"sandwich/runtime/sched"
)

// TestCutsAreRefined checks that a prefill that halts after every step, and whose steps are divided
// again, finer or coarser, each time it resumes, gives the tokens of one that does not halt.
func TestCutsAreRefined(t *testing.T) {
	skipUnderRace(t)
	o := tinyOptions(t)
	o.Bound = 2 * time.Microsecond // which the predicted times of most ops exceed
	req := api.Request{Prompt: tinyPrompt(1, 60), MaxTokens: 4, IgnoreEOS: true}
	e := byHand(t, o)
	rng := rand.New(rand.NewPCG(1, 9))
	e.runner.Lead(func(l *pool.Leader) {
		want, j := aloneAndAgain(t, e, l, req)
		before, finer := 0, 0
		for {
			e.cores.margin = margin(1 + 3*rng.Float64())
			e.cores.costs = forecast.NewCosts(e.runner.Model, o.Plan, nil) // which do not follow the machine's load
			act := e.driver.Next()
			if act == nil {
				break
			}
			if act.Kind == sched.Decode {
				e.run(l, act)
				continue
			}
			next, steps := e.cores.next, len(e.cores.gate.steps)
			a := e.cores.gate.steps
			if act.Kind == sched.Resume && next > 0 && a[next].op == a[next-1].op && before > 0 && a[next].of > before {
				finer++
			}
			before = e.cores.gate.steps[next].of
			e.cores.gate.stop.Store(true)
			e.run(l, act)
			if e.cores.next != next+1 && e.cores.next != steps { // which a head that is not wanted ends with
				t.Errorf("a forward that was to halt behind step %d went to %d of %d", next, e.cores.next, steps)
			}
		}
		if got, _ := j.drained(); !slices.Equal(got, want) {
			t.Errorf("tokens of a prefill that was cut %v, whole %v", got, want)
		}
		if finer == 0 {
			t.Error("no step of an op that had begun was divided")
		}
	})
}

// TestMargin checks that the margin approaches the 95th percentile of the ratio of measured to
// predicted times, and falls again after a disturbance.
func TestMargin(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 9))
	var m margin
	run := func(n int, slow float64) {
		for range n {
			took := time.Millisecond
			if rng.Float64() < slow {
				took *= 3
			}
			m.note(took, time.Millisecond)
		}
	}
	run(2000, 0.01)
	if m > 1.3 {
		t.Errorf("where a hundredth of the steps is slow, the margin is %.2f", float64(m))
	}
	run(2000, 0.3)
	if m < 2.5 || m > maxMargin {
		t.Errorf("where a third takes three times as long, the margin is %.2f", float64(m))
	}
	if n := m.steps(10*time.Millisecond, 10*time.Millisecond); n < 3 {
		t.Errorf("an op that is predicted to last as long as the bound is cut into %d then", n)
	}
	run(2000, 0)
	if n := m.steps(30*time.Millisecond, 10*time.Millisecond); m > 1 || n != 3 {
		t.Errorf("undisturbed, the margin is %.2f, and 30 ms are cut into %d", float64(m), n)
	}
}

// aloneAndAgain are the tokens of a request alone, and the same one entered again as a proactive
// one that shares nothing with it.
func aloneAndAgain(t *testing.T, e *Engine, l *pool.Leader, req api.Request) (want []int32, again *job) {
	alone := e.enter(t, req)
	for e.forward(l) != nil {
	}
	want, _ = alone.drained()
	req.Class, req.Salt = sched.Proactive, [32]byte{1}
	return want, e.enter(t, req)
}
