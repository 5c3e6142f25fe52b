package sched

import (
	"math/rand/v2"
	"slices"
	"sync"
	"time"
)

// machine is the clock and the executor of a Driver. Forwards take virtual time, prefills op by op,
// and halt when told to or when their quantum is over. Reactive requests arrive at given times; a
// constant number of proactive ones, or none, is live.
type machine struct {
	machineCosts
	mu  sync.Mutex
	s   *Scheduler
	d   *Driver
	rng *rand.Rand
	now time.Duration

	jumps, jump time.Duration // when the clock does, and by what

	reactive []*guest // by time of arrival
	next     int      // the first of them that has not come
	backlog  int      // proactive requests that are always there, until the last reactive one came
	draw     func() *guest
	guests   map[ID]*guest
	waiting  int // proactive ones that live

	longest time.Duration // quantum

	halted map[ID][]time.Duration // ops that are left
	halt   bool                   // the forward in flight is to stop
}

// machineCosts holds the durations of forwards.
type machineCosts struct {
	row  time.Duration // a token of a prompt
	step time.Duration // a decode batch ...
	each time.Duration // ... and each row of it
	ops  int           // of a prefill, of different lengths
	// predicted by really; 0: nothing is predicted
	wrong float64
}

// guest is a request and its history.
type guest struct {
	class        Class
	prompt, want int
	at           time.Duration
	started      time.Duration // 0: not yet
	first, end   time.Duration
	tokens       int
}

func newMachine(cfg Config, c machineCosts, seed uint64) *machine {
	m := &machine{machineCosts: c, rng: rand.New(rand.NewPCG(seed, 7)), guests: map[ID]*guest{},
		halted: map[ID][]time.Duration{}}
	if c.wrong > 0 {
		cfg.Forecast = func(rows, _ int) time.Duration { return time.Duration(c.wrong * float64(m.decode(rows))) }
	}
	m.s = mustNew(cfg)
	m.d = NewDriver(m.s, &m.mu, m, m)
	return m
}

func (c *machineCosts) decode(rows int) time.Duration { return c.step + time.Duration(rows)*c.each }

// Now returns the time of a clock that jumps.
func (m *machine) Now() time.Duration {
	if m.jump != 0 && m.now > m.jumps {
		return m.now + m.jump
	}
	return m.now
}

func (m *machine) Wait(idle bool) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if idle && m.next < len(m.reactive) {
		m.now = max(m.now, m.reactive[m.next].at)
	}
	m.come(m.now)
	return !idle || !m.d.Idle()
}

// come posts the requests that have arrived.
func (m *machine) come(by time.Duration) {
	for m.next < len(m.reactive) && m.reactive[m.next].at <= by {
		m.next++
		m.post(m.reactive[m.next-1])
	}
	for m.waiting < m.backlog && m.next < len(m.reactive) {
		g := m.draw()
		g.at = m.now
		m.waiting++
		m.post(g)
	}
}

func (m *machine) post(g *guest) {
	id := ID(len(m.guests) + 1)
	m.guests[id] = g
	m.d.Post(Event{Kind: Arrive, ID: id, Class: g.class, PromptTokens: g.prompt, MaxTokens: g.want})
}

func (m *machine) Carry(a *Action) {
	switch a.Kind {
	case Halt:
		m.halt = true
	case Preempt:
		delete(m.halted, a.ID)
	case Reject:
		panic("a request was refused")
	}
}

func (m *machine) Begin(a *Action) {
	m.halt, m.longest = false, max(m.longest, a.Quantum)
	if g := m.guests[a.ID]; a.Kind == Prefill {
		if g.started == 0 {
			g.started = max(m.now, 1)
		}
		m.halted[a.ID] = m.opsOf(a)
	}
}

// opsOf returns the times of the ops of a chunk, which differ a lot, divided by the bound.
func (m *machine) opsOf(a *Action) (ops []time.Duration) {
	sum, weights := 0, make([]int, m.ops)
	for i := range weights {
		weights[i] = 1 + m.rng.IntN(4)*m.rng.IntN(4)
		sum += weights[i]
	}
	all := m.step + time.Duration(a.N)*m.row
	for _, w := range weights {
		op := max(1, all*time.Duration(w)/time.Duration(sum))
		n := 1
		if a.Bound > 0 && m.wrong != 0.1 { // what is predicted too short is not cut
			n = int((op + a.Bound - 1) / a.Bound)
		}
		for range n {
			ops = append(ops, op/time.Duration(n))
		}
	}
	return ops
}

func (m *machine) Run(a *Action) (lane LaneID, done bool) { return a.Lane, m.run(a) }

func (m *machine) run(a *Action) (done bool) {
	if a.Kind == Decode {
		rows := 0
		for _, r := range a.Rows {
			rows += r.N
		}
		m.pass(m.decode(rows))
		return true
	}
	began, wrong := m.now, m.wrong
	if wrong == 0 {
		wrong = 1
	}
	ops := m.halted[a.ID]
	for i, op := range ops {
		ahead := time.Duration(wrong * float64(op))
		if i > 0 && (m.halt || a.Quantum > 0 && m.now-began+ahead > a.Quantum) {
			m.halted[a.ID] = ops[i:]
			return false
		}
		m.pass(op)
	}
	delete(m.halted, a.ID)
	return true
}

// pass advances the time and posts arrivals.
func (m *machine) pass(d time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for end := m.now + d; ; {
		if m.next == len(m.reactive) || m.reactive[m.next].at > end {
			m.now = end
			return
		}
		m.now = max(m.now, m.reactive[m.next].at)
		m.come(m.now)
	}
}

func (m *machine) End(a *Action, done bool, events []Event) []Event {
	switch {
	case !done:
		wrong := m.wrong
		if wrong == 0 {
			wrong = 1
		}
		events[len(events)-1].Ahead = time.Duration(wrong * float64(m.halted[a.ID][0]))
	case a.Kind == Decode:
		for _, r := range a.Rows {
			events = append(events, m.token(r.ID))
		}
	case a.Last:
		events = append(events, m.token(a.ID))
	}
	return events
}

func (m *machine) token(id ID) Event {
	g := m.guests[id]
	if g.tokens++; g.tokens == 1 {
		g.first = m.now
	}
	if g.tokens < g.want {
		return Event{Kind: Sampled, ID: id}
	}
	g.end = m.now
	if g.class == Proactive {
		m.waiting--
	}
	return Event{Kind: Finish, ID: id}
}

// of returns the requests of a class by arrival.
func (m *machine) of(c Class) (out []*guest) {
	for id := ID(1); id <= ID(len(m.guests)); id++ {
		if m.guests[id].class == c {
			out = append(out, m.guests[id])
		}
	}
	return out
}

// longestTurn returns the longest time for which a proactive request was the oldest that waited for
// its first quantum.
func (m *machine) longestTurn() (longest time.Duration) {
	var oldest time.Duration // when all before had begun
	for _, g := range m.of(Proactive) {
		started := g.started
		if started == 0 {
			started = m.now
		}
		longest = max(longest, started-max(g.at, oldest))
		oldest = max(oldest, started)
	}
	return longest
}

// tpot returns a quantile of the reactive times per token.
func (m *machine) tpot(q float64) time.Duration {
	var all []time.Duration
	for _, g := range m.of(Reactive) {
		if g.tokens > 1 {
			all = append(all, (g.end-g.first)/time.Duration(g.tokens-1))
		}
	}
	if len(all) == 0 {
		return 0
	}
	slices.Sort(all)
	return all[int(q*float64(len(all)-1))]
}
