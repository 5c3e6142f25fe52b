package replay

import (
	"math"
	"testing"
	"time"

	"sandwich/runtime/cost"
	"sandwich/runtime/sched"
)

// TestPoissonOfTwoClasses checks the rates and mean lengths, that a class does not depend on the
// other, and that nothing exceeds the context.
func TestPoissonOfTwoClasses(t *testing.T) {
	set, err := SetsOf("cnn-dailymail", sched.Proactive)
	if err != nil {
		t.Fatal(err)
	}
	all, err := SetsOf("mixed", sched.Reactive)
	if err != nil || len(all) != 3 {
		t.Fatalf("%d reactive sets: %v", len(all), err)
	}
	a := Arrivals{sched.Reactive, 30, all}
	one, both := Poisson(time.Hour, 7, 4096, a), Poisson(time.Hour, 7, 4096, a, Arrivals{sched.Proactive, 60, set})
	var reactive Trace
	sum := 0.0
	for i, r := range both {
		if r.Prompt+r.Output > 4096 || i > 0 && r.At < both[i-1].At {
			t.Fatalf("request %d is %+v", i, r)
		}
		if r.Class == sched.Reactive {
			reactive = append(reactive, r)
		} else {
			sum += float64(r.Prompt)
		}
	}
	n := len(both) - len(reactive)
	if math.Abs(float64(n)/3600-1) > 0.1 || math.Abs(sum/float64(n)/781-1) > 0.1 {
		t.Errorf("%d proactive requests of %.0f tokens in an hour, want about 3600 of 781", n, sum/float64(n))
	}
	if len(one) != len(reactive) || one[3] != reactive[3] {
		t.Error("the reactive arrivals depend on the proactive ones")
	}
	for _, r := range both.Within(16) {
		if r.Prompt+r.Output > 16 || r.Prompt < 1 || r.Output < 1 {
			t.Fatalf("in a context of 16: %+v", r)
		}
	}
	if _, err := SetsOf("wikipedia", sched.Reactive); err == nil {
		t.Error("an unknown set is not refused")
	}
}

// table returns a machine whose prefill takes a millisecond per row in each of ten ops.
func table() Measured {
	t := cost.New([]cost.Class{{Prior: [2]cost.Prior{{Row: 1e-4}, {Row: 1e-4, Fixed: 1e-3}}}}, make([]int, 10))
	return Measured{t}
}

// TestQuantaOnTheVirtualClock checks that a decoding reactive request is slowed by a proactive
// prompt only by the quanta: 900 ms of prompt at 0.75 of a step of 10 ms after each of 199 steps.
func TestQuantaOnTheVirtualClock(t *testing.T) {
	tr := Trace{{Prompt: 8, Output: 200}, {At: 100 * time.Millisecond, Class: sched.Proactive, Prompt: 900, Output: 4}}
	o := options()
	o.Sched.Chunk = 512
	r, err := Run(tr, table(), o)
	if err != nil || r.Finished() != 2 {
		t.Fatalf("%d requests ended: %v", r.Finished(), err)
	}
	if r.Sched.Quanta < 90 || r.Sched.Stops < 90 {
		t.Errorf("%d quanta, %d halts", r.Sched.Quanta, r.Sched.Stops)
	}
	if got := r.Of(sched.Reactive).TPOT(0.5); got < 14*time.Millisecond || got > 15*time.Millisecond {
		t.Errorf("while a prompt runs, a token takes %s, 10 ms alone", got)
	}
	if got := r.Of(sched.Proactive).Mean((*Outcome).TTFT); got < 1500*time.Millisecond || got > 3*time.Second {
		t.Errorf("the prompt takes %s", got)
	}
}

// TestPoliciesOnTheVirtualClock checks that all requests finish under each policy, and that
// reactive requests wait less for their first token if the policy knows the class.
func TestPoliciesOnTheVirtualClock(t *testing.T) {
	reactive, _ := SetsOf("bfcl", sched.Reactive)
	proactive, _ := SetsOf("samsum", sched.Proactive)
	tr := Poisson(2*time.Minute, 3, 1024, Arrivals{sched.Reactive, 20, reactive},
		Arrivals{sched.Proactive, 60, proactive})
	wait := map[string]time.Duration{}
	for _, policy := range sched.Policies() {
		o := options()
		o.Sched.Policy = policy
		r, err := Run(tr, table(), o)
		if err != nil || r.Finished() != len(tr) {
			t.Fatalf("%s: %d of %d requests ended: %v", policy, r.Finished(), len(tr), err)
		}
		wait[policy] = r.Of(sched.Reactive).Mean((*Outcome).TTFT)
	}
	if wait["sandwich"] >= wait["fcfs"] || wait["preempt"] >= wait["fcfs"] {
		t.Errorf("mean times to the first token are %v", wait)
	}
}
