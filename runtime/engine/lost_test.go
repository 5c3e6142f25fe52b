package engine

import (
	"flag"
	"fmt"
	"slices"
	"testing"

	"sandwich/plans/heuristic"
	"sandwich/runtime/engine/forward"
	"sandwich/runtime/exec"
	"sandwich/runtime/exec/tp"
	"sandwich/runtime/gguf"
	"sandwich/runtime/kvcache"
	"sandwich/runtime/model"
	"sandwich/runtime/pool"
)

// schedules is how many forwards `make losses` wants with workers that lose their CPUs at random.
var schedules = flag.Int("schedules", 0, "forwards with lost workers; without it a few hundred")

// TestLostWorkers checks that the logits of prefill and decode have the same bits whichever workers
// lose their CPUs, in which chunks, at which barriers and for how long, and whether they return in
// another op or another forward.
func TestLostWorkers(t *testing.T) {
	rounds := 10
	if testing.Short() || raceEnabled {
		rounds = 4
	}
	cases := lostCases
	if raceEnabled {
		cases = []lostCase{{"llama", "1:5%:500us", []int{2}}, {"llama", "2:5%:500us", []int{1, 1}},
			{"llama", "3:5%:500us", []int{2, 1}}}
	}
	if *schedules > 0 {
		rounds = 1 + *schedules/(lostForwards*len(cases))
	}
	var all pool.WorkerStats
	for _, c := range cases {
		t.Run(c.name(), func(t *testing.T) {
			file := lostFile(t, c.arch)
			want := c.undisturbed(t, file)
			r := c.open(t, file)
			defer r.Close()
			for round := range rounds {
				if same(t, fmt.Sprint("round ", round), want, lostLogits(t, r)); t.Failed() {
					return
				}
			}
			s := r.Pool().Stats()
			w := s.Total()
			if w.Taken == 0 {
				t.Errorf("nothing was taken back: %+v", w)
			}
			all.Taken, all.Left, all.Private = all.Taken+w.Taken, all.Left+w.Left, all.Private+w.Private
		})
	}
	t.Logf("%d chunks apart, %d of them taken back, %d workers left out", all.Private, all.Taken, all.Left)
	if all.Taken == 0 || all.Left == all.Taken {
		t.Error("no work was reclaimed, or no worker was left out at a barrier: the test tests nothing")
	}
}

// lostCase is a model, the losses of its workers, and the number of workers of each rank.
type lostCase struct {
	arch, losses string
	ranks        []int
}

var lostCases = []lostCase{
	{"qwen3", "1:1%:500us", []int{2}}, {"qwen3", "2:10%:100us", []int{2}}, {"qwen3", "3:30%:1ms", []int{2}},
	{"qwen3moe", "4:3%:300us", []int{2}}, {"lfm2", "5:3%:300us", []int{2}}, {"qwen35", "6:3%:300us", []int{2}},
	{"qwen3", "7:3%:500us", []int{1, 1}}, {"qwen3", "8:10%:100us", []int{2, 1}}, {"qwen3", "9:30%:300us", []int{1, 1}},
	{"qwen3moe", "10:3%:300us", []int{1, 1}}, {"qwen3", "11:3%:300us", []int{1, 1, 1, 1}},
	{"qwen3moe", "12:10%:100us", []int{1, 2, 1}}, {"qwen3", "13:50%:50us", []int{2, 1}},
}

func (c *lostCase) name() string { return fmt.Sprintf("%s/%v/%s", c.arch, c.ranks, c.losses) }

// options are those of the case; its ranks stand for a partition, and by that for bits.
func (c *lostCase) options(threads int) heuristic.Options {
	if len(c.ranks) > 1 {
		return heuristic.Options{Service: crews(c.ranks...)}
	}
	return heuristic.Options{Threads: threads}
}

// undisturbed returns the logits of one rank with one worker, without preemption.
func (c *lostCase) undisturbed(t *testing.T, file *gguf.File) [][]float32 {
	r := openTestRunner(t, file, c.options(1), lostChunk)
	defer r.Close()
	return lostLogits(t, r)
}

// open opens the model for workers that are lost.
func (c *lostCase) open(t *testing.T, file *gguf.File) *forward.Runner {
	t.Setenv("SANDWICH_LOSE", c.losses)
	r := openTestRunner(t, file, c.options(c.ranks[0]), lostChunk)
	if r.Plan.Decode.PUs.Count() < 2 {
		r.Close()
		t.Skip("needs two PUs; allow this process another one")
	}
	return r
}

// lostChunk is smaller in a race build, whose kernels are plain Go.
var lostChunk = 48

func init() {
	if raceEnabled {
		lostChunk = 12
	}
}

const lostForwards = 3 + 4 // of lostLogits

func lostFile(t *testing.T, arch string) *gguf.File {
	if raceEnabled {
		c := toyConfig("llama")
		c.FFN = 128
		return synthesized(t, c, gguf.Q8_0)
	}
	if arch == "qwen3" || arch == "qwen3moe" {
		return smallModel(t, arch, gguf.Q8_0)
	}
	return recurrentFile(t, arch)
}

// lostLogits returns the logits after a prompt of three chunks, after each chunk, and after four
// decode steps.
func lostLogits(t *testing.T, r *forward.Runner) (out [][]float32) {
	r.Lead(func(l *pool.Leader) {
		line := NewSequence(r, l)
		keep := func(_ int, logits []float32) error {
			out = append(out, append([]float32(nil), logits...))
			return nil
		}
		prompt := exactPrompt(1)[:2*lostChunk+9]
		for len(prompt) > 0 {
			n := min(len(prompt), lostChunk)
			if err := line.Feed(prompt[:n], n, LastLogits, keep); err != nil {
				t.Error(err)
				return
			}
			prompt = prompt[n:]
		}
		fourSteps(t, line, keep)
	})
	return out
}

// TestLostWorkersHalt halts and resumes forwards at ops that are divided, while workers lose their
// CPUs and return.
func TestLostWorkersHalt(t *testing.T) {
	for _, c := range []lostCase{{"qwen3", "8:5%:300us", []int{2}}, {"qwen3", "9:5%:300us", []int{1, 1}},
		{"qwen3", "10:20%:300us", []int{2, 1}}} {
		t.Run(c.name(), func(t *testing.T) { haltLost(t, &c) })
	}
}

func haltLost(t *testing.T, c *lostCase) {
	file := lostFile(t, c.arch)
	want := c.undisturbed(t, file)
	r := c.open(t, file)
	defer r.Close()
	rounds := 10
	if testing.Short() || raceEnabled {
		rounds = 2
	}
	for round := range rounds {
		var got [][]float32
		halts := 0
		r.Lead(func(l *pool.Leader) {
			line := NewSequence(r, l)
			prompt := exactPrompt(1)[:2*lostChunk+9]
			for len(prompt) > 0 {
				n := min(len(prompt), lostChunk)
				halts += haltingForward(t, line, prompt[:n], round)
				got = append(got, append([]float32(nil), r.Logits(0)...))
				line.advance(n)
				prompt = prompt[n:]
			}
		})
		if same(t, fmt.Sprint("round ", round), want[:3], got); t.Failed() {
			return
		}
		if halts < 3 {
			t.Errorf("round %d: %d halts", round, halts)
		}
	}
}

// haltingForward runs a prefill that is halted and resumed every few steps.
func haltingForward(t *testing.T, line *Sequence, tokens []int32, round int) (halts int) {
	r, n := line.r, len(tokens)
	if !line.cache.Reserve(line.seq, line.pos+n) {
		t.Error("no block for the prompt")
		return 0
	}
	line.cache.Cover(line.seq, line.pos+n)
	b := kvcache.Batch{Prefill: true, Tokens: tokens, LogitRows: []int32{int32(n - 1)}}
	b.AddSpan(line.seq, kvcache.Span{Rows: n, Pos: line.pos})
	cuts := make([]uint16, r.Ops())
	for i := range cuts {
		if exec.Cuttable(&r.Model.Ops[i]) {
			cuts[i] = uint16(i % 4)
		}
	}
	r.Cut(cuts)
	defer r.Cut(nil)
	every := everyFew(2 + round%5)
	for from := 0; ; halts++ {
		next, err := r.Forward(line.l, &b, from, every)
		if err != nil || next <= from {
			t.Errorf("a forward from step %d ended at %d: %v", from, next, err)
			return halts
		}
		if from = next; from == r.Steps() {
			return halts
		}
	}
}

// TestWhatIsWaitedFor checks that only few kinds of ops wait for the chunk of a worker that lost
// its CPU. The other workers compute the chunks of all other kinds again.
func TestWhatIsWaitedFor(t *testing.T) {
	skipUnderRace(t)
	testSync = tp.SyncA // a forward of ranks may halt behind every op, too
	defer func() { testSync = tp.SyncB }()
	for _, ranks := range [][]int{{2}, {1, 1}} {
		c := lostCase{"qwen3", "1:0%:1ms", ranks}
		t.Run(c.name(), func(t *testing.T) { checkWaits(t, &c) })
	}
}

// checkWaits checks which ops wait for a worker that loses its CPU for a millisecond. On a busy
// machine the leader may lose its own CPU for longer, so that the worker is back in time: the kinds
// count if they appear in one of several runs.
func checkWaits(t *testing.T, c *lostCase) {
	const runs = 10
	r := c.open(t, lostFile(t, c.arch))
	defer r.Close()
	want := []model.Kind{model.OpEmbed, model.OpGather}
	var waited []model.Kind
	for range runs {
		if waited = kindsWaitedFor(t, r); t.Failed() || slices.Equal(waited, want) {
			return
		}
	}
	t.Errorf("kinds of ops that are waited for: %v, want %v", waited, want)
}

// kindsWaitedFor runs a prompt op by op and returns the kinds of ops of which no worker computed a
// private copy.
func kindsWaitedFor(t *testing.T, r *forward.Runner) (waited []model.Kind) {
	apart := func() uint64 {
		s := r.Pool().Stats()
		return s.Total().Private
	}
	r.Lead(func(l *pool.Leader) {
		line := NewSequence(r, l)
		line.cache.Reserve(line.seq, lostChunk)
		line.cache.Cover(line.seq, lostChunk)
		b := kvcache.Batch{Prefill: true, Tokens: exactPrompt(1)[:lostChunk], LogitRows: []int32{int32(lostChunk - 1)}}
		b.AddSpan(line.seq, kvcache.Span{Rows: lostChunk})
		for from := 0; from < r.Ops(); from++ {
			before := apart()
			if next, err := r.Forward(l, &b, from, everyFew(1)); err != nil || next != from+1 {
				t.Errorf("a forward from op %d ended at %d: %v", from, next, err)
				return
			}
			if kind := r.Model.Ops[from].Kind; apart() == before && !slices.Contains(waited, kind) {
				waited = append(waited, kind)
			}
		}
	})
	return waited
}

// everyFew halts a forward after every so many steps.
type everyFew int

func (n everyFew) Passed(next int) bool { return next%int(n) == 0 }
