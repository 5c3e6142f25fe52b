package engine

import (
	"bytes"
	"context"
	"math/rand/v2"
	"sync"
	"testing"

	"sandwich/plans/heuristic"
	"sandwich/profiles"
	"sandwich/runtime/api"
	"sandwich/runtime/engine/forward"
	"sandwich/runtime/engine/sampling"
	"sandwich/runtime/exec"
	"sandwich/runtime/gguf"
	"sandwich/runtime/model"
	"sandwich/runtime/model/modelshape"
	"sandwich/runtime/model/synth"
	"sandwich/runtime/pool"
	"sandwich/runtime/sched"
	"sandwich/runtime/tokenizer"
)

const tinyVocab = 384

var tinyFile = sync.OnceValues(func() (*gguf.File, error) {
	var out bytes.Buffer
	c := model.Config{Name: "tiny", Arch: "llama", Eps: 1e-5, RopeBase: 10000,
		Dims: model.Dims{Hidden: 32, Layers: 2, Heads: 2, KVHeads: 1, HeadDim: 16, FFN: 48, Vocab: tinyVocab,
			Context: 1024}}
	if raceEnabled {
		c.Hidden, c.Layers, c.FFN = 16, 1, 32
	}
	if err := synth.Write(context.Background(), gguf.NewWriter(&out), c, synth.Uniform(gguf.F32), 3,
		nil); err != nil {
		return nil, err
	}
	return gguf.Parse(out.Bytes())
})

// tinyOptions are the sizes of an engine over a model that is quick even where kernels are plain
// Go.
func tinyOptions(t testing.TB) Options {
	t.Helper()
	file, err := tinyFile()
	if err != nil {
		t.Fatal(err)
	}
	return optionsFor(t, file)
}

func optionsFor(t testing.TB, file *gguf.File) Options {
	t.Helper()
	profile, err := profiles.Live()
	if err != nil {
		t.Fatal(err)
	}
	shape, err := modelshape.Of(file)
	if err != nil {
		t.Fatal(err)
	}
	plan, err := heuristic.Default(profile, shape, heuristic.Options{})
	if err != nil {
		t.Fatal(err)
	}
	plan.Chunk = 32
	tok, err := tokenizer.New(file)
	if err != nil {
		t.Fatal(err)
	}
	return Options{Options: forward.Options{Options: exec.Options{File: file, Plan: plan}}, IsEnd: tok.IsEOG,
		Context: 256, Parallel: 4, Queue: 8}
}

// open starts an engine that ends with the test.
func open(t testing.TB, o Options) *Engine {
	t.Helper()
	e, err := New(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(e.Close)
	return e
}

// byHand makes an engine without its loop: the test plans and runs each forward.
func byHand(t testing.TB, o Options) *Engine {
	t.Helper()
	e, err := newEngine(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	close(e.ended)
	t.Cleanup(e.Close)
	return e
}

// forward plans and runs one forward and returns it; nil where there is nothing to compute.
func (e *Engine) forward(l *pool.Leader) *sched.Action {
	act := e.driver.Next()
	if act != nil {
		e.run(l, act)
	}
	return act
}

// run runs the forward that the driver planned.
func (e *Engine) run(l *pool.Leader, act *sched.Action) {
	e.leader = l
	e.driver.Run(act)
}

// enter submits a request to an engine driven by hand.
func (e *Engine) enter(t testing.TB, req api.Request) *job {
	t.Helper()
	limit, err := e.admissible(&req)
	if err != nil {
		t.Fatal(err)
	}
	j := &job{req: &req, sampler: sampling.New(req.Sampling, req.Prompt), limit: limit}
	j.out.ready = make(chan struct{}, 1)
	if err := e.submit(j); err != nil {
		t.Fatal(err)
	}
	return j
}

// drained takes what a job has so far.
func (j *job) drained() (ids []int32, end *ending) {
	steps, end := j.out.take()
	for _, s := range steps {
		ids = append(ids, s.id)
	}
	return ids, end
}

func tinyPrompt(seed uint64, n int) []int32 {
	rng := rand.New(rand.NewPCG(seed, 2))
	out := make([]int32, n)
	for i := range out {
		out[i] = int32(259 + rng.IntN(tinyVocab-259)) // pieces, no control token
	}
	return out
}

// generate runs a request to its end and returns its tokens.
func generate(t testing.TB, e *Engine, req api.Request) (ids []int32, res api.Result) {
	t.Helper()
	res, err := e.Generate(context.Background(), req, func(tok api.Token) error {
		ids = append(ids, tok.ID)
		return nil
	})
	if err != nil {
		t.Error(err)
	}
	return ids, res
}

// checkIdle fails where anything of past requests is left: live ones, queued ones, or KV blocks in
// use. Under a loop that runs, use checkIdleSoon.
func checkIdle(t testing.TB, e *Engine) {
	t.Helper()
	e.mu.Lock()
	defer e.mu.Unlock()
	st := e.sched.Stats()
	if len(e.jobs) != 0 || e.sched.Live() != 0 || st.Waiting != [2]int{} || st.Running != [2]int{} {
		t.Errorf("%d jobs and %d requests are left: %+v", len(e.jobs), e.sched.Live(), st)
	}
	if st.Free != st.Blocks {
		t.Errorf("%d of %d KV blocks are free after the last request", st.Free, st.Blocks)
	}
	if err := e.sched.Check(); err != nil {
		t.Error(err)
	}
}
