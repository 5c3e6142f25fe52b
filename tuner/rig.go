package tuner

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	"sandwich/plans"
	"sandwich/runtime/exec"
	"sandwich/runtime/gguf"
	"sandwich/runtime/kvcache"
	"sandwich/runtime/model"
	"sandwich/runtime/model/synth"
	"sandwich/runtime/pool"
)

// rig runs whole forwards of the model under any phase of any plan, with the assembly that serves,
// on the workers that time the kernels. The finalists are measured on it.
type rig struct {
	ctx   context.Context
	model *exec.Assembly
	free  *exec.Workers // as many unpinned workers, for the unpinned arm
	seed  uint64
	size  rigSize

	arms    map[string]*arm           // compiled arms
	batches map[string]*kvcache.Batch // by test
}

// rigSize bounds the forwards of a rig.
type rigSize struct {
	batch int // sequences that decode together
	depth int // positions of each sequence before the decoded one
}

// blocks returns the number of KV blocks of these forwards and of prompts of one chunk.
func (s rigSize) blocks(chunk int) int {
	return max(kvcache.BlocksFor(chunk), s.batch*kvcache.BlocksFor(s.depth+1))
}

// options returns the options of an assembly for these forwards.
func (s rigSize) options(plan *plans.Plan) exec.Options {
	o := exec.Options{Plan: plan, Blocks: s.blocks(plan.Chunk), LogitRows: s.batch, Sequences: s.batch}
	if plan.Model.Pooled() { // it may read a whole text at once, and gets none longer than this
		o.Context = plan.Chunk
	}
	return o
}

// newRig loads the model. The workers must not be led meanwhile.
func newRig(ctx context.Context, w *exec.Workers, file *gguf.File, plan *plans.Plan, size rigSize) (*rig, error) {
	o := size.options(plan)
	o.File, o.Workers = file, w
	a, err := exec.Open(ctx, o)
	if err != nil {
		return nil, err
	}
	r := &rig{ctx: ctx, model: a, size: size, arms: map[string]*arm{}, batches: map[string]*kvcache.Batch{}}
	if r.free, err = w.Unbound(); err != nil {
		a.Close()
		return nil, err
	}
	return r, nil
}

func (r *rig) close() {
	for _, a := range r.arms {
		a.executor.Close()
	}
	r.free.Close()
	r.model.Close()
}

// randomModel returns random weights of a model's shapes, in memory. If the model has more than
// most bytes, it is reduced to as many layers as fit; layers are alike, so that arms compare as on
// the whole model.
func randomModel(ctx context.Context, c model.Config, t synth.FileType, most int64, seed uint64) (f *gguf.File,
	part string, err error) {
	shape, err := synth.Shape(c, t)
	if err != nil {
		return nil, "", err
	}
	layers := c.Layers
	for c.Layers > 1 && modelBytes(shape)*int64(c.Layers)/int64(layers) > most {
		c.Layers--
	}
	if c.Layers < layers {
		part = fmt.Sprintf("%d of %d layers", c.Layers, layers)
	}
	var data bytes.Buffer
	if err := synth.Write(ctx, gguf.NewWriter(&data), c, t, seed, nil); err != nil {
		return nil, "", fmt.Errorf("making random weights: %w", err)
	}
	f, err = gguf.Parse(data.Bytes())
	return f, part, err
}

// arm is one compiled phase of a plan.
type arm struct {
	executor *exec.Executor
	workers  []int // indices in the pool
	unpinned bool
}

// newArm compiles a phase for workers that are pinned to its PUs or unpinned, and keeps it under a
// key until the rig is closed. All its PUs must have a worker.
func (r *rig) newArm(key string, phase *plans.Phase, unpinned bool) (a *arm, err error) {
	on := r.model.Workers
	if unpinned {
		on = r.free
	}
	a = &arm{unpinned: unpinned}
	if a.workers, err = on.On(phase.PUs); err != nil {
		return nil, err
	}
	if a.executor, err = r.model.Compile(phase, on); err != nil {
		return nil, err
	}
	r.arms[key] = a
	return a, nil
}

// test returns the batch of a test and caches it.
func (r *rig) test(x raceTest) *kvcache.Batch {
	name := x.name()
	if r.batches[name] == nil {
		if x.phase == prefill {
			r.batches[name] = r.prompt(x.n)
		} else {
			r.batches[name] = r.step(x.n)
		}
	}
	return r.batches[name]
}

// textRows is the number of tokens of a text if several are read in one forward: a typical length
// of embedded texts, and a multiple of the blocks of the cache.
const textRows = 128

// prompt returns a batch with a prompt of n tokens, or for a pooled model with texts of n tokens in
// total, packed as serving packs them.
func (r *rig) prompt(n int) *kvcache.Batch {
	b := kvcache.Batch{Tokens: r.tokens(n), Prefill: true}
	texts := 1
	if r.model.Model.Pooled() {
		texts = r.size.batch
	}
	cache := r.model.NewCache()
	for _, s := range textSpans(n, texts) {
		r.addSpan(&b, cache, s)
		b.LogitRows = append(b.LogitRows, int32(s.Row+s.Rows-1))
	}
	return &b
}

// textSpans divides rows among at most most texts, of whole blocks except for the last one.
func textSpans(rows, most int) (out []kvcache.Span) {
	each := max(textRows, kvcache.BlocksFor((rows+most-1)/most)*kvcache.BlockTokens)
	for row := 0; row < rows; row += each {
		out = append(out, kvcache.Span{Seq: len(out), Row: row, Rows: min(each, rows-row)})
	}
	return out
}

// step returns a batch of n sequences with the rig's depth of positions each.
func (r *rig) step(n int) *kvcache.Batch {
	b := kvcache.Batch{Tokens: r.tokens(n)}
	cache := r.model.NewCache()
	for i := range n {
		r.addSpan(&b, cache, kvcache.Span{Seq: i, Row: i, Rows: 1, Pos: r.size.depth})
		b.LogitRows = append(b.LogitRows, int32(i))
	}
	return &b
}

func (r *rig) tokens(n int) []int32 {
	rng := rand.New(rand.NewPCG(r.seed, 3))
	out := make([]int32, n)
	for i := range out {
		out[i] = int32(rng.IntN(r.model.Model.Dims.Vocab))
	}
	return out
}

// addSpan adds rows of a new sequence. The contents of the positions before them are arbitrary. The
// rig was opened for all of its tests.
func (r *rig) addSpan(b *kvcache.Batch, c *kvcache.Cache, span kvcache.Span) {
	seq := c.Open(kvcache.Salt{})
	if !c.Reserve(seq, span.Pos+span.Rows) {
		panic("tuner: a test needs more blocks than the rig has")
	}
	c.Advance(seq, span.Pos)
	c.Cover(seq, span.Pos+span.Rows)
	b.AddSpan(seq, span)
}

// sample runs a batch times times on an arm and returns the seconds of one forward. A forward that
// is not complete at the end is stopped, and the error is errNoTime.
func (r *rig) sample(l *pool.Leader, a *arm, batch *kvcache.Batch, times int, end time.Time) (float64, error) {
	if err := context.Cause(r.ctx); err != nil {
		return 0, err
	}
	if !time.Now().Before(end) {
		return 0, errNoTime
	}
	var team exec.Team = l
	if a.unpinned {
		team = r.free.Pool
	} else if _, err := l.SetActive(a.workers); err != nil {
		return 0, err
	}
	began := time.Now()
	for range times {
		next, err := a.executor.Run(team, batch, 0, deadline(end))
		if err != nil {
			return 0, err
		}
		if next < a.executor.Steps() {
			return 0, errNoTime
		}
	}
	return time.Since(began).Seconds() / float64(times), nil
}

// deadline stops a forward at a point in time.
type deadline time.Time

// Passed implements exec.Gate.
func (g deadline) Passed(int) bool { return time.Now().After(time.Time(g)) }

// sampleSeconds is the approximate duration of one sample of a finalist: long enough to average
// over the timer ticks of the system.
const sampleSeconds = 0.02

// evenShare is the minimum duration of samples of short forwards relative to the longest ones.
// Shorter samples are too noisy to decide between tables that differ by 5 %.
const evenShare = 1.0 / 12

// repeats returns the number of forwards of the given length in a sample of the given length.
func repeats(seconds, sample float64) int { return min(200, max(1, int(sample/seconds))) }
