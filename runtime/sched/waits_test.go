package sched

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"sandwich/runtime/kvcache"
)

// TestBoundedWaits overloads the scheduler for ever: whenever a place is free
// somebody arrives, so that there is always younger work that could run instead.
// Each request must still finish after its own work and that of the requests
// before it, each forward of which may be followed by one of the other phase, and
// which under pressure are computed again at most as often as they produce a
// token. Aging is one forward a millisecond here.
func TestBoundedWaits(t *testing.T) {
	for seed := range uint64(200) {
		rng := rand.New(rand.NewPCG(seed, 2))
		cfg := Config{
			Blocks: 4 + rng.IntN(20), MaxRunning: 1 + rng.IntN(6), Queue: 1 + rng.IntN(4), Chunk: 64,
			Aging: time.Duration(20+rng.IntN(200)) * time.Millisecond,
		}
		const most, want = 200, 6
		work := (most+63)/64 + want
		bound := int(cfg.Aging/time.Millisecond) + 2*want*work*(2*cfg.Queue+cfg.MaxRunning+1)
		d := newDriver(cfg, rng)
		next := ID(1)
		for d.forwards < 4000 {
			for st := d.stats(); st.Waiting[0] < cfg.Queue || st.Waiting[1] < cfg.Queue; st = d.stats() {
				class := Class(rng.IntN(2))
				if st.Waiting[class] >= cfg.Queue {
					class = 1 - class
				}
				prompt := make([]int32, 1+rng.IntN(most-want))
				prompt[0] = int32(next) // nothing is shared
				d.arrive(next, class, prompt, 1+rng.IntN(want))
				next++
				if err := d.step(); err != nil {
					t.Fatalf("seed %d: %v", seed, err)
				}
			}
			if d.flight != nil {
				d.now = d.ends
				d.land()
			}
			if err := d.step(); err != nil {
				t.Fatalf("seed %d: %v", seed, err)
			}
			for id, c := range d.live {
				if c.forwards > bound {
					t.Fatalf("seed %d: %s request %d waits since %d forwards, bound %d", seed, c.class, id, c.forwards, bound)
				}
			}
		}
		if err := d.drain(100_000); err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
	}
}

// run lands forwards until n have started and returns them in order.
func (d *driver) run(t *testing.T, n int) (out []Action) {
	t.Helper()
	for range n {
		if d.flight != nil {
			d.now = d.ends
			d.land()
		}
		if err := d.step(); err != nil {
			t.Fatal(err)
		}
		if d.flight == nil {
			break
		}
		out = append(out, *d.flight)
	}
	return out
}

func roomy() Config { return Config{Blocks: 1000, MaxRunning: 16, Queue: 16, Chunk: 64} }

func prompt(id ID, n int) []int32 {
	p := make([]int32, n)
	p[0] = int32(id)
	return p
}

func testDriver(cfg Config) *driver { return newDriver(cfg, rand.New(rand.NewPCG(1, 1))) }

// A long prompt and a running decode alternate: neither starves.
func TestPrefillAndDecodeAlternate(t *testing.T) {
	d := testDriver(roomy())
	d.arrive(1, Reactive, prompt(1, 10), 50)
	d.run(t, 1)
	d.arrive(2, Reactive, prompt(2, 64*6), 5)
	acts := d.run(t, 12)
	for i, a := range acts {
		if want := []ActionKind{Decode, Prefill}[i%2]; a.Kind != want {
			t.Fatalf("forward %d is %+v, want kind %d", i, a, want)
		}
	}
	if last := acts[len(acts)-1]; !last.Last || last.Pos+last.N != 64*6 {
		t.Fatalf("last chunk is %+v", last)
	}
}

// A reactive request goes before proactive ones in prefill and in the queue.
func TestReactiveGoesFirst(t *testing.T) {
	cfg := roomy()
	cfg.MaxRunning = 2
	d := testDriver(cfg)
	for id := ID(1); id <= 4; id++ {
		d.arrive(id, Proactive, prompt(id, 64*8), 5)
	}
	d.run(t, 1)
	d.arrive(9, Reactive, prompt(9, 64*2), 5)
	acts := d.run(t, 3)
	if acts[0].ID != 9 || acts[1].ID != 9 || !acts[1].Last || acts[2].Kind != Decode || acts[2].Rows[0].ID != 9 {
		t.Fatalf("after the reactive arrival ran %+v", acts)
	}
	if st := d.stats(); st.Preemptions != 0 || st.Running != [2]int{1, 2} {
		t.Fatalf("the proactive sequences did not pause with their blocks: %+v", st)
	}
}

// Proactive sequences that a full batch of reactive ones leaves out keep what they
// computed, and go on when there are rows again.
func TestPausedKeepTheirBlocks(t *testing.T) {
	cfg := roomy()
	cfg.MaxRunning, cfg.Aging = 2, time.Hour
	d := testDriver(cfg)
	for id := ID(1); id <= 4; id++ {
		d.arrive(id, Proactive, prompt(id, 100), 20)
	}
	d.run(t, 6) // the first two decode
	for id := ID(5); id <= 8; id++ {
		d.arrive(id, Reactive, prompt(id, 10), 20)
	}
	seen := map[ID]bool{}
	for d.live[8] != nil {
		for _, a := range d.run(t, 1) {
			for _, id := range a.ids() {
				seen[id] = true
			}
		}
		if d.live[7] != nil && (d.live[1].computed < 100 || d.live[2].computed < 100) {
			t.Fatal("a paused sequence lost what it had computed")
		}
	}
	if err := d.drain(500); err != nil {
		t.Fatal(err)
	}
	if st := d.stats(); st.Evictions == 0 || st.Preemptions != 0 || st.RecomputedTokens != 0 || !seen[7] {
		t.Fatalf("%+v, want evictions from batches only", st)
	}
}

// A halted proactive prefill is resumed as it was once the reactive one is through.
func TestHaltAndResume(t *testing.T) {
	d := testDriver(roomy())
	d.arrive(1, Proactive, prompt(1, 100), 3)
	first := d.run(t, 1)[0]
	d.arrive(2, Reactive, prompt(2, 10), 1)
	if err := d.step(); err != nil || !d.halting {
		t.Fatalf("the reactive arrival does not halt %+v: %v", first, err)
	}
	d.halt()
	acts := d.run(t, 2)
	if acts[0].ID != 2 || acts[0].Set == first.Set || acts[1].Kind != Resume || acts[1].ID != 1 || acts[1].N != first.N || acts[1].Set != first.Set {
		t.Fatalf("after the halt ran %+v", acts)
	}
	if err := d.drain(100); err != nil {
		t.Fatal(err)
	}
}

// Mixed decode batches leave out the longest, then the newest proactive
// sequences; batches of one class take everybody; aged ones stay.
func TestMixedCap(t *testing.T) {
	cfg := roomy()
	cfg.Aging = time.Hour
	d := testDriver(cfg)
	for i, n := range []int{30, 10, 60, 10, 10} {
		d.arrive(ID(i+1), Proactive, prompt(ID(i+1), n), 400)
	}
	acts := d.run(t, 30)
	if got := len(acts[len(acts)-1].Rows); got != 5 {
		t.Fatalf("a proactive batch has %d rows, want 5", got)
	}
	d.arrive(9, Reactive, prompt(9, 5), 400)
	acts = d.run(t, 6)
	got := acts[len(acts)-1].ids()
	if len(got) != 3 || got[0] != 9 || got[1] != 2 || got[2] != 4 {
		t.Fatalf("mixed batch is %v, want 9 and the shortest and oldest two", got)
	}
	d.now += 2 * time.Hour
	d.ends = d.now
	got = d.run(t, 1)[0].ids()
	if len(got) != 4 || got[0] != 1 || got[1] != 3 || got[2] != 5 || got[3] != 9 {
		t.Fatalf("after aging the batch is %v, want the aged 1, 3, 5 and the reactive 9", got)
	}
}

// Out of blocks the newest sequence of the lowest class goes, and comes back.
func TestNewestOfLowestClassIsPreempted(t *testing.T) {
	cfg := roomy()
	cfg.Blocks, cfg.MaxRunning = 8, 4
	d := testDriver(cfg)
	d.arrive(1, Proactive, prompt(1, 60), 200)
	d.arrive(2, Proactive, prompt(2, 60), 200)
	d.arrive(3, Reactive, prompt(3, 60), 200)
	var order []ID
	for range 400 {
		if d.flight != nil {
			d.now = d.ends
			d.land()
		}
		before := map[ID]int{}
		for id, c := range d.live {
			before[id] = c.preempted
		}
		if err := d.step(); err != nil {
			t.Fatal(err)
		}
		for id, c := range d.live {
			if c.preempted > before[id] {
				order = append(order, id)
			}
		}
	}
	if len(order) == 0 || order[0] != 2 {
		t.Fatalf("preempted in the order %v, want 2 first", order)
	}
	for _, id := range order {
		if id == 3 {
			t.Fatalf("the reactive sequence was preempted: %v", order)
		}
	}
	if err := d.drain(2000); err != nil {
		t.Fatal(err)
	}
}

func TestRejections(t *testing.T) {
	cfg := Config{Blocks: 2, MaxRunning: 1, Queue: 1, Chunk: 64}
	s := mustNew(cfg)
	reasons := func(acts []Action) (out []Reason) {
		for _, a := range acts {
			if a.Kind == Reject {
				out = append(out, a.Reason)
				if (a.RetryAfter > 0) != (a.Reason == QueueFull) {
					t.Fatalf("retry after %v for %v", a.RetryAfter, a.Reason)
				}
			}
		}
		return out
	}
	acts := s.Step(0, []Event{
		{Kind: Arrive, ID: 1, PromptTokens: 100, MaxTokens: 28},
		{Kind: Arrive, ID: 2, PromptTokens: 100, MaxTokens: 29},
		{Kind: Arrive, ID: 3, PromptTokens: 0, MaxTokens: 1},
		{Kind: Arrive, ID: 1, PromptTokens: 1, MaxTokens: 1},
		{Kind: Arrive, ID: 4, PromptTokens: 1 << 62, MaxTokens: 1 << 62},
		{Kind: Arrive, ID: 5, PromptTokens: 1, MaxTokens: 1},
	})
	if got := reasons(acts); len(got) != 4 || got[0] != TooLong || got[1] != Invalid || got[2] != Invalid || got[3] != TooLong {
		t.Fatalf("rejected for %v", got)
	}
	// One runs, one waits; a flood of the other class has its own queue.
	acts = s.Step(0, []Event{
		{Kind: Arrive, ID: 6, PromptTokens: 1, MaxTokens: 1},
		{Kind: Arrive, ID: 7, Class: Proactive, PromptTokens: 1, MaxTokens: 1},
		{Kind: Arrive, ID: 8, Class: Proactive, PromptTokens: 1, MaxTokens: 1},
	})
	if got := reasons(acts); len(got) != 2 || got[0] != QueueFull || got[1] != QueueFull || s.Live() != 3 {
		t.Fatalf("rejected for %v, %d live", got, s.Live())
	}
}

// A driver that samples beyond MaxTokens cannot wedge the scheduler.
func TestTooManySamplesAreRejected(t *testing.T) {
	s := mustNew(Config{Blocks: 1, MaxRunning: 1})
	s.Step(0, []Event{{Kind: Arrive, ID: 1, PromptTokens: 63, MaxTokens: 1}})
	s.Step(0, []Event{{Kind: Done}, {Kind: Sampled, ID: 1}})
	acts := s.Step(0, []Event{{Kind: Done}, {Kind: Sampled, ID: 1}})
	if len(acts) != 1 || acts[0].Kind != Reject || s.Live() != 0 {
		t.Fatalf("got %+v with %d live", acts, s.Live())
	}
}

// A driver that says that a request goes on, and not with what, cannot wedge it either.
func TestSampleWithoutTokenIsRejected(t *testing.T) {
	s := mustNew(Config{Blocks: 1, MaxRunning: 1})
	s.Step(0, []Event{{Kind: Arrive, ID: 1, Prompt: []int32{1, 2}, MaxTokens: 9}})
	acts := s.Step(0, []Event{{Kind: Done}, {Kind: Sampled, ID: 1}})
	if len(acts) != 1 || acts[0].Kind != Reject || acts[0].Reason != Invalid || s.Live() != 0 {
		t.Fatalf("got %+v with %d live", acts, s.Live())
	}
}

// Tokens that no row of the forward has computed are computed like a prompt.
func TestManySampledTokens(t *testing.T) {
	s := mustNew(Config{Blocks: 2, MaxRunning: 4})
	s.Step(0, []Event{{Kind: Arrive, ID: 1, Prompt: []int32{1, 2}, MaxTokens: 9}})
	acts := s.Step(0, []Event{{Kind: Done}, {Kind: Sampled, ID: 1, Tokens: []int32{3, 4, 5}}})
	if len(acts) != 1 || acts[0].Kind != Prefill || acts[0].Pos != 2 || acts[0].N != 3 {
		t.Fatalf("three tokens behind a prompt of two give %+v", acts)
	}
	acts = s.Step(0, []Event{{Kind: Done}, {Kind: Sampled, ID: 1, Tokens: []int32{6}, Draft: []int32{7, 8, 9, 10, 11}}})
	if len(acts) != 1 || acts[0].Kind != Decode || acts[0].Rows[0] != (Rows{1, 4}) {
		t.Fatalf("a draft of five gives %+v, want the four rows there are", acts)
	}
	acts = s.Step(0, []Event{{Kind: Done}, {Kind: Sampled, ID: 1, Tokens: []int32{7, 8, 12}}})
	if len(acts) != 1 || acts[0].Kind != Decode || acts[0].Rows[0] != (Rows{1, 1}) {
		t.Fatalf("two right guesses give %+v, want the row of the token behind them", acts)
	}
	var b kvcache.Batch
	if s.Fill(&b); b.Spans[0].Pos != 8 || !slices.Equal(b.Tokens, []int32{12}) {
		t.Fatalf("the batch is %+v, want token 12 at position 8", b)
	}
}

// Thousands of clients that hang up leave nothing behind.
func TestHangUps(t *testing.T) {
	cfg := roomy()
	cfg.Queue = 2000
	d := testDriver(cfg)
	for id := ID(1); id <= 1000; id++ {
		d.arrive(id, Class(id%2), prompt(id, 200), 10)
	}
	d.run(t, 3)
	for id := ID(1); id <= 1000; id++ {
		if d.live[id] != nil {
			d.cancel(id)
		}
	}
	if err := d.drain(2); err != nil {
		t.Fatal(err)
	}
}

func TestStepDoesNotAllocate(t *testing.T) {
	s, step := steady(16)
	for range 200 {
		step()
	}
	if got := testing.AllocsPerRun(500, step); got != 0 {
		t.Fatalf("%v allocations a step", got)
	}
	if s.Live() != 16 {
		t.Fatalf("%d live", s.Live())
	}
}

// steady returns a scheduler with n endless decodes and a function that runs one
// token of each.
func steady(n int) (*Scheduler, func()) {
	s := mustNew(Config{Blocks: 100_000, MaxRunning: n, Chunk: 64})
	events, token := []Event{}, []int32{7}
	for i := range n {
		events = append(events, Event{Kind: Arrive, ID: ID(i), Prompt: prompt(ID(i), 64), MaxTokens: 1 << 18})
	}
	acts := s.Step(0, events)
	return s, func() {
		events = append(events[:0], Event{Kind: Done})
		switch a := acts[len(acts)-1]; a.Kind {
		case Decode:
			for _, r := range a.Rows {
				events = append(events, Event{Kind: Sampled, ID: r.ID, Tokens: token})
			}
		case Prefill:
			if a.Last {
				events = append(events, Event{Kind: Sampled, ID: a.ID, Tokens: token})
			}
		}
		acts = s.Step(0, events)
	}
}

func BenchmarkStep(b *testing.B) {
	var step func()
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		if i%(1<<17) == 0 {
			b.StopTimer()
			_, step = steady(16)
			for range 40 {
				step()
			}
			b.StartTimer()
		}
		step()
	}
}

// Where the only decoder has to give way to an older prompt, the prompt goes on.
func TestDecoderGivesWayToPrefill(t *testing.T) {
	d := testDriver(Config{Blocks: 6, MaxRunning: 2, Queue: 2, Chunk: 1})
	d.arrive(1, Reactive, prompt(1, 250), 3)
	d.arrive(2, Reactive, prompt(2, 1), 200)
	for d.live[2].preempted == 0 {
		if d.run(t, 1) == nil {
			t.Fatal("nothing runs")
		}
	}
	if f := *d.flight; f.Kind != Prefill || f.ID != 1 {
		t.Fatalf("in place of the preempted decoder runs %+v", f)
	}
	if err := d.drain(2000); err != nil {
		t.Fatal(err)
	}
}
