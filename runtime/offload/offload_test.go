package offload

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"regexp"
	"strings"
	"testing"
	"time"

	"sandwich/plans"
	"sandwich/plans/heuristic"
	"sandwich/profiles"
	"sandwich/runtime/device"
	"sandwich/runtime/device/sim"
	"sandwich/runtime/exec"
	"sandwich/runtime/gguf"
	"sandwich/runtime/kvcache"
	"sandwich/runtime/model"
	"sandwich/runtime/model/modelshape"
	"sandwich/runtime/model/synth"
	"sandwich/runtime/offload/unified"
	"sandwich/runtime/pool"
)

const testRows = 48 // of a chunk

// rig is a model on the cores, and on a device if it has one.
type rig struct {
	t        testing.TB
	a        *exec.Assembly
	prefill  *exec.Executor
	runner   *Runner // nil: the cores alone
	cache    *kvcache.Cache
	seq      *kvcache.Sequence
	pos      int
	batch    kvcache.Batch
	everyGap bool // the device halts after each segment
}

func testConfig(arch string, q8 bool) (model.Config, gguf.Type) {
	c := model.Config{Name: "small", Arch: arch, Eps: 1e-5, RopeBase: 10000, Tied: arch == "gemma3",
		Dims: model.Dims{Hidden: 64, Layers: 2, Heads: 4, KVHeads: 2, HeadDim: 32, FFN: 96, Vocab: 331, Context: 512}}
	if arch == "gemma3" {
		c.Windows = model.Windows{Size: 40, Base: 10000, Period: 6}
		c.Dims.Layers = 6
	}
	switch arch {
	case "qwen3moe", "qwen2moe", "gpt-oss":
		c.Experts = model.Experts{Count: 5, Used: 2, FFN: 32}
	}
	switch arch {
	case "qwen2moe":
		c.Experts.Shared = 64
	case "gpt-oss":
		c.Windows = model.Windows{Size: 40, Base: 10000, Period: 2}
	}
	if q8 {
		return c, gguf.Q8_0
	}
	c.Dims.Hidden, c.Dims.FFN = 256, 256
	return c, gguf.Q4_K
}

func testFile(t testing.TB, arch string, q8 bool) *gguf.File {
	t.Helper()
	c, typ := testConfig(arch, q8)
	var data bytes.Buffer
	if err := synth.Write(context.Background(), gguf.NewWriter(&data), c, synth.Uniform(typ), 7, nil); err != nil {
		t.Fatal(err)
	}
	f, err := gguf.Parse(data.Bytes())
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func testPlan(t testing.TB, f *gguf.File, compute string) *plans.Plan {
	t.Helper()
	host, err := profiles.Live()
	if err != nil {
		t.Fatal(err)
	}
	shape, err := modelshape.Of(f)
	if err != nil {
		t.Fatal(err)
	}
	plan, err := heuristic.Default(host, shape, heuristic.Options{Threads: 1, Compute: compute, Attend: "f32"})
	if err != nil {
		t.Fatal(err)
	}
	return plan
}

// open returns a rig whose device is nil for the cores alone.
func open(t *testing.T, f *gguf.File, plan *plans.Plan, dev device.Device) *rig {
	t.Helper()
	return openRows(t, f, plan, dev, testRows)
}

// openRows returns a rig whose device runs forwards of so many rows. A device with unified memory
// shares it.
func openRows(t *testing.T, f *gguf.File, plan *plans.Plan, dev device.Device, rows int) *rig {
	t.Helper()
	return openWith(t, f, plan, Options{Device: dev, Rows: rows})
}

// openWith returns a rig with a device of the given options.
func openWith(t testing.TB, f *gguf.File, plan *plans.Plan, o Options) *rig {
	t.Helper()
	if o.Device != nil {
		equal := func(device.Device, unified.Load) (unified.Rates, error) {
			return unified.Rates{Private: 1, Shared: 1}, nil
		}
		o.Memory = unified.New(o.Device, unified.Load{}, equal)
	}
	a, err := exec.Open(t.Context(), exec.Options{File: f, Plan: plan, Blocks: 12, Sequences: 2, LogitRows: testRows,
		Context: 512, Unpinned: true, Memory: o.Memory.Alloc})
	if err != nil {
		t.Fatal(err)
	}
	g := &rig{t: t, a: a, cache: a.NewCache()}
	t.Cleanup(func() { g.close() })
	if g.prefill, err = a.Compile(&plan.Prefill, a.Workers); err != nil {
		t.Fatal(err)
	}
	if o.Device != nil {
		o.Assembly, o.LogitRows, o.Sets, o.Context = a, testRows, 2, 512
		o.ExpertsOnCores = a.Model.Experts.Count > 0
		o.LeastTimeout = time.Hour // tests run on busy machines
		if g.runner, err = Open(o); err != nil {
			t.Fatal(err)
		}
	}
	g.seq = g.cache.Open(kvcache.Salt{})
	return g
}

func (g *rig) close() {
	if g.runner != nil {
		if err := g.runner.Close(); err != nil {
			g.t.Error(err)
		}
	}
	if g.prefill != nil {
		g.prefill.Close()
	}
	if err := g.a.Close(); err != nil {
		g.t.Error(err)
	}
}

// feed runs a chunk, on the device if onDevice, and returns the logits of all rows.
func (g *rig) feed(tokens []int32, onDevice bool) (logits [][]float32) {
	g.t.Helper()
	g.describe(tokens)
	if onDevice {
		if err := g.onDevice(); err != nil {
			g.t.Fatal(err)
		}
		for i := range tokens {
			logits = append(logits, append([]float32(nil), g.runner.Logits(i)...))
		}
	} else {
		logits = g.onCores()
	}
	g.advance(tokens)
	return logits
}

// describe makes the batch of a chunk.
func (g *rig) describe(tokens []int32) {
	g.cache.Reserve(g.seq, g.pos+len(tokens))
	g.cache.Cover(g.seq, g.pos+len(tokens))
	b := &g.batch
	b.Reset()
	b.Prefill = true
	b.Tokens = append(b.Tokens, tokens...)
	for i := range tokens {
		b.LogitRows = append(b.LogitRows, int32(i))
	}
	b.AddSpan(g.seq, kvcache.Span{Rows: len(tokens), Pos: g.pos})
}

// advance notes that a chunk is complete.
func (g *rig) advance(tokens []int32) {
	g.cache.Append(g.seq, tokens)
	g.pos += len(tokens)
}

func (g *rig) onDevice() error {
	var gate exec.Gate
	bound := time.Duration(0)
	if g.everyGap {
		gate, bound = always{}, time.Nanosecond
	}
	cores := g.cores()
	defer g.a.Buffers.Cut(nil)
	for next, steps := 0, cores.stepOf(len(g.a.Model.Ops)); next < steps; {
		at, err := g.runner.Forward(g.t.Context(), 0, &g.batch, next, bound, gate, cores)
		if err != nil {
			return err
		}
		if at <= next {
			return fmt.Errorf("the forward did not progress from step %d", next)
		}
		next = at
	}
	return nil
}

// cores returns what runs the experts of the model, each op in three steps if the forward halts
// after every step.
func (g *rig) cores() *Cores {
	var steps []uint16
	for i := range g.a.Model.Ops {
		steps = append(steps, 0)
		if g.everyGap && g.a.Model.Ops[i].Kind == model.OpExperts {
			steps[i] = 3
		}
	}
	g.a.Buffers.Cut(steps)
	run := func(b *kvcache.Batch, from int, gate exec.Gate) (next int, err error) {
		g.a.Workers.Pool.Lead(func(l *pool.Leader) { next, err = g.prefill.Run(l, b, from, gate) })
		return next, err
	}
	return &Cores{Buffers: g.a.Buffers, Steps: steps, Run: run}
}

func (g *rig) onCores() (logits [][]float32) {
	if g.runner != nil {
		g.runner.CoresWrite(&g.batch)
	}
	g.a.Workers.Pool.Lead(func(l *pool.Leader) {
		if _, err := g.prefill.Run(l, &g.batch, 0, nil); err != nil {
			g.t.Error(err)
		}
	})
	for i := range g.batch.LogitRows {
		logits = append(logits, append([]float32(nil), g.prefill.Logits(i)...))
	}
	return logits
}

type always struct{}

func (always) Passed(int) bool { return true }

func sameLogits(t *testing.T, what string, got, want [][]float32) {
	t.Helper()
	for i := range want {
		for k := range want[i] {
			if math.Float32bits(got[i][k]) != math.Float32bits(want[i][k]) {
				t.Fatalf("%s: row %d logit %d is %v on the device, %v on the cores", what, i, k, got[i][k], want[i][k])
			}
		}
	}
}

func testTokens(n, vocab int) (list []int32) {
	rng := rand.New(rand.NewPCG(3, 4))
	for range n {
		list = append(list, rng.Int32N(int32(vocab)))
	}
	return list
}

// TestBitEqual checks that chunks on the device and on the cores, in any order and halted after
// every segment, give the bits of the cores alone, with each way of sharing memory.
func TestBitEqual(t *testing.T) {
	for _, c := range []struct {
		arch    string
		q8      bool
		compute string
		sharing device.Sharing
	}{{"llama", true, "int8", device.NotShared}, {"qwen3", true, "f32", device.NotShared},
		{"qwen2", false, "int8-256", device.NotShared}, {"gemma3", true, "int8", device.NotShared},
		{"qwen3moe", true, "int8", device.Imported}, {"gpt-oss", true, "f32", device.NotShared},
		{"qwen2moe", true, "int8", device.Exported}, {"llama", true, "int8", device.Imported},
		{"qwen2", false, "int8-256", device.Exported}, {"qwen3moe", false, "int8-k", device.Imported}} {
		t.Run(fmt.Sprintf("%s/%s/%s", c.arch, c.compute, c.sharing), func(t *testing.T) {
			f := testFile(t, c.arch, c.q8)
			plan := testPlan(t, f, c.compute)
			cores := open(t, f, plan, nil)
			dev := sim.New(sim.Config{MemoryBytes: 1 << 30, Unified: true, Sharing: c.sharing})
			t.Cleanup(func() { dev.Close() })
			both := open(t, f, plan, dev)
			if both.a.Model.Experts.Count == 0 { // else the cores have a part of the weights
				wantCopies(t, dev, both, c.sharing)
			}
			tokens := testTokens(testRows*3, 331)
			for i, step := range []struct {
				n              int
				device, halted bool
			}{{testRows, true, false}, {5, false, false}, {1, false, false}, {testRows, true, true},
				{20, true, false}} {
				both.everyGap = step.halted
				chunk := tokens[both.pos:][:step.n]
				sameLogits(t, fmt.Sprintf("chunk %d", i), both.feed(chunk, step.device), cores.feed(chunk, false))
			}
		})
	}
}

// TestFaults checks that faults of a device are errors, after which the cores give the right bits,
// also in memory that they share.
func TestFaults(t *testing.T) {
	f := testFile(t, "llama", true)
	plan := testPlan(t, f, "int8")
	want := open(t, f, plan, nil).feed(testTokens(20, 331), false)
	reasons := map[sim.Fault]error{sim.Crash: device.ErrLost, sim.NaN: ErrResult, sim.Lie: ErrResult}
	for i := range 2 * (sim.Lie + 1) {
		fault, sharing := i/2, device.Sharing(i%2)
		reason := reasons[fault]
		if reason == nil {
			continue
		}
		t.Run(fmt.Sprint(fault, sharing), func(t *testing.T) {
			armed := false
			dev := sim.New(sim.Config{Unified: true, Sharing: sharing, Fault: func(device.Ticket) sim.Fault {
				if armed {
					return fault
				}
				return sim.None
			}})
			t.Cleanup(func() { dev.Close() })
			g := open(t, f, plan, dev)
			tokens := testTokens(20, 331)
			g.cache.Reserve(g.seq, 20)
			g.cache.Cover(g.seq, 20)
			g.batch = kvcache.Batch{Tokens: tokens, Prefill: true}
			for i := range tokens {
				g.batch.LogitRows = append(g.batch.LogitRows, int32(i))
			}
			g.batch.AddSpan(g.seq, kvcache.Span{Rows: 20})
			if err := g.onDevice(); err != nil { // it also verifies kernels
				t.Fatal(err)
			}
			armed = true
			if err := g.onDevice(); !errors.Is(err, reason) {
				t.Fatalf("error %v, want %v", err, reason)
			}
			sameLogits(t, "after the fault", g.onCores(), want)
		})
	}
}

// TestRefused checks that unsupported models and plans are refused, and that the error names what
// is missing.
func TestRefused(t *testing.T) {
	f := testFile(t, "llama", true)
	dev := sim.New(sim.Config{MemoryBytes: 1 << 16})
	defer dev.Close()
	plan := testPlan(t, f, "int8")
	g := open(t, f, plan, nil)
	_, err := Open(Options{Device: dev, Assembly: g.a, Rows: 8, LogitRows: 1, Sets: 1, Context: 512})
	numbers := regexp.MustCompile(`weights take [\d.]+ \wi?B, the KV cache [\d.]+ \wiB and activations [\d.]+ \wiB; ` +
		`64.* of 64.* are free on simulated device: lower --ctx`)
	if !errors.Is(err, device.ErrMemory) || !numbers.MatchString(err.Error()) {
		t.Errorf("too little memory: %v", err)
	}
	moe := model.Config{Name: "small", Arch: "qwen3moe", Eps: 1e-5, RopeBase: 10000,
		Experts: model.Experts{Count: 4, Used: 2, FFN: 32},
		Dims: model.Dims{Hidden: 64, Layers: 1, Heads: 2, KVHeads: 2, HeadDim: 32, FFN: 96, Vocab: 331,
			Context: 512}}
	var data bytes.Buffer
	if err := synth.Write(t.Context(), gguf.NewWriter(&data), moe, synth.Uniform(gguf.Q8_0), 7, nil); err != nil {
		t.Fatal(err)
	}
	file, err := gguf.Parse(data.Bytes())
	if err != nil {
		t.Fatal(err)
	}
	e := open(t, file, testPlan(t, file, "int8"), nil)
	if err := check(e.a, nil); !errors.Is(err, ErrUnsupported) || !strings.Contains(err.Error(), "layer 0: experts") {
		t.Errorf("experts: %v", err)
	}
}
