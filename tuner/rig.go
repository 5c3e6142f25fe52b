package tuner

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"sandwich/plans"
	"sandwich/runtime/exec"
	"sandwich/runtime/gguf"
	"sandwich/runtime/kvcache"
	"sandwich/runtime/mem"
	"sandwich/runtime/model"
	"sandwich/runtime/pool"
)

// rig runs whole forwards of the model under any phase of any plan: the serving executors over one copy of the weights. The finalists are measured on it.
type rig struct {
	ctx     context.Context
	pool    *pool.Pool // one worker for each usable PU
	free    *pool.Pool // as many workers, bound to nothing: the unpinned arm
	kernels *exec.Kernels
	parts   *exec.Parts
	groups  *exec.Groups // of pool; nil with one rank
	loose   *exec.Groups // of free
	weights *exec.Weights
	kv      exec.KVStores
	bufs    *exec.Buffers
	part    string // "" for the whole model, else which part of it stands for it
	seed    uint64
}

// rigSize is what forwards of a rig may have.
type rigSize struct {
	rows  int // of one forward
	batch int // sequences that decode together
	depth int // positions of each before the one that is decoded
}

// blocks is how many KV blocks these forwards need.
func (s rigSize) blocks() int {
	return max(kvcache.BlocksFor(s.rows), s.batch*kvcache.BlocksFor(s.depth+1))
}

// newRig loads the model. The pool must not be led meanwhile.
func newRig(ctx context.Context, p *pool.Pool, file *gguf.File, part string, plan *plans.Plan, k *exec.Kernels, size rigSize, seed uint64) (r *rig, err error) {
	r = &rig{ctx: ctx, pool: p, kernels: k, part: part, seed: seed}
	defer func() {
		if err != nil {
			r.close()
			r = nil
		}
	}()
	m, err := model.Load(file)
	if err != nil {
		return r, err
	}
	if r.parts, err = exec.Divide(m, plan); err != nil {
		return r, err
	}
	if room, need := mem.Available(), r.parts.PackedBytes(); room > 0 && need > room*9/10 {
		return r, fmt.Errorf("the weights need %s and %s of memory are available", mem.FormatBytes(need), mem.FormatBytes(room))
	}
	if r.weights, err = exec.LoadWeights(r.parts, plan, p, nil); err != nil {
		return r, err
	}
	if r.kv, err = exec.NewKVStores(r.parts, plan.KV, size.blocks()); err != nil {
		return r, err
	}
	if r.bufs, err = exec.NewBuffers(r.parts, max(size.rows, size.batch), size.batch, r.weights.RoundedK()); err != nil {
		return r, err
	}
	if r.free, err = pool.New(p.PUs(), pool.Options{}); err != nil {
		return r, err
	}
	if r.groups, err = r.parts.Groups(p, k.Vec); err != nil {
		return r, err
	}
	r.loose, err = r.parts.Groups(r.free, k.Vec)
	return r, err
}

func (r *rig) close() {
	if r.free != nil {
		r.free.Close()
	}
	if r.bufs != nil {
		r.bufs.Free()
	}
	if r.kv != nil {
		r.kv.Free()
	}
	if r.weights != nil {
		r.weights.Free()
	}
}

// random weights of a model's shapes, in memory. Where the whole model has more than most bytes, it is cut to as few layers as have that many: layers are alike, so that
// the arms compare as they would on the whole.
func randomModel(ctx context.Context, c model.Config, t model.FileType, most int64, seed uint64) (f *gguf.File, part string, err error) {
	shape, err := c.Shape(t)
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
	if err := model.SynthTo(ctx, gguf.NewWriter(&data), c, t, seed, nil); err != nil {
		return nil, "", fmt.Errorf("making random weights: %w", err)
	}
	f, err = gguf.Parse(data.Bytes())
	return f, part, err
}

// arm is one phase of a plan, compiled.
type arm struct {
	name     string
	executor *exec.Executor
	workers  []int // of the pool
	unpinned bool
	samples  [][]float64 // seconds, by test
}

// newArm compiles a phase, for workers that are bound to its PUs or to nothing. All its PUs must be in the pool.
func (r *rig) newArm(name string, phase *plans.Phase, unpinned bool) (*arm, error) {
	c := exec.Config{Parts: r.parts, Weights: r.weights, KV: r.kv, Buffers: r.bufs, Pool: r.pool, Groups: r.groups, Phase: phase, Kernels: r.kernels}
	if unpinned {
		c.Pool, c.Groups = r.free, r.loose
	}
	e, err := exec.New(c)
	if err != nil {
		return nil, err
	}
	a := &arm{name: name, executor: e, unpinned: unpinned}
	pus := r.pool.PUs()
	for _, pu := range phase.PUs {
		i := slices.Index(pus, pu)
		if i < 0 {
			e.Close()
			return nil, fmt.Errorf("PU %d is not among those that may be used", pu)
		}
		a.workers = append(a.workers, i)
	}
	slices.Sort(a.workers)
	return a, nil
}

// test is one kind of forward that arms are compared on.
type test struct {
	name   string // pp512, tg1x4 (batch of 4)
	batch  kvcache.Batch
	tokens int // what a forward produces or takes in
	times  int // forwards a sample
}

// prefillTest is a prompt of n tokens.
func (r *rig) prefillTest(n int) test {
	b := kvcache.Batch{Tokens: r.tokens(n), LogitRows: []int32{int32(n - 1)}, Prefill: true}
	b.Spans = []kvcache.Span{{Rows: n, Table: table(0, kvcache.BlocksFor(n))}}
	return test{name: fmt.Sprintf("pp%d", n), batch: b, tokens: n, times: 1}
}

// decodeTest is one step of n sequences that have depth positions each.
func (r *rig) decodeTest(n, depth int) test {
	b := kvcache.Batch{Tokens: r.tokens(n)}
	each := kvcache.BlocksFor(depth + 1)
	for i := range n {
		b.Spans = append(b.Spans, kvcache.Span{Seq: i, Row: i, Rows: 1, Pos: depth, Table: table(i*each, each)})
		b.LogitRows = append(b.LogitRows, int32(i))
	}
	return test{name: fmt.Sprintf("tg batch %d", n), batch: b, tokens: n, times: 1}
}

func (r *rig) tokens(n int) []int32 {
	rng := rand.New(rand.NewPCG(r.seed, 3))
	out := make([]int32, n)
	for i := range out {
		out[i] = int32(rng.IntN(r.parts.Whole.Dims.Vocab))
	}
	return out
}

func table(first, n int) []kvcache.BlockID {
	out := make([]kvcache.BlockID, n)
	for i := range out {
		out[i] = kvcache.BlockID(first + i)
	}
	return out
}

// sample runs a test on an arm and returns the seconds of one forward.
func (r *rig) sample(l *pool.Leader, a *arm, t *test) (float64, error) {
	if err := context.Cause(r.ctx); err != nil {
		return 0, err
	}
	var team exec.Team = l
	if a.unpinned {
		team = r.free
	} else if _, err := l.SetActive(a.workers); err != nil {
		return 0, err
	}
	began := time.Now()
	for range t.times {
		if _, err := a.executor.Run(team, &t.batch, 0, nil); err != nil {
			return 0, err
		}
	}
	return time.Since(began).Seconds() / float64(t.times), nil
}

// sampleSeconds is about what one sample of a finalist takes: long enough to average over the ticks of the system.
const sampleSeconds = 0.02

// calibrate runs a test once to warm up and sets how many forwards make a sample.
func (r *rig) calibrate(l *pool.Leader, a *arm, t *test) (seconds float64, err error) {
	t.times = 1
	if _, err = r.sample(l, a, t); err != nil {
		return 0, err
	}
	if seconds, err = r.sample(l, a, t); err != nil {
		return 0, err
	}
	t.times = repeats(seconds)
	return seconds, nil
}

// repeats is how many forwards of the given length make a sample.
func repeats(seconds float64) int { return min(200, max(1, int(sampleSeconds/seconds))) }
