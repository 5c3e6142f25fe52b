package sched

import (
	"slices"
	"sync"
	"testing"
	"time"
)

// rig is a clock and an executor of forwards that take a second. During Run it posts the events
// that are planned for the forward.
type rig struct {
	mu      sync.Mutex
	s       *Scheduler
	d       *Driver
	now     time.Duration
	posts   map[int][]Event // by forward, from 1
	made    map[ID]int
	want    map[ID]int
	halting bool
	closing bool
	log     []Action // forwards and what is carried out
	rows    []Rows
	begun   int // forwards
	waits   int
}

func newRig(cfg Config) *rig {
	r := &rig{s: mustNew(cfg), posts: map[int][]Event{}, made: map[ID]int{}, want: map[ID]int{}}
	r.d = NewDriver(r.s, &r.mu, r, r)
	return r
}

func (r *rig) arrival(id ID, class Class, prompt, want int) Event {
	r.want[id] = want
	return Event{Kind: Arrive, ID: id, Class: class, PromptTokens: prompt, MaxTokens: want}
}

func (r *rig) Now() time.Duration { return r.now }

// Wait ends the drive when nothing runs and nothing more is planned.
func (r *rig) Wait(idle bool) bool {
	r.waits++
	return !idle && !r.closing
}

func (r *rig) Carry(a *Action) {
	r.halting = r.halting || a.Kind == Halt
	r.log = append(r.log, *a)
}

func (r *rig) Begin(f *Action) {
	r.halting = false
	r.begun++
	r.log = append(r.log, *f)
}

func (r *rig) Run(f *Action) (lane LaneID, done bool) {
	r.rows = append(r.rows[:0], f.Rows...)
	r.now += time.Second
	for _, e := range r.posts[r.begun] {
		r.mu.Lock()
		r.d.Post(e)
		r.mu.Unlock()
	}
	if !slices.Equal(r.rows, f.Rows) {
		panic("the forward in flight changed while it ran")
	}
	return f.Lane, !r.halting
}

func (r *rig) End(f *Action, done bool, events []Event) []Event {
	rows := append(r.rows[:0], f.Rows...)
	switch {
	case !done:
		return events
	case f.Kind != Decode && f.Last:
		rows = append(rows, Rows{f.ID, f.N})
	}
	for _, of := range rows {
		id := of.ID
		if r.made[id]++; r.made[id] == r.want[id] {
			events = append(events, Event{Kind: Finish, ID: id})
		} else {
			events = append(events, Event{Kind: Sampled, ID: id})
		}
	}
	return events
}

// kinds returns the kinds of all actions in order.
func (r *rig) kinds() (out []ActionKind) {
	for _, a := range r.log {
		out = append(out, a.Kind)
	}
	return out
}

// TestDrive checks that the driver runs requests to their ends, that a reactive arrival halts a
// proactive prefill, and that a rejection is carried out during a forward.
func TestDrive(t *testing.T) {
	r := newRig(Config{Blocks: 4, MaxRunning: 2, Queue: 4, Chunk: 64})
	r.posts[1] = []Event{r.arrival(2, Reactive, 9, 2), r.arrival(3, Reactive, 1000, 1), r.arrival(4, Reactive, 9, 1)}
	r.d.Post(r.arrival(1, Proactive, 60, 2))
	r.d.Drive()
	want := []ActionKind{Prefill, Halt, Reject, Prefill, Decode, Prefill, Resume, Decode}
	if got := r.kinds(); !slices.Equal(got, want) {
		t.Fatalf("carried out %v: %+v, want %v", got, r.log, want)
	}
	if r.log[0].Set == r.log[3].Set || r.log[0].Set != r.log[6].Set {
		t.Errorf("sets %d, %d between and %d", r.log[0].Set, r.log[3].Set, r.log[6].Set)
	}
	if r.made[1] != 2 || r.made[2] != 2 || r.made[4] != 1 || !r.d.Idle() {
		t.Errorf("%v tokens were made, idle: %v", r.made, r.d.Idle())
	}
}

// TestCancelHalts checks that a prefill whose only request is cancelled halts and is not resumed,
// and that the other requests of a decode batch continue.
func TestCancelHalts(t *testing.T) {
	for _, class := range []Class{Reactive, Proactive} {
		r := newRig(Config{Blocks: 4, MaxRunning: 2, Queue: 4, Chunk: 64})
		r.posts[1] = []Event{{Kind: Cancel, ID: 1}}
		r.posts[4] = []Event{{Kind: Cancel, ID: 2}}
		for id := range ID(3) {
			r.d.Post(r.arrival(id+1, class, 60, 3))
		}
		r.d.Drive()
		want := []ActionKind{Prefill, Halt, Prefill, Decode, Prefill, Decode, Decode}
		if got := r.kinds(); !slices.Equal(got, want) {
			t.Errorf("%s: carried out %v: %+v, want %v", class, got, r.log, want)
		}
		if st := r.s.Stats(); st.Stops != 1 || st.Free != st.Blocks {
			t.Errorf("%s: %+v", class, st)
		}
	}
}

// TestClockEndsDrive checks that the clock is asked before each forward and can end the drive.
func TestClockEndsDrive(t *testing.T) {
	r := newRig(Config{Blocks: 4, MaxRunning: 2, Chunk: 64})
	r.d.Drive()
	if r.waits != 1 || len(r.log) != 0 {
		t.Errorf("%d waits, %+v", r.waits, r.log)
	}
	if r.d.Post(r.arrival(1, Reactive, 5, 1)); r.d.Idle() {
		t.Error("an arrival was posted, and the driver is idle")
	}
	r.d.Drive()
	if r.waits != 3 || r.made[1] != 1 {
		t.Errorf("%d waits, %v tokens", r.waits, r.made)
	}
	r.closing = true
	r.d.Post(r.arrival(2, Reactive, 5, 1))
	r.d.Drive()
	if r.made[2] != 0 {
		t.Error("a forward ran after the end")
	}
}

// TestDriveAllocatesNothing checks that the driver allocates nothing per token.
func TestDriveAllocatesNothing(t *testing.T) {
	r := newRig(Config{Blocks: 100_000, MaxRunning: 16, Queue: 16, Chunk: 64})
	for id := range ID(16) {
		r.d.Post(r.arrival(id, Reactive, 64, 1<<18))
	}
	token := func() {
		r.log = r.log[:0]
		r.d.Run(r.d.Next())
	}
	for range 200 {
		token()
	}
	if got := testing.AllocsPerRun(500, token); got != 0 {
		t.Errorf("%v allocations a step", got)
	}
}
