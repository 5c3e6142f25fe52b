package trace

import (
	"fmt"
	"time"

	"sandwich/runtime/sched"
)

// Options of Replay.
type Options struct {
	Sched      sched.Config
	Switch     time.Duration // cost of the hot switch between the phases
	Sequential bool          // each request comes when the one before has ended
	MaxTime    time.Duration // of the virtual clock; 0: as long as it takes
}

// Outcome is what one request saw, in times since the start of the trace.
type Outcome struct {
	Request
	Rejected bool
	First    time.Duration // end of the forward that gave the first token; 0 before
	End      time.Duration // of the last one; 0 when it did not finish
	Tokens   int           // generated
}

// TTFT is the time to the first token.
func (o *Outcome) TTFT() time.Duration { return o.First - o.At }

// TPOT is the time per output token after the first; 0 for a single token.
func (o *Outcome) TPOT() time.Duration {
	if o.Tokens < 2 {
		return 0
	}
	return (o.End - o.First) / time.Duration(o.Tokens-1)
}

// Finished says whether the request got all its tokens.
func (o *Outcome) Finished() bool { return o.End > 0 }

// Replay runs the trace to its end and reports. It is deterministic: equal traces, costs and options give equal reports.
func Replay(t Trace, c Cost, o Options) (*Report, error) {
	if len(t) == 0 {
		return nil, fmt.Errorf("the trace has no request")
	}
	r := &replay{trace: t, cost: c, o: o, sched: sched.New(o.Sched), out: make([]Outcome, len(t))}
	for i, x := range t {
		r.out[i].Request = x
	}
	if err := r.run(); err != nil {
		return nil, err
	}
	return r.report(), nil
}

// replay is one run under way. Request i has the ID i+1.
type replay struct {
	trace  Trace
	cost   Cost
	o      Options
	sched  *sched.Scheduler
	out    []Outcome
	now    time.Duration
	next   int // first request that has not arrived
	live   int
	events []sched.Event
	seen   []int // positions before each row of a decode, reused

	forward  forward
	last     sched.ActionKind // of the forward before
	any      bool             // there was one
	switches int
	prefills int
	decodes  int
	busy     time.Duration
}

// forward is the forward in flight.
type forward struct {
	active  bool
	act     sched.Action
	ids     []sched.ID
	end     time.Duration
	quantum time.Duration // between op boundaries
	left    time.Duration // of a halted prefill, to be resumed
	halted  sched.ID
}

func (r *replay) run() error {
	for {
		r.arrivals()
		r.act(r.sched.Step(r.now, r.events))
		r.events = r.events[:0]
		if r.o.MaxTime > 0 && r.now > r.o.MaxTime {
			return nil
		}
		switch {
		case r.forward.active:
			r.advance()
		case r.next < len(r.trace):
			r.now = max(r.now, r.out[r.next].At)
		case r.live > 0:
			return fmt.Errorf("replay: %d requests wait at %s and nothing runs: the scheduler is stuck", r.live, r.now)
		default:
			return nil
		}
	}
}

// arrivals tells the scheduler of every request that has come up to now.
func (r *replay) arrivals() {
	for r.next < len(r.trace) {
		x := &r.out[r.next]
		if r.o.Sequential {
			if r.live > 0 {
				return
			}
			x.At = r.now
		} else if x.At > r.now {
			return
		}
		r.events = append(r.events, sched.Event{Kind: sched.Arrive, ID: sched.ID(r.next + 1), Class: x.Class, PromptTokens: x.Prompt, MaxTokens: x.Output})
		r.next++
		r.live++
	}
}

// act carries out what the scheduler decided.
func (r *replay) act(actions []sched.Action) {
	for i := range actions {
		a := &actions[i]
		switch a.Kind {
		case sched.Reject:
			r.out[a.ID-1].Rejected = true
			r.live--
		case sched.Preempt:
			if a.ID == r.forward.halted {
				r.forward.halted = 0
			}
		default:
			r.start(a)
		}
	}
}

// start begins a forward: it lasts what the cost says, or what was left of it when it was halted.
func (r *replay) start(a *sched.Action) {
	f := &r.forward
	f.active, f.act = true, *a
	var d time.Duration
	if a.Kind == sched.Decode {
		f.ids = append(f.ids[:0], a.IDs...)
		r.seen = r.seen[:0]
		for _, id := range a.IDs {
			x := &r.out[id-1]
			r.seen = append(r.seen, x.Prompt+x.Tokens-1)
		}
		d = r.cost.Decode(r.seen)
		r.decodes++
	} else {
		d = r.cost.Prefill(a.Pos, a.N, a.Last)
		if a.Kind == sched.Resume && f.halted == a.ID {
			d = f.left
			f.halted = 0
		}
		r.prefills++
	}
	f.quantum = max(1, d/time.Duration(max(1, r.cost.Ops())))
	if r.any && (a.Kind == sched.Decode) != (r.last == sched.Decode) {
		d += r.o.Switch
		r.switches++
	}
	r.last, r.any = a.Kind, true
	f.end = r.now + max(1, d)
}

// advance moves the clock to the end of the forward, or to the op boundary at which a reactive arrival halts a prefill that may be halted, or just to an arrival, which the
// scheduler hears of while the forward runs.
func (r *replay) advance() {
	f := &r.forward
	if !r.o.Sequential && r.next < len(r.trace) && r.out[r.next].At < f.end {
		x := &r.out[r.next]
		if f.act.Interruptible && x.Class == sched.Reactive {
			began := r.now
			boundary := x.At + f.quantum - (x.At-began)%f.quantum
			if boundary < f.end {
				f.left, f.halted, f.active = f.end-boundary, f.act.ID, false
				r.pass(boundary)
				r.events = append(r.events, sched.Event{Kind: sched.Stopped})
				return
			}
		} else {
			r.pass(x.At)
			return
		}
	}
	r.pass(f.end)
	f.active = false
	r.events = append(r.events, sched.Event{Kind: sched.Done})
	if f.act.Kind == sched.Decode {
		for _, id := range f.ids {
			r.token(id)
		}
	} else if f.act.Last {
		r.token(f.act.ID)
	}
}

// pass lets the clock run with the cores at work.
func (r *replay) pass(to time.Duration) {
	r.busy += to - r.now
	r.now = to
}

// token gives a request its next token.
func (r *replay) token(id sched.ID) {
	x := &r.out[id-1]
	x.Tokens++
	if x.Tokens == 1 {
		x.First = r.now
	}
	if x.Tokens < x.Output {
		r.events = append(r.events, sched.Event{Kind: sched.Sampled, ID: id})
		return
	}
	x.End = r.now
	r.live--
	r.events = append(r.events, sched.Event{Kind: sched.Finish, ID: id})
}
