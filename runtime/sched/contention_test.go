package sched

import (
	"fmt"
	"testing"
	"time"
)

// contentionRig is a scheduler with a lane for each phase, whose actions the test carries out.
type contentionRig struct {
	*Scheduler
	now time.Duration
}

func newContentionRig(change func(c *Config)) *contentionRig {
	cfg := Config{Lanes: twoLanes(), Blocks: 64, MaxRunning: 4, Queue: 16, Chunk: 512, Aging: time.Minute,
		Forecast: func(int, int) time.Duration { return 10 * time.Millisecond },
		Contends: func(pos, n, rows, positions int) bool { return n < 100 }}
	if change != nil {
		change(&cfg)
	}
	return &contentionRig{Scheduler: mustNew(cfg)}
}

// step returns the actions as text: d and p begin a decode batch and a prefill, q is a prefill with
// a quantum, h halts.
func (r *contentionRig) step(events ...Event) (s string) {
	r.now += 10 * time.Millisecond
	for _, a := range r.Step(r.now, events) {
		switch {
		case a.Kind == Halt:
			s += fmt.Sprintf("h%d ", a.ID)
		case a.Kind == Decode:
			s += fmt.Sprintf("d%d ", len(a.Rows))
		case a.Quantum > 0:
			s += fmt.Sprintf("q%d ", a.ID)
		default:
			s += fmt.Sprintf("p%d ", a.ID)
		}
	}
	return s
}

func arrival(id ID, c Class, prompt int) Event {
	return Event{Kind: Arrive, ID: id, Class: c, PromptTokens: prompt, MaxTokens: 30}
}

// done ends a forward; tokens are sampled for the requests.
func done(lane LaneID, ids ...ID) []Event {
	list := []Event{{Kind: Done, Lane: lane}}
	for _, id := range ids {
		list = append(list, Event{Kind: Sampled, ID: id, Tokens: nil})
	}
	return list
}

// script runs steps and compares the actions of each.
func (r *contentionRig) script(t *testing.T, steps ...any) {
	t.Helper()
	for i := 0; i < len(steps); i += 2 {
		if got := r.step(steps[i].([]Event)...); got != steps[i+1].(string) {
			t.Fatalf("step %d: %q, want %q", i/2, got, steps[i+1])
		}
		if err := r.Check(); err != nil {
			t.Fatal(err)
		}
	}
}

// TestContention checks that a proactive prompt that is bound by memory runs in quanta between
// reactive decode batches, as on one lane, and that one that is bound by arithmetic runs next to
// them.
func TestContention(t *testing.T) {
	short := []Event{arrival(2, Proactive, 50)}
	r := newContentionRig(nil)
	r.script(t, []Event{arrival(1, Reactive, 50)}, "p1 ", done(prefillLane, 1), "d1 ", short, "",
		done(decodeLane, 1), "d1 ", // without credit
		done(decodeLane, 1), "q2 ", // the step before has earned it
		[]Event{{Kind: Stopped, Lane: prefillLane, Ahead: time.Millisecond}}, "d1 ",
		done(decodeLane, 1), "q2 ", done(prefillLane, 2), "d2 ")
	if s := r.Stats(); s.Quanta != 2 {
		t.Errorf("%d quanta", s.Quanta)
	}
	r = newContentionRig(func(c *Config) { c.Lanes[0], c.Lanes[1] = c.Lanes[1], c.Lanes[0] })
	r.script(t, []Event{arrival(1, Reactive, 50)}, "p1 ", done(1, 1), "d1 ", short, "", done(0, 1), "d1 ",
		done(0, 1), "q2 ")
	for name, c := range map[string]struct {
		prompt int
		class  Class
		change func(c *Config)
	}{
		"bound by arithmetic": {300, Proactive, nil},
		"equal class":         {50, Reactive, nil},
		"separate memory":     {50, Proactive, func(c *Config) { c.Contends = nil }},
	} {
		t.Run(name, func(t *testing.T) {
			r := newContentionRig(c.change)
			r.script(t, []Event{arrival(1, Reactive, 50)}, "p1 ", done(prefillLane, 1), "d1 ",
				[]Event{arrival(2, c.class, c.prompt)}, "p2 ", done(decodeLane, 1), "d1 ")
		})
	}
}

// TestContentionReactivePrompt checks that proactive decoding waits for reactive prompts that are
// bound by memory, and aged sequences do not.
func TestContentionReactivePrompt(t *testing.T) {
	r := newContentionRig(func(c *Config) { c.Aging = 100 * time.Millisecond })
	r.script(t, []Event{arrival(1, Proactive, 50)}, "p1 ", done(prefillLane, 1), "d1 ",
		[]Event{arrival(2, Reactive, 50)}, "p2 ", done(decodeLane, 1), "", done(prefillLane, 2), "d2 ",
		done(decodeLane, 1, 2), "d2 ", []Event{arrival(3, Reactive, 50)}, "p3 ", done(decodeLane, 1, 2), "d2 ")
	r = newContentionRig(func(c *Config) { c.Aging = 100 * time.Millisecond })
	r.script(t, []Event{arrival(1, Proactive, 50)}, "p1 ", done(prefillLane, 1), "d1 ",
		[]Event{arrival(2, Reactive, 50)}, "p2 ", done(decodeLane, 1), "")
	r.now += 100 * time.Millisecond
	r.script(t, []Event{}, "d1 ")
}

// TestContentionHalts checks that a proactive prompt halts for reactive decoding that begins next
// to it.
func TestContentionHalts(t *testing.T) {
	r := newContentionRig(nil)
	one := arrival(1, Reactive, 1) // needs no prefill
	r.script(t, []Event{arrival(2, Proactive, 50)}, "p2 ", []Event{one}, "h2 d1 ",
		[]Event{{Kind: Stopped, Lane: prefillLane}}, "", done(decodeLane, 1), "d1 ", done(decodeLane, 1), "q2 ")
}

// TestContentionAging checks that an aged proactive prompt runs next to reactive decoding.
func TestContentionAging(t *testing.T) {
	r := newContentionRig(func(c *Config) { c.NoPiggyback = true })
	r.script(t, []Event{arrival(1, Reactive, 50)}, "p1 ", done(prefillLane, 1), "d1 ",
		[]Event{arrival(2, Proactive, 300)}, "", done(decodeLane, 1), "d1 ", done(decodeLane, 1), "d1 ")
	r.now += time.Minute
	r.script(t, done(decodeLane, 1), "p2 d1 ")
}

// TestSwitches checks the parts of the policy that can be switched off on one lane.
func TestSwitches(t *testing.T) {
	off := func(change func(c *Config)) *contentionRig {
		return newContentionRig(func(c *Config) {
			c.Lanes, c.Contends = nil, nil
			change(c)
		})
	}
	r := off(func(c *Config) { c.NoPreemption = true })
	r.script(t, []Event{arrival(1, Proactive, 300)}, "p1 ", []Event{arrival(2, Reactive, 50)}, "",
		done(0, 1), "p2 ")
	r = off(func(c *Config) { c.NoPiggyback = true })
	r.script(t, []Event{arrival(1, Reactive, 50)}, "p1 ", done(0, 1), "d1 ",
		[]Event{arrival(2, Proactive, 50), arrival(3, Proactive, 1)}, "", done(0, 1), "d1 ", done(0, 1), "d1 ")
	r = off(func(*Config) {})
	r.script(t, []Event{arrival(1, Reactive, 50)}, "p1 ", done(0, 1), "d1 ",
		[]Event{arrival(2, Proactive, 50), arrival(3, Proactive, 1)}, "", done(0, 1), "q2 ", done(0, 2), "d3 ")
}

// TestContentionRandom checks that all requests of both classes end under random loads if any
// prefill may contend with any decode batch.
func TestContentionRandom(t *testing.T) {
	for seed := range uint64(40) {
		m := newDevices(Config{Blocks: 400, MaxRunning: 4, Queue: 200, Chunk: 64 + int(seed)*8, Aging: 2 * time.Second,
			NoPiggyback: seed%3 == 2, NoPreemption: seed%5 == 4,
			Contends: func(_, n, rows, _ int) bool { return (n+rows+int(seed))%3 > 0 },
			Forecast: func(int, int) time.Duration { return 20 * time.Millisecond }}, seed, 60)
		m.d.Drive()
		if m.wrong != nil {
			t.Fatalf("seed %d: %v", seed, m.wrong)
		}
		for id, left := range m.left {
			if left != 0 {
				t.Fatalf("seed %d: request %d wants %d tokens more", seed, id, left)
			}
		}
	}
}
