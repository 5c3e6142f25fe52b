package sched

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"
)

// strain describes a random history of reactive requests at a fraction of the capacity of a
// machine.
type strain struct {
	seed             uint64
	costs            machineCosts
	cfg              Config
	load             float64       // of what the machine can do for reactive requests
	prompt, want     int           // of reactive requests, on the average
	longest, answers int           // of proactive ones
	jump             time.Duration // of the clock, after a third of the time
}

// minAging is the least number of chunks of a proactive prompt in Config.Aging: the first quantum
// of one request waits for a chunk of another, which no policy can end at once.
const minAging = 8

func newStrain(seed uint64) *strain {
	rng := rand.New(rand.NewPCG(seed, 11))
	row := time.Duration(100+rng.IntN(2000)) * time.Microsecond
	step := row * time.Duration(5+rng.IntN(60))
	s := &strain{
		seed: seed,
		costs: machineCosts{row: row, step: step, each: step / time.Duration(5+rng.IntN(20)), ops: 20 + rng.IntN(200),
			wrong: []float64{0, 1, 10, 0.1}[rng.IntN(4)]},
		load:   0.5 + 0.48*rng.Float64(),
		prompt: 10 + rng.IntN(800), want: 1 + rng.IntN(2)*rng.IntN(80),
		longest: 10 + rng.IntN(2000), answers: 1 + rng.IntN(80),
		cfg: Config{Blocks: 100_000, MaxRunning: 1 + rng.IntN(6), Queue: 1 << 20,
			Chunk: []int{64, 256, 512}[rng.IntN(3)]},
	}
	chunk := step + time.Duration(s.cfg.Chunk)*row
	s.cfg.Aging = max(5*time.Second, minAging*chunk) + time.Duration(rng.IntN(25))*time.Second
	return s
}

// arrivals returns n reactive requests that arrive over a time.
func (s *strain) arrivals(n int, over time.Duration) (list []*guest) {
	rng, sum := rand.New(rand.NewPCG(s.seed, 12)), 0.0
	var at []float64
	for range n {
		list = append(list, &guest{prompt: about(rng, s.prompt), want: about(rng, s.want)})
		sum += rng.ExpFloat64()
		at = append(at, sum)
	}
	for i, g := range list {
		g.at = time.Duration(float64(over) * at[i] / sum)
	}
	return list
}

func about(rng *rand.Rand, n int) int { return max(1, n/2+rng.IntN(n)) }

// run serves n reactive requests that arrive over a time, together with a constant number of
// proactive ones.
func (s *strain) run(n int, over time.Duration, backlog int) *machine {
	m := newMachine(s.cfg, s.costs, s.seed)
	rng := rand.New(rand.NewPCG(s.seed, 13))
	m.reactive, m.backlog = s.arrivals(n, over), backlog
	m.draw = func() *guest {
		return &guest{class: Proactive, prompt: about(rng, s.longest), want: about(rng, s.answers)}
	}
	m.jumps, m.jump = over/3, s.jump
	m.d.Drive()
	return m
}

// service returns the mean time of n reactive requests that run alone.
func (s *strain) service(n int) (sum time.Duration) {
	for _, g := range s.arrivals(n, 0) {
		sum += s.costs.step + time.Duration(g.prompt)*s.costs.row + time.Duration(g.want-1)*s.costs.decode(1)
	}
	return sum / time.Duration(n)
}

func (s *strain) String() string {
	return fmt.Sprintf("seed %d: load %.2f, %+v, parallel %d, chunks of %d, aging %s, prompts and answers %d and %d, "+
		"proactive %d and %d", s.seed, s.load, s.costs, s.cfg.MaxRunning, s.cfg.Chunk, s.cfg.Aging, s.prompt, s.want,
		s.longest, s.answers)
}

// TestFirstQuantum keeps a backlog of twice MaxRunning proactive requests. The oldest one that
// waits must have its first quantum within Config.Aging and one reactive service time, whatever
// forwards and ops cost, even if predictions are wrong by a factor of ten. Reactive requests take
// at most twice their time per token alone (P90), except in 1 % of the histories, where slower
// requests overlap with more others.
func TestFirstQuantum(t *testing.T) {
	const n = 60
	quanta, slow, histories := int64(0), 0, manyHistories()/50
	for seed := range histories {
		s := newStrain(seed)
		capacity := s.run(n, 0, 0).now
		over := time.Duration(float64(capacity) / s.load)
		alone, mixed := s.run(n, over, 0), s.run(n, over, 2*s.cfg.MaxRunning)
		if got, limit := mixed.longestTurn(), s.cfg.Aging+s.service(n); got > limit {
			t.Errorf("the oldest proactive request waited %s for its first quantum, at most %s; %s", got, limit, s)
		}
		if a, b := alone.tpot(0.9), mixed.tpot(0.9); b > 2*a {
			t.Logf("reactive time per token, P90: %s, alone %s; %s", b, a, s)
			slow++
		}
		quanta += mixed.s.Stats().Quanta
	}
	if uint64(slow)*100 > histories {
		t.Errorf("in %d of %d histories reactive requests take more than twice their time per token", slow, histories)
	}
	if quanta == 0 {
		t.Error("no request had a quantum: the test tests nothing")
	}
}

// TestFirstQuantumBehindLongChunks checks that the bound mostly holds if a chunk alone takes a
// quarter of Config.Aging: chunks get shorter while another request waits. A chunk that started
// before any request waited keeps its length, so some histories miss the bound.
func TestFirstQuantumBehindLongChunks(t *testing.T) {
	const n = 60
	missed, histories := 0, manyHistories()/100
	for seed := range histories {
		s := newStrain(seed)
		s.cfg.Chunk, s.longest = 512, 512+s.longest
		s.cfg.Aging = max(4*(s.costs.step+512*s.costs.row), minAging*(s.costs.step+minChunk*s.costs.row))
		over := time.Duration(float64(s.run(n, 0, 0).now) / s.load)
		got := s.run(n, over, 2*s.cfg.MaxRunning).longestTurn()
		if limit := s.cfg.Aging + s.service(n); got > limit {
			t.Logf("the oldest proactive request waited %s for its first quantum, at most %s; %s", got, limit, s)
			missed++
		}
	}
	if t.Logf("missed %d of %d", missed, histories); uint64(missed)*20 > histories {
		t.Errorf("in %d of %d histories the first quantum comes late", missed, histories)
	}
}

// TestProgressIsGuaranteed checks that next to reactive prompts that use all of the machine a
// proactive prompt that has started finishes within a multiple of its own time.
func TestProgressIsGuaranteed(t *testing.T) {
	for seed := range manyHistories() / 200 {
		s := newStrain(seed)
		s.want, s.prompt = 1, max(s.prompt, 64)
		work := time.Duration(s.longest)*s.costs.row*3/2 + time.Duration(2+s.longest/s.cfg.Chunk)*s.costs.step
		limit := 3*s.cfg.Aging + 4*work
		for _, load := range []float64{0.8, 1, 1.5} {
			n := int(load*limit.Seconds()/s.service(100).Seconds()) + 1
			m := s.run(n, limit, 1)
			if g := m.of(Proactive)[0]; g.first == 0 || g.first-g.at > limit {
				t.Errorf("load %.1f: %d tokens, %s of work, were read after %s, at most %s; %s", load, g.prompt, work,
					g.first-g.at, limit, s)
			}
		}
	}
}

// TestTheClockJumps checks that a clock that jumps by an hour in either direction neither stops
// proactive work nor gives it more time: the bounds of first quanta and of quanta hold.
func TestTheClockJumps(t *testing.T) {
	for seed := range manyHistories() / 200 {
		for _, jump := range []time.Duration{-time.Hour, time.Hour} {
			const n = 60
			s := newStrain(seed)
			over := time.Duration(float64(s.run(n, 0, 0).now) / s.load)
			s.jump = jump
			m := s.run(n, over, 2*s.cfg.MaxRunning)
			if got, limit := m.longestTurn(), s.cfg.Aging+s.service(n); got > limit {
				t.Errorf("%s: the oldest proactive request waited %s, at most %s; %s", jump, got, limit, s)
			}
			if m.longest > 2*worstDebt {
				t.Errorf("%s: a quantum of %s; %s", jump, m.longest, s)
			}
		}
	}
}
