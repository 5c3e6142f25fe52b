package sched

import (
	"math/rand/v2"
	"testing"
	"time"
)

// TestBoundedWaits overloads the scheduler forever: a request arrives whenever a place is free, so
// that there is always younger work. Each request must finish after its own work and that of the
// requests before it. A forward of the other phase may follow each of these forwards, and under
// memory pressure they are computed again at most once per token. Config.Aging is one forward per
// millisecond here.
func TestBoundedWaits(t *testing.T) {
	for seed := range manyHistories() / 100 {
		rng := rand.New(rand.NewPCG(seed, 2))
		cfg := Config{
			Blocks: 4 + rng.IntN(20), MaxRunning: 1 + rng.IntN(6), Queue: 1 + rng.IntN(4), Chunk: 64,
			Aging: time.Duration(20+rng.IntN(200)) * time.Millisecond,
		}
		const limit, want = 200, 6
		work := (limit+63)/64 + want
		bound := int(cfg.Aging/time.Millisecond) + 2*want*work*(2*cfg.Queue+cfg.MaxRunning+1)
		d := newDriver(cfg, rng)
		next := ID(1)
		for d.forwards < 4000 {
			for st := d.stats(); st.Waiting[0] < cfg.Queue || st.Waiting[1] < cfg.Queue; st = d.stats() {
				class := Class(rng.IntN(2))
				if st.Waiting[class] >= cfg.Queue {
					class = 1 - class
				}
				prompt := make([]int32, 1+rng.IntN(limit-want))
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
					t.Fatalf("seed %d: %s request %d waits since %d forwards, bound %d", seed, c.class, id,
						c.forwards, bound)
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

func ample() Config { return Config{Blocks: 1000, MaxRunning: 16, Queue: 16, Chunk: 64} }

func prompt(id ID, n int) []int32 {
	p := make([]int32, n)
	p[0] = int32(id)
	return p
}

func testDriver(cfg Config) *driver { return newDriver(cfg, rand.New(rand.NewPCG(1, 1))) }

// TestPrefillAndDecodeAlternate checks that a long prompt and a running decode alternate.
func TestPrefillAndDecodeAlternate(t *testing.T) {
	d := testDriver(ample())
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

// TestReactiveGoesFirst checks that reactive requests precede proactive ones in prefill and in the
// queue.
func TestReactiveGoesFirst(t *testing.T) {
	cfg := ample()
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

// TestPausedKeepTheirBlocks checks that proactive sequences without a row in a batch keep their
// blocks and continue later.
func TestPausedKeepTheirBlocks(t *testing.T) {
	cfg := ample()
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

// TestHaltAndResume checks that a halted proactive prefill resumes unchanged after the reactive
// one.
func TestHaltAndResume(t *testing.T) {
	d := testDriver(ample())
	d.arrive(1, Proactive, prompt(1, 100), 3)
	first := d.run(t, 1)[0]
	d.arrive(2, Reactive, prompt(2, 10), 1)
	if err := d.step(); err != nil || !d.halting {
		t.Fatalf("the reactive arrival does not halt %+v: %v", first, err)
	}
	d.halt()
	acts := d.run(t, 2)
	if acts[0].ID != 2 || acts[0].Set == first.Set {
		t.Fatalf("after the halt ran %+v", acts)
	}
	if next := acts[1]; next.Kind != Resume || next.ID != 1 || next.N != first.N || next.Set != first.Set {
		t.Fatalf("%+v went on as %+v", first, next)
	}
	if err := d.drain(100); err != nil {
		t.Fatal(err)
	}
}

// TestMixedCap checks that decode batches of both classes leave out the longest, then the newest
// proactive sequences but not the oldest aged one, and that batches of one class take all.
func TestMixedCap(t *testing.T) {
	cfg := ample()
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
	if len(got) != 3 || got[0] != 9 || got[1] != 1 || got[2] != 5 {
		t.Fatalf("after aging the batch is %v, want 9, the oldest aged one and the shortest", got)
	}
}

// TestNewestOfLowestClassIsPreempted checks that without free blocks the newest sequence of the
// lowest class is preempted and continues later.
func TestNewestOfLowestClassIsPreempted(t *testing.T) {
	cfg := ample()
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

// TestHangUps checks that thousands of cancelled requests leave nothing allocated.
func TestHangUps(t *testing.T) {
	cfg := ample()
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

// TestDecoderGivesWayToPrefill checks that a prompt continues after the only decoding sequence was
// preempted for it.
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
