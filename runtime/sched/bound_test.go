package sched

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"
)

// strain is a random history of reactive requests at a share of the machine's capacity: what it is
// made of.
type strain struct {
	seed             uint64
	costs            machineCosts
	cfg              Config
	load             float64       // of what the machine can do for reactive requests
	prompt, want     int           // of reactive requests, on the average
	longest, answers int           // of proactive ones
	jump             time.Duration // of the clock, after a third of the time
}

// leastAging is how many chunks of a proactive prompt go into Config.Aging at least: the first
// quantum of one waits for a chunk of another, and no share of the machine ends that in no time.
const leastAging = 8

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
	s.cfg.Aging = max(5*time.Second, leastAging*chunk) + time.Duration(rng.IntN(25))*time.Second
	return s
}

// arrivals are so many reactive requests, at their distances over a time.
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

// run serves so many reactive requests, which come over a time, beside so many proactive ones that
// are always there.
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

// service is what the machine takes for a reactive request alone, on the average of so many.
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

// TestFirstQuantum: behind a backlog of twice as many proactive requests as run at once, which
// never empties, the oldest that waits has its first quantum within the aging threshold and one
// reactive service time from when it is the oldest, whatever forwards and ops cost, and wherever
// they are predicted wrong by ten. Reactive requests take at most twice their time per token alone
// (P90), but for one history in a hundred: who is slowed down meets more others than alone.
func TestFirstQuantum(t *testing.T) {
	const n = 60
	quanta, slow, histories := int64(0), 0, manyHistories()/50
	for seed := range histories {
		s := newStrain(seed)
		capacity := s.run(n, 0, 0).now
		over := time.Duration(float64(capacity) / s.load)
		alone, beside := s.run(n, over, 0), s.run(n, over, 2*s.cfg.MaxRunning)
		if got, most := beside.longestTurn(), s.cfg.Aging+s.service(n); got > most {
			t.Errorf("the oldest proactive request waited %s for its first quantum, at most %s; %s", got, most, s)
		}
		if a, b := alone.tpot(0.9), beside.tpot(0.9); b > 2*a {
			t.Logf("reactive time per token, P90: %s, alone %s; %s", b, a, s)
			slow++
		}
		quanta += beside.s.Stats().Quanta
	}
	if uint64(slow)*100 > histories {
		t.Errorf("in %d of %d histories reactive requests take more than twice their time per token", slow, histories)
	}
	if quanta == 0 {
		t.Error("nobody had a quantum: the test tests nothing")
	}
}

// TestFirstQuantumBehindLongChunks: the bound holds, too, where a chunk takes up to a quarter of
// aging by itself, and longer beside reactive requests: who is there is read in shorter ones while
// another waits. Not in each history, since one that began when nobody waited is as long as it is.
func TestFirstQuantumBehindLongChunks(t *testing.T) {
	const n = 60
	missed, histories := 0, manyHistories()/100
	for seed := range histories {
		s := newStrain(seed)
		s.cfg.Chunk, s.longest = 512, 512+s.longest
		s.cfg.Aging = max(4*(s.costs.step+512*s.costs.row), leastAging*(s.costs.step+leastChunk*s.costs.row))
		over := time.Duration(float64(s.run(n, 0, 0).now) / s.load)
		got := s.run(n, over, 2*s.cfg.MaxRunning).longestTurn()
		if most := s.cfg.Aging + s.service(n); got > most {
			t.Logf("the oldest proactive request waited %s for its first quantum, at most %s; %s", got, most, s)
			missed++
		}
	}
	if t.Logf("missed %d of %d", missed, histories); uint64(missed)*20 > histories {
		t.Errorf("in %d of %d histories the first quantum comes late", missed, histories)
	}
}

// TestProgressIsGuaranteed: beside reactive prompts that fill the machine, and more, a proactive
// prompt that has begun gets to its end in time that is a multiple of its own, whatever the load.
func TestProgressIsGuaranteed(t *testing.T) {
	for seed := range manyHistories() / 200 {
		s := newStrain(seed)
		s.want, s.prompt = 1, max(s.prompt, 64)
		work := time.Duration(s.longest)*s.costs.row*3/2 + time.Duration(2+s.longest/s.cfg.Chunk)*s.costs.step
		most := 3*s.cfg.Aging + 4*work
		for _, load := range []float64{0.8, 1, 1.5} {
			n := int(load*most.Seconds()/s.service(100).Seconds()) + 1
			m := s.run(n, most, 1)
			if g := m.of(Proactive)[0]; g.first == 0 || g.first-g.at > most {
				t.Errorf("load %.1f: %d tokens, %s of work, were read after %s, at most %s; %s", load, g.prompt, work,
					g.first-g.at, most, s)
			}
		}
	}
}

// TestTheClockJumps: where the clock jumps by an hour, either way, that neither ends proactive work
// nor lets it run: the bounds of first quanta and of quanta hold.
func TestTheClockJumps(t *testing.T) {
	for seed := range manyHistories() / 200 {
		for _, jump := range []time.Duration{-time.Hour, time.Hour} {
			const n = 60
			s := newStrain(seed)
			over := time.Duration(float64(s.run(n, 0, 0).now) / s.load)
			s.jump = jump
			m := s.run(n, over, 2*s.cfg.MaxRunning)
			if got, most := m.longestTurn(), s.cfg.Aging+s.service(n); got > most {
				t.Errorf("%s: the oldest proactive request waited %s, at most %s; %s", jump, got, most, s)
			}
			if m.longest > 2*worstDebt {
				t.Errorf("%s: a quantum of %s; %s", jump, m.longest, s)
			}
		}
	}
}
