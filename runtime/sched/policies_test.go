package sched

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

// TestEveryPolicy checks under each policy, with any predictions, that no request is lost, blocks
// and sets balance, batches are right and nothing deadlocks.
func TestEveryPolicy(t *testing.T) {
	for _, name := range Policies() {
		t.Run(name, func(t *testing.T) {
			for seed := range manyHistories() / 4 {
				h := history{seed: seed, ample: seed%2 == 0, policy: name, forecast: []float64{0, 1, 10, 0.1}[seed%4],
					ranks: seed%3 == 0}
				if _, err := randomHistory(h); err != nil {
					t.Fatal(err)
				}
			}
		})
	}
}

// TestPoliciesAgreeOnOneClass checks that without proactive requests the policies that batch in
// order of arrival give the same actions. Those that use priorities agree with each other, and the
// others ignore them.
func TestPoliciesAgreeOnOneClass(t *testing.T) {
	act := func(seed uint64, policy string, ranks bool) string {
		var got record
		h := history{seed: seed, ample: seed%2 == 0, policy: policy, record: &got, reactive: true, ranks: ranks}
		if _, err := randomHistory(h); err != nil {
			t.Fatal(err)
		}
		return got.text
	}
	differ := 0
	for seed := range uint64(300) {
		plain, ranked := act(seed, DefaultPolicy, false), act(seed, DefaultPolicy, true)
		if plain != ranked {
			differ++
		}
		for _, blind := range []string{"fcfs", "share"} {
			if act(seed, blind, true) != act(seed, blind, false) {
				t.Fatalf("seed %d: %s heeds priorities", seed, blind)
			}
		}
		if act(seed, "fcfs", false) != plain || act(seed, "preempt", false) != plain ||
			act(seed, "preempt", true) != ranked {
			t.Fatalf("seed %d: fcfs or preempt acts otherwise than %s", seed, DefaultPolicy)
		}
	}
	if differ == 0 {
		t.Error("priorities change nothing: the test tests nothing")
	}
}

type record struct{ text string }

func (r *record) Write(p []byte) (int, error) {
	r.text += string(p)
	return len(p), nil
}

// TestEveryRequestEnds checks that an endless stream of both classes starves no request under any
// policy, by aging if the policy has no other means.
func TestEveryRequestEnds(t *testing.T) {
	for _, name := range Policies() {
		if name == "eldest" {
			continue // prompts first, for ever
		}
		for _, forecast := range []time.Duration{0, time.Millisecond} {
			if err := flood(name, forecast, forecast > 0); err != nil {
				t.Errorf("%s, steps predicted at %s: %v", name, forecast, err)
			}
		}
	}
}

func flood(name string, forecast time.Duration, ranks bool) error {
	cfg := Config{Blocks: 60, MaxRunning: 3, Queue: 2, Chunk: 64, Aging: 60 * time.Millisecond, Policy: name}
	if forecast > 0 {
		cfg.Forecast = func(int, int) time.Duration { return forecast }
	}
	d, next, ended := testDriver(cfg), ID(1), [2]int{}
	if ranks {
		d.ranks = rand.New(rand.NewPCG(1, 4))
	}
	for range 6000 {
		for st := d.stats(); st.Waiting[0] < cfg.Queue || st.Waiting[1] < cfg.Queue; st = d.stats() {
			class := Reactive
			if st.Waiting[Reactive] >= cfg.Queue {
				class = Proactive
			}
			d.arrive(next, class, prompt(next, 1+int(next*37)%150), 1+int(next)%6)
			next++
			if err := d.step(); err != nil {
				return err
			}
		}
		if d.flight != nil {
			d.now = d.ends
			d.land()
		}
		if err := d.step(); err != nil {
			return err
		}
		for id, c := range d.live {
			if c.forwards > 2000 {
				return fmt.Errorf("%s request %d waits since %d forwards", c.class, id, c.forwards)
			}
		}
	}
	for id := range next {
		if d.sinceEnd[id] == "finished" {
			ended[id%2]++
		}
	}
	if ended[0] == 0 || ended[1] == 0 {
		return fmt.Errorf("%v requests ended", ended)
	}
	return nil
}

// TestQuanta checks that next to a reactive request that decodes, the quanta of a proactive prompt
// take their share of the time together, whatever was predicted, and even if the executor halts one
// op late.
func TestQuanta(t *testing.T) {
	const step, op = 8 * time.Millisecond, 3 * time.Millisecond
	for _, wrong := range []float64{0, 1, 10, 0.1} {
		cfg := ample()
		cfg.Chunk, cfg.Aging = 512, time.Hour
		if wrong > 0 {
			cfg.Forecast = func(int, int) time.Duration { return time.Duration(wrong * float64(step)) }
		}
		s, now := mustNew(cfg), time.Duration(0)
		acts := s.Step(now, []Event{
			{Kind: Arrive, ID: 1, PromptTokens: 64, MaxTokens: 900},
			{Kind: Arrive, ID: 2, Class: Proactive, PromptTokens: 4096, MaxTokens: 9},
		})
		var decode, prefill, worst time.Duration
		for range 400 {
			a := acts[len(acts)-1]
			events := []Event{{Kind: Done}}
			took := step
			switch {
			case a.Kind == Decode:
				events = append(events, Event{Kind: Sampled, ID: 1})
				decode += took
			case a.ID == 1:
				events = append(events, Event{Kind: Sampled, ID: 1})
			default:
				if a.Quantum <= 0 || a.Bound != 10*time.Millisecond {
					t.Fatalf("a proactive prefill next to reactive work is %+v", a)
				}
				took = (a.Quantum + op - 1) / op * op // the last op overruns
				events = []Event{{Kind: Stopped, Ahead: op}}
				prefill, worst = prefill+took, max(worst, took)
			}
			now += took
			acts = s.Step(now, events)
		}
		share := prefill.Seconds() / decode.Seconds()
		lo, hi := 0.7, 0.8
		if wrong == 0.1 { // less than there would be time for
			lo, hi = 0.05, 0.1
		}
		if share < lo || share > hi || worst > 12*time.Millisecond {
			t.Errorf("predicted %g times: a share of %.3f, the longest quantum %s", wrong, share, worst)
		}
		if st := s.Stats(); st.Quanta == 0 || st.Quanta-st.Stops > 1 {
			t.Errorf("%+v", st)
		}
	}
}

// credit is that of proactive prefill under the policy sandwich.
func credit(s *Scheduler) time.Duration { return s.policy.(*sandwich).credit }

// TestAnAgedPrefillYields checks that an aged prompt has quanta between the chunks of a reactive
// one, and halts for a reactive arrival whatever its credit.
func TestAnAgedPrefillYields(t *testing.T) {
	cfg := ample()
	cfg.Aging = time.Second
	d := testDriver(cfg)
	d.arrive(3, Reactive, prompt(3, 10), 9) // earns credit that is not spent
	d.run(t, 20)
	if d.s.Live() > 0 || credit(d.s) <= 0 {
		t.Fatalf("%d live, %s of credit", d.s.Live(), credit(d.s))
	}
	d.arrive(1, Proactive, prompt(1, 64*20), 5)
	d.run(t, 1)
	d.now += 2 * time.Second
	d.ends = d.now
	d.arrive(2, Reactive, prompt(2, 64*8), 5)
	if err := d.step(); err != nil || !d.halting || d.stats().Promotions != 1 {
		t.Fatalf("an arrival does not halt the aged prefill: %v, %+v", err, d.stats())
	}
	d.halt()
	var ids []ID
	for _, a := range d.run(t, 8) {
		ids = append(ids, a.ID)
	}
	if ids[0] != 2 || !slices.Contains(ids, 1) {
		t.Errorf("the prefills that follow are of %v: the reactive one first, and quanta of 1 between", ids)
	}
}

// TestTheObjectiveBoundsBatches checks that with an objective and predictions a batch of both
// classes is as large as its predicted time allows, and otherwise has MixedCap rows.
func TestTheObjectiveBoundsBatches(t *testing.T) {
	for _, c := range []struct{ objective, row time.Duration }{
		{50 * time.Millisecond, 10 * time.Millisecond}, {20 * time.Millisecond, 10 * time.Millisecond},
		{50 * time.Millisecond, 0}, {0, 10 * time.Millisecond},
	} {
		cfg := ample()
		cfg.TPOT, cfg.Aging = c.objective, time.Hour
		cfg.Forecast = func(rows, _ int) time.Duration { return time.Duration(rows) * c.row }
		d := testDriver(cfg)
		for id := range ID(8) {
			d.arrive(id+1, Class(min(id, 1)), prompt(id+1, 10), 300)
		}
		want := 3
		if c.objective > 0 && c.row > 0 {
			want = int(c.objective / c.row)
		}
		acts := d.run(t, 60)
		if last := acts[len(acts)-1]; last.Kind != Decode || len(last.Rows) != want {
			t.Errorf("objective %s, %s a row: %+v, want %d rows", c.objective, c.row, last, want)
		}
	}
}

// TestTimeMayJump checks under each policy that all requests finish whatever the clock does.
func TestTimeMayJump(t *testing.T) {
	for _, name := range Policies() {
		cfg := ample()
		cfg.Policy = name
		d := testDriver(cfg)
		for id := range ID(6) {
			d.arrive(id+1, Class(id%2), prompt(id+1, 200), 40)
		}
		for _, jump := range []time.Duration{-time.Hour, time.Hour, -time.Hour, time.Hour} {
			d.run(t, 5)
			d.now += jump
			d.ends = d.now
		}
		if err := d.drain(5000); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestABurst posts ten thousand requests at once, including one-token answers and prompts as long
// as the cache. The queues accept what they hold, the others get a RetryAfter, and all accepted
// requests finish.
func TestABurst(t *testing.T) {
	for _, name := range Policies() {
		cfg := Config{Blocks: 12, MaxRunning: 4, Queue: 50, Chunk: 64, Policy: name}
		d := testDriver(cfg)
		for id := range ID(10_000) {
			n := 1 + int(id)%40
			if id%97 == 0 {
				n = 12*64 - 1
			}
			d.arrive(id+1, Class(id%2), prompt(id+1, n), 1)
		}
		if err := d.step(); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if st := d.stats(); st.Rejections < 10_000-2*50-2*4 || d.s.Live() > 2*50+2*4 {
			t.Errorf("%s: %d refused, %d live", name, st.Rejections, d.s.Live())
		}
		acts := d.s.Step(d.now, []Event{{Kind: Arrive, ID: 20_001, Class: Proactive, PromptTokens: 5, MaxTokens: 1}})
		if len(acts) == 0 || acts[len(acts)-1].RetryAfter < time.Second {
			t.Errorf("%s: one more is answered by %+v", name, acts)
		}
		if err := d.drain(20_000); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestPlace checks the queue position of a request and its estimated waiting time.
func TestPlace(t *testing.T) {
	d := testDriver(Config{Blocks: 50, MaxRunning: 1, Queue: 50, Chunk: 64})
	for id := range ID(6) {
		d.arrive(id+1, Class(id%2), prompt(id+1, 20), 2)
	}
	if err := d.step(); err != nil {
		t.Fatal(err)
	}
	for id, want := range map[ID]int{1: 0, 3: 0, 5: 1, 2: 2, 4: 3, 6: 4, 99: 0} {
		if ahead, wait := d.s.Place(id); ahead != want || wait != 0 {
			t.Errorf("request %d: %d before it, for %s", id, ahead, wait)
		}
	}
	d.run(t, 5) // the first one has finished
	if ahead, wait := d.s.Place(6); ahead == 0 || wait <= 0 {
		t.Errorf("later %d are before the last one, for %s", ahead, wait)
	}
}
