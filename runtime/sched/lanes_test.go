package sched

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"sandwich/runtime/kvcache"
	"sandwich/runtime/phase"
)

// The lanes of two devices, one for each phase.
const (
	prefillLane LaneID = iota
	decodeLane
)

func twoLanes() []Lane {
	return []Lane{{Name: "npu", Phases: []phase.Phase{phase.Prefill}},
		{Name: "gpu", Phases: []phase.Phase{phase.Decode}}}
}

// devices is a clock and an executor with two lanes, on which forwards take virtual time. It checks
// the scheduler at each step.
type devices struct {
	mu      sync.Mutex
	s       *Scheduler
	d       *Driver
	rng     *rand.Rand
	now     time.Duration
	flights [2]struct {
		f    *Action
		ends time.Duration
		halt bool
	}
	come  []Event // at times of their own
	at    []time.Duration
	class map[ID]Class
	left  map[ID]int // tokens to come
	both  int        // steps at which both lanes were at work
	wrong error
}

func newDevices(cfg Config, seed uint64, requests int) *devices {
	m := &devices{rng: rand.New(rand.NewPCG(seed, 3)), class: map[ID]Class{}, left: map[ID]int{}}
	cfg.Lanes = twoLanes()
	m.s = mustNew(cfg)
	m.d = NewDriver(m.s, &m.mu, m, m)
	at := time.Duration(0)
	for id := ID(1); id <= ID(requests); id++ {
		at += time.Duration(m.rng.ExpFloat64() * float64(150*time.Millisecond))
		e := Event{Kind: Arrive, ID: id, Class: Class(m.rng.IntN(2)), PromptTokens: 1 + m.rng.IntN(700),
			MaxTokens: 1 + m.rng.IntN(12)}
		m.come, m.at = append(m.come, e), append(m.at, at)
		m.class[id], m.left[id] = e.Class, e.MaxTokens
	}
	return m
}

func (m *devices) Now() time.Duration { return m.now }

func (m *devices) Wait(idle bool) bool {
	m.check()
	if idle && len(m.at) > 0 {
		m.now = max(m.now, m.at[0])
		m.arrive()
		return true
	}
	return m.wrong == nil && !idle
}

func (m *devices) arrive() {
	m.mu.Lock()
	defer m.mu.Unlock()
	for len(m.at) > 0 && m.at[0] <= m.now {
		e := m.come[0]
		m.come, m.at = m.come[1:], m.at[1:]
		m.d.Post(e)
		m.check()
	}
}

func (m *devices) fail(format string, a ...any) {
	if m.wrong == nil {
		m.wrong = fmt.Errorf(format, a...)
	}
}

// check compares the forwards in flight with the state of the scheduler.
func (m *devices) check() {
	if err := m.s.Check(); err != nil {
		m.fail("%w", err)
	}
	f, o := m.flights[prefillLane].f, m.flights[decodeLane].f
	if f == nil || o == nil {
		return
	}
	m.both++
	for _, row := range o.Rows {
		if row.ID == f.ID {
			m.fail("request %d is on both lanes", f.ID)
		}
	}
}

func (m *devices) Carry(a *Action) {
	switch a.Kind {
	case Halt:
		f := &m.flights[a.Lane]
		if f.f == nil || f.f.Kind == Decode || m.class[f.f.ID] != Proactive {
			m.fail("%+v halts %+v", a, f.f)
			return
		}
		f.halt, f.ends = true, min(f.ends, m.now+time.Millisecond)
	case Reject:
		m.fail("request %d was refused", a.ID)
	}
}

func (m *devices) Begin(a *Action) {
	f := &m.flights[a.Lane]
	if f.f != nil || (a.Lane == decodeLane) != (a.Kind == Decode) {
		m.fail("%+v begins where %+v is in flight", a, f.f)
	}
	long := time.Duration(1 + m.rng.IntN(40))
	if a.Kind != Decode {
		long = time.Duration(1 + a.N)
	}
	f.f, f.ends, f.halt = a, m.now+long*time.Millisecond, false
}

func (m *devices) Run(*Action) (LaneID, bool) {
	for {
		lane := -1
		for i := range m.flights {
			if m.flights[i].f != nil && (lane < 0 || m.flights[i].ends < m.flights[lane].ends) {
				lane = i
			}
		}
		f := &m.flights[lane]
		if len(m.at) > 0 && m.at[0] < f.ends {
			m.now = m.at[0]
			m.arrive()
			continue
		}
		m.now, f.f = f.ends, nil
		return LaneID(lane), !f.halt
	}
}

func (m *devices) End(a *Action, done bool, events []Event) []Event {
	rows := a.Rows
	if a.Kind != Decode {
		if rows = nil; done && a.Last {
			rows = []Rows{{ID: a.ID, N: 1}}
		}
	}
	for _, row := range rows {
		kind := Sampled
		if m.left[row.ID]--; m.left[row.ID] == 0 {
			kind = Finish
		}
		events = append(events, Event{Kind: kind, ID: row.ID})
	}
	return events
}

// TestLanes checks that with a lane for prefills and one for decode batches, under every policy,
// every request gets all its tokens, none is on both lanes at once, both lanes work at the same
// time, blocks balance, and a reactive arrival halts a proactive prefill.
func TestLanes(t *testing.T) {
	for _, policy := range Policies() {
		both, stops := 0, int64(0)
		for seed := range uint64(60) {
			m := newDevices(Config{Policy: policy, Blocks: 400, MaxRunning: 4, Queue: 200,
				Chunk: 64 + int(seed)*8, Aging: 2 * time.Second,
				Forecast: func(int, int) time.Duration { return 20 * time.Millisecond }}, seed, 60)
			m.d.Drive()
			if m.wrong != nil {
				t.Fatalf("%s, seed %d: %v", policy, seed, m.wrong)
			}
			for id, left := range m.left {
				if left != 0 {
					t.Fatalf("%s, seed %d: request %d wants %d tokens more", policy, seed, id, left)
				}
			}
			if st := m.s.Stats(); m.s.Live() != 0 || st.Free != st.Blocks {
				t.Fatalf("%s, seed %d: %d live, %d of %d blocks free", policy, seed, m.s.Live(), st.Free, st.Blocks)
			}
			both, stops = both+m.both, stops+m.s.Stats().Stops
		}
		if both == 0 {
			t.Errorf("%s: never were both lanes at work", policy)
		}
		if halts := policy == DefaultPolicy || policy == "preempt"; (stops > 0) != halts {
			t.Errorf("%s: %d halts", policy, stops)
		}
	}
}

// TestLaneOrder checks that a lane serves its phases wherever it is in the list.
func TestLaneOrder(t *testing.T) {
	lanes := twoLanes()
	lanes[0], lanes[1] = lanes[1], lanes[0]
	s := mustNew(Config{Lanes: lanes, Blocks: 20, MaxRunning: 2, Queue: 4})
	forwards := func(events ...Event) (out []Action) {
		for _, a := range s.Step(0, events) {
			if a.Kind.Forward() {
				out = append(out, a)
			}
		}
		return out
	}
	got := forwards(Event{Kind: Arrive, ID: 1, PromptTokens: 8, MaxTokens: 4})
	if len(got) != 1 || got[0].Kind != Prefill || s.Lanes()[got[0].Lane].Name != "npu" {
		t.Fatalf("%+v; want a prefill on the npu", got)
	}
	got = forwards(Event{Kind: Done, Lane: got[0].Lane}, Event{Kind: Sampled, ID: 1},
		Event{Kind: Arrive, ID: 2, PromptTokens: 8, MaxTokens: 4})
	if len(got) != 2 || got[0].Kind != Decode || s.Lanes()[got[0].Lane].Name != "gpu" || got[1].Kind != Prefill {
		t.Fatalf("%+v; want a decode batch on the gpu and a prefill", got)
	}
	var b kvcache.Batch
	if s.Fill(got[0].Lane, &b); b.Prefill || b.Rows() != 1 {
		t.Errorf("the batch of the gpu has %d rows, prefill %v; want one row to decode", b.Rows(), b.Prefill)
	}
	if s.Fill(got[1].Lane, &b); !b.Prefill || b.Rows() != 8 {
		t.Errorf("the batch of the npu has %d rows, prefill %v; want a prefill of 8", b.Rows(), b.Prefill)
	}
}

func TestInvalidLanes(t *testing.T) {
	both := phase.All[:]
	for _, test := range []struct {
		lanes []Lane
		want  string
	}{
		{[]Lane{}, "no lane serves prefill"},
		{[]Lane{{Name: "gpu", Phases: []phase.Phase{phase.Prefill}}}, "no lane serves decode"},
		{[]Lane{{Phases: both}}, "has no name"},
		{[]Lane{{Name: "gpu", Phases: both}, {Name: "npu"}}, `lane "npu" serves no phase`},
		{[]Lane{{Name: "gpu", Phases: both}, {Name: "npu", Phases: both}}, `"gpu" and "npu" both serve prefill`},
		{[]Lane{{Name: "gpu", Phases: []phase.Phase{phase.Decode, phase.Decode}}}, "both serve decode"},
		{[]Lane{{Name: "gpu", Phases: []phase.Phase{7}}}, "unknown phase 7"},
		{[]Lane{{Name: "a", Phases: both[:1], Cores: true}, {Name: "b", Phases: both[1:], Cores: true}},
			`"a" and "b" both run on the cores`},
		{append(twoLanes(), Lane{Name: "c", Phases: both}), "3 lanes for 2 phases"},
	} {
		if _, err := New(Config{Lanes: test.lanes}); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%+v: %v; want an error with %q", test.lanes, err, test.want)
		}
	}
}
