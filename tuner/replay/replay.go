package replay

import (
	"fmt"
	"sync"
	"time"

	"sandwich/runtime/sched"
)

// Options configure Run.
type Options struct {
	Sched      sched.Config
	Switch     time.Duration // cost of the hot switch between the phases on the cores
	Sequential bool          // each request arrives when the previous one ends
	MaxTime    time.Duration // of the virtual clock; 0: unlimited
	Pace       Pace          // of the machine, in times since the start of the trace
}

// Outcome is the result of one request, in times since the start of the trace.
type Outcome struct {
	Request
	Rejected bool
	Started  time.Duration // start of its first forward; 0 if unknown
	First    time.Duration // end of the forward that gave the first token; 0 before
	End      time.Duration // end of the last forward; 0 if it did not finish
	Tokens   int           // generated
}

// TTFT returns the time to the first token.
func (o *Outcome) TTFT() time.Duration { return o.First - o.At }

// TPOT returns the time per output token after the first, or 0 for a single token.
func (o *Outcome) TPOT() time.Duration {
	if o.Tokens < 2 {
		return 0
	}
	return (o.End - o.First) / time.Duration(o.Tokens-1)
}

// Finished reports whether the request got all its tokens.
func (o *Outcome) Finished() bool { return o.End > 0 }

// Run replays the trace to its end and reports. It is deterministic: equal traces, costs and
// options give equal reports.
func Run(t Trace, c Cost, o Options) (*Report, error) {
	if len(t) == 0 {
		return nil, fmt.Errorf("the trace has no request")
	}
	r := &replay{cost: c, o: o, out: make([]Outcome, len(t)), left: make([][]time.Duration, len(t))}
	if o.Sched.Forecast == nil {
		believed := forecast(c)
		// As in an engine that observes the recent durations of ops.
		o.Sched.Forecast = func(rows, positions int) time.Duration {
			return o.Pace.of(believed(rows, positions), r.now)
		}
	}
	s, err := sched.New(o.Sched)
	if err != nil {
		return nil, err
	}
	r.sched = s
	r.driver = sched.NewDriver(s, &r.mu, r, r)
	r.forwards = make([]forward, len(s.Lanes()))
	for i, x := range t {
		r.out[i].Request = x
	}
	r.driver.Drive()
	if r.err != nil {
		return nil, r.err
	}
	return r.report(), nil
}

// replay is the state of one run: the virtual clock of a sched.Driver and the machine that it
// drives. Request i has the ID i+1.
type replay struct {
	cost   Cost
	o      Options
	mu     sync.Mutex // required by the driver; there is only one goroutine
	sched  *sched.Scheduler
	driver *sched.Driver
	out    []Outcome
	left   [][]time.Duration // by request, the remaining steps of its halted prefill, at the usual pace
	now    time.Duration
	next   int // index of the first request that has not arrived
	live   int
	seen   []int // positions before each row of a decode, reused
	err    error

	forwards []forward        // by lane
	last     sched.ActionKind // of the previous forward
	any      bool             // a forward has run
	switches int
	prefills int
	decodes  int
	busy     time.Duration
}

// forward is the forward in flight on a lane.
type forward struct {
	flies  bool
	first  time.Duration // start of its first step
	end    time.Duration
	steps  []time.Duration // of a prefill, in reused memory
	usual  []time.Duration // the same at the usual pace of the machine
	halted bool            // it ends between two of them
}

// Now implements sched.Clock.
func (r *replay) Now() time.Duration { return r.now }

// Wait implements sched.Clock. If nothing runs, it advances the clock to the next arrival.
func (r *replay) Wait(idle bool) bool {
	switch {
	case r.o.MaxTime > 0 && r.now > r.o.MaxTime:
		return false
	case !idle:
		return true
	case r.next < len(r.out):
		r.now = max(r.now, r.out[r.next].At)
		r.arrivals()
		return true
	case r.live > 0:
		r.err = fmt.Errorf("replay: %d requests wait at %s and nothing runs: the scheduler is stuck", r.live, r.now)
	}
	return false
}

// due reports whether the next request of the trace arrives before a time.
func (r *replay) due(before time.Duration) bool {
	if r.next == len(r.out) {
		return false
	}
	if r.o.Sequential {
		return r.live == 0
	}
	return r.out[r.next].At < before
}

// arrival returns the arrival of the next request of the trace.
func (r *replay) arrival() sched.Event {
	x := &r.out[r.next]
	if r.o.Sequential {
		x.At = r.now
	}
	r.next++
	r.live++
	return sched.Event{
		Kind: sched.Arrive, ID: sched.ID(r.next), Class: x.Class, PromptTokens: x.Prompt, MaxTokens: x.Output,
	}
}

// arrivals posts every request that has arrived up to now.
func (r *replay) arrivals() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for r.due(r.now + 1) {
		r.driver.Post(r.arrival())
	}
}

// Carry implements sched.Executor.
func (r *replay) Carry(a *sched.Action) {
	switch a.Kind {
	case sched.Reject:
		r.out[a.ID-1].Rejected = true
		r.live--
	case sched.Halt:
		r.halt(a)
	}
}

// halt ends the forward in flight on a lane after the current step, unless it ends before.
func (r *replay) halt(a *sched.Action) {
	r.stop(a, func(at, _ time.Duration) bool { return at > r.now })
}

// stop ends the forward in flight on the lane of a after the first step for which halts returns
// true, given the time at its end and the duration of the next step.
func (r *replay) stop(a *sched.Action, halts func(at, next time.Duration) bool) {
	f := &r.forwards[a.Lane]
	at := f.first
	for i, step := range f.steps {
		at += step
		if at >= f.end || i+1 == len(f.steps) {
			return
		}
		if halts(at, f.steps[i+1]) {
			r.left[a.ID-1], f.end, f.halted = f.usual[i+1:], at, true
			return
		}
	}
}

// Begin implements sched.Executor. A forward lasts as long as its cost, or the rest of it if it was
// halted before.
func (r *replay) Begin(a *sched.Action) {
	f := forward{flies: true, first: r.now, steps: r.forwards[a.Lane].steps[:0]}
	if c, ok := r.cost.(opCost); ok && r.any {
		f.first += c.Between()
	}
	lane := &r.sched.Lanes()[a.Lane]
	if r.any && lane.Cores && lane.Serves(r.last.Phase()) && a.Kind.Phase() != r.last.Phase() {
		f.first += r.o.Switch
		r.switches++
	}
	f.end = f.first
	r.last, r.any = a.Kind, true
	switch a.Kind {
	case sched.Decode:
		r.seen = r.seen[:0]
		for _, rows := range a.Rows {
			x := &r.out[rows.ID-1]
			r.seen = append(r.seen, x.Prompt+x.Tokens-1)
		}
		f.end += max(1, r.o.Pace.of(r.cost.Decode(r.seen), f.first))
		r.decodes++
	case sched.Prefill:
		if x := &r.out[a.ID-1]; x.Started == 0 {
			x.Started = f.first
		}
		f.usual = prefillSteps(r.cost, a)
		r.prefills++
	case sched.Resume:
		f.usual = r.left[a.ID-1]
		r.prefills++
	}
	for _, usual := range f.usual {
		step := r.o.Pace.of(usual, f.end)
		f.steps = append(f.steps, step)
		f.end += step
	}
	r.forwards[a.Lane] = f
	if a.Quantum > 0 {
		r.stop(a, func(at, next time.Duration) bool { return at-r.now+next > a.Quantum })
	}
}

// Run implements sched.Executor. It moves the clock to the end of the forward that ends first and
// posts the requests that arrive before, which may halt it or start another.
func (r *replay) Run(*sched.Action) (ended sched.LaneID, done bool) {
	f, lane := r.soonest()
	for !r.o.Sequential && r.due(f.end) {
		r.pass(r.out[r.next].At)
		r.arrivals()
		f, lane = r.soonest()
	}
	r.pass(f.end)
	f.flies = false
	return lane, !f.halted
}

// soonest returns the forward in flight that ends first.
func (r *replay) soonest() (f *forward, lane sched.LaneID) {
	for i := range r.forwards {
		if o := &r.forwards[i]; o.flies && (f == nil || o.end < f.end) {
			f, lane = o, sched.LaneID(i)
		}
	}
	return f, lane
}

// End implements sched.Executor. Each request whose known tokens are computed gets its next one.
func (r *replay) End(a *sched.Action, done bool, events []sched.Event) []sched.Event {
	switch {
	case !done:
		events[len(events)-1].Ahead = r.o.Pace.of(r.left[a.ID-1][0], r.now)
	case a.Kind == sched.Decode:
		for _, rows := range a.Rows {
			events = append(events, r.token(rows.ID))
		}
	case a.Last:
		events = append(events, r.token(a.ID))
	}
	for r.due(r.now + 1) {
		events = append(events, r.arrival())
	}
	return events
}

// pass advances the clock while the cores are busy.
func (r *replay) pass(to time.Duration) {
	r.busy += to - r.now
	r.now = to
}

// token gives a request its next token, after which it continues or ends.
func (r *replay) token(id sched.ID) sched.Event {
	x := &r.out[id-1]
	x.Tokens++
	if x.Tokens == 1 {
		x.First = r.now
	}
	if x.Tokens < x.Output {
		return sched.Event{Kind: sched.Sampled, ID: id}
	}
	x.End = r.now
	r.live--
	return sched.Event{Kind: sched.Finish, ID: id}
}
