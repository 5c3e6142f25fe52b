package load

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"sandwich/runtime/sched"
	"sandwich/tuner/replay"
)

// line is a target that serves one request at a time in order of arrival: one token of prompt or
// answer per millisecond.
type line struct{ turn chan struct{} } // has an element while a request is served

func newLine() *line { return &line{make(chan struct{}, 1)} }

func (*line) Vocab() int { return 1000 }
func (*line) Begin()     {}
func (*line) End(*Run)   {}

func (l *line) Ask(
	ctx context.Context, _ []int32, r replay.Request, token func(),
) (Stood, error) {
	came := time.Now()
	l.turn <- struct{}{}
	defer func() { <-l.turn }()
	stood := Stood{Came: came, Pending: max(1, time.Since(came))}
	if err := sleep(ctx, time.Duration(r.Prompt)*time.Millisecond); err != nil {
		return Stood{}, err
	}
	for range r.Output {
		if err := sleep(ctx, time.Millisecond); err != nil {
			return Stood{}, err
		}
		token()
	}
	return stood, nil
}

func (l *line) stage(policies ...string) *Stage {
	return &Stage{
		Open:     func(string, time.Duration) (Target, func(), error) { return l, func() {}, nil },
		Policies: policies, Seed: 1, Parallel: 2, Context: 64, Aging: time.Second, During: 50 * time.Millisecond,
		Note: func(string) {},
		Trace: replay.Trace{{Prompt: 4, Output: 4}, {At: time.Millisecond, Class: sched.Proactive, Prompt: 4,
			Output: 30},
			{At: 20 * time.Millisecond, Prompt: 4, Output: 4}},
	}
}

// TestGoals uses a server that ignores classes, so that every request waits for the backlog. Bounds
// apply only to the policy with goals, and every figure has the data it was computed from.
func TestGoals(t *testing.T) { synctest.Test(t, testGoals) }

func testGoals(t *testing.T) {
	for _, goal := range Goals() {
		list, err := newLine().stage(sched.DefaultPolicy, "fcfs").Measure(t.Context(), goal)
		if err != nil {
			t.Fatalf("%s: %v", goal, err)
		}
		bounds := 0
		for _, f := range list {
			if f.Bound > 0 {
				bounds++
			}
			if f.Goal != goal || f.Samples == 0 || f.Mixed <= 0 || f.Policy == "fcfs" && f.Bound > 0 ||
				f.Alone > 0 && f.Measured != f.Mixed/f.Alone || f.Alone == 0 && f.Measured != f.Mixed {
				t.Errorf("%s: %+v", goal, f)
			}
		}
		if bounds == 0 {
			t.Errorf("%s: nothing is bound: %+v", goal, list)
		}
		// 4 other requests of 30 ms each precede a reactive request
		if f := list[1]; goal == GoalBacklog && f.Mixed < 2*f.Alone {
			t.Errorf("with a backlog the first token comes after %g s, alone after %g s", f.Mixed, f.Alone)
		}
		if f := list[1]; goal == GoalHalt && f.Met() {
			t.Errorf("a server that does not halt meets the bound: %+v", f)
		}
	}
	if _, err := newLine().stage().Measure(t.Context(), "peace"); err == nil {
		t.Error("an unknown goal is measured")
	}
	s := newLine().stage(sched.DefaultPolicy)
	s.Trace = only(s.Trace, sched.Proactive)
	for _, goal := range []string{GoalOpen, GoalBacklog} {
		if _, err := s.Measure(t.Context(), goal); err == nil {
			t.Errorf("%s is measured without a reactive request", goal)
		}
	}
	s = newLine().stage(sched.DefaultPolicy)
	for i := range s.Trace {
		s.Trace[i].At = 0
	}
	if _, err := s.Measure(t.Context(), GoalOpen); err == nil || !strings.Contains(err.Error(), "at once") {
		t.Errorf("requests without a rate: %v", err)
	}
}

// TestLongestTurn checks that no request becomes the oldest before all earlier ones have started.
func TestLongestTurn(t *testing.T) {
	ms := time.Millisecond
	at := func(at, started time.Duration) replay.Outcome {
		return replay.Outcome{Request: replay.Request{At: at}, Started: started}
	}
	for _, c := range []struct {
		list []replay.Outcome
		want time.Duration
	}{
		{[]replay.Outcome{at(2*ms, 90*ms), at(1*ms, 40*ms)}, 50 * ms},
		{[]replay.Outcome{at(0, 40*ms), at(1*ms, 30*ms), at(39*ms, 60*ms)}, 40 * ms},
		{[]replay.Outcome{at(0, 5*ms), at(80*ms, 81*ms)}, 5 * ms},
	} {
		if got, turns := longestTurn(c.list); got != c.want || turns != len(c.list) {
			t.Errorf("%v: %s", c.list, got)
		}
	}
	if _, turns := longestTurn([]replay.Outcome{at(1, 0)}); turns > 0 {
		t.Error("a turn is known where no start is")
	}
}

// TestServiceTime checks that the bound of a first quantum includes the service time of a request,
// without its wait.
func TestServiceTime(t *testing.T) {
	r := &replay.Report{Outcomes: []replay.Outcome{
		{Started: 3 * time.Second, First: 4 * time.Second, End: 5 * time.Second, Tokens: 2},
		// from a server
		{Request: replay.Request{At: time.Second}, First: 2 * time.Second, End: 7 * time.Second, Tokens: 2},
	}}
	if got := serviceTime(r); got != 4*time.Second {
		t.Errorf("%s", got)
	}
}

func TestFigureMet(t *testing.T) {
	for _, f := range []Figure{{Measured: 2, Bound: 2}, {Measured: 1, Bound: 2}, {Measured: 3, Bound: 2, Least: true},
		{Measured: 9}} {
		if !f.Met() {
			t.Errorf("%+v is missed", f)
		}
	}
	for _, f := range []Figure{{Measured: 3, Bound: 2}, {Measured: 1, Bound: 2, Least: true}} {
		if f.Met() {
			t.Errorf("%+v is met", f)
		}
	}
}

// TestOldestIsTheTargets checks that the order of requests is the target's order of admission, not
// the order of sending: of two requests sent at once, the one admitted later counts only its own
// wait.
func TestOldestIsTheTargets(t *testing.T) {
	began := time.Now()
	list := make([]replay.Outcome, 2)
	list[0].At, list[1].At = 0, time.Millisecond
	Stood{Came: began.Add(3 * time.Millisecond), Pending: 97 * time.Millisecond}.note(&list[0], began)
	Stood{Came: began.Add(2 * time.Millisecond), Pending: 58 * time.Millisecond}.note(&list[1], began)
	if got, _ := longestTurn(list); got != 58*time.Millisecond {
		t.Errorf("%s, not 58ms", got)
	}
	var server replay.Outcome
	server.At = time.Second
	if (Stood{}).note(&server, began); server.At != time.Second || server.Started != 0 {
		t.Errorf("a server that says nothing: %+v", server)
	}
}
