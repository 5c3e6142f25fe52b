package replay

import (
	"math"
	"testing"
	"time"

	"sandwich/runtime/sched"
)

// TestPaceIsFound checks the pace of a machine that was twice as slow for some seconds, for any
// forwards, and that a constant error of the costs does not change it.
func TestPaceIsFound(t *testing.T) {
	var samples []Sample
	slow := func(at time.Duration) float64 {
		if at >= 3*time.Second && at < 5*time.Second {
			return 2
		}
		return 1
	}
	for at := time.Duration(0); at < 10*time.Second; {
		took := time.Duration(float64(10*time.Millisecond) * slow(at))
		samples = append(samples, Sample{at, took, 30 * time.Millisecond})
		at += took
	}
	p := NewPace(samples)
	if ratio := p.At(3500*time.Millisecond) / p.At(time.Second); math.Abs(ratio-2) > 0.01 {
		t.Errorf("where forwards took twice as long the pace is %.2f times the one before", ratio)
	}
	if p.At(-time.Second) != p.At(0) || p.At(time.Hour) != p.At(9*time.Second) {
		t.Error("before and behind the run the pace is not that of its ends")
	}
	var sum float64
	for i := range samples {
		sum += p.At(samples[i].At) * samples[i].Usual.Seconds()
	}
	if usual := 0.03 * float64(len(samples)); math.Abs(sum/usual-1) > 0.01 {
		t.Errorf("all in all forwards take %.3f of the usual", sum/usual)
	}
	if low, high := p.Range(); high/low < 1.9 || high/low > 2.1 {
		t.Errorf("the pace lies between %.2f and %.2f", low, high)
	}
	if low, high := (Pace{}).Range(); low != 1 || high != 1 || (Pace{}).At(time.Hour) != 1 {
		t.Error("a machine of which nothing is known has a pace")
	}
}

// TestReplayFollowsThePace checks that requests during a slow period take longer, including a
// halted prefill, and that others do not.
func TestReplayFollowsThePace(t *testing.T) {
	run := func(p Pace) *Report {
		o := options()
		o.Pace = p
		r, err := Run(Trace{
			{At: 0, Prompt: 64, Output: 20},
			{At: 4 * time.Second, Class: sched.Proactive, Prompt: 64, Output: 2},
			{At: 4*time.Second + 20*time.Millisecond, Prompt: 64, Output: 20},
			{At: 8 * time.Second, Prompt: 64, Output: 20},
		}, flat{}, o)
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	usual, slow := run(Pace{}), run(Pace{windows: []float64{1, 1, 1, 1, 3, 3, 1}})
	if slow.Sched.Stops == 0 {
		t.Error("no prefill was halted")
	}
	for i, want := range []float64{1, 3, 3, 1} {
		ratio := slow.Outcomes[i].Latency().Seconds() / usual.Outcomes[i].Latency().Seconds()
		if math.Abs(ratio/want-1) > 0.15 {
			t.Errorf("request %d takes %.2f times as long, want %.2f", i, ratio, want)
		}
	}
}
