package offload

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"sandwich/runtime/device"
	"sandwich/runtime/device/sim"
	"sandwich/runtime/exec"
	"sandwich/runtime/gguf"
	"sandwich/runtime/kvcache"
	"sandwich/runtime/model"
	"sandwich/runtime/model/synth"
	"sandwich/runtime/pool"
)

// wavefrontRows is the number of rows of the prompts, four KV blocks.
const wavefrontRows = 4 * kvcache.BlockTokens

// wavefrontFile returns a model of two layers whose forwards the interpreter computes fast.
func wavefrontFile(t *testing.T) *gguf.File {
	t.Helper()
	c := model.Config{Name: "small", Arch: "llama", Eps: 1e-5, RopeBase: 10000,
		Dims: model.Dims{Hidden: 32, Layers: 2, Heads: 1, KVHeads: 1, HeadDim: 32, FFN: 32, Vocab: 331, Context: 512}}
	var data bytes.Buffer
	if err := synth.Write(t.Context(), gguf.NewWriter(&data), c, synth.Uniform(gguf.Q8_0), 7, nil); err != nil {
		t.Fatal(err)
	}
	f, err := gguf.Parse(data.Bytes())
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// prompt makes a batch of a whole prompt, which wants the logits of its last row.
func (g *rig) prompt(tokens []int32) {
	g.describe(tokens)
	g.batch.LogitRows = []int32{int32(len(tokens) - 1)}
}

// wavefront computes the batch in chunks of the given rows, of which the device computes the given
// numbers, and returns the logits of the last row.
func (g *rig) wavefront(chunks [][2]int) ([]float32, error) {
	w, err := g.runner.StartWavefront(g.t.Context(), 0, g.split(chunks), nil)
	if err != nil {
		return nil, err
	}
	g.a.Workers.Pool.Lead(func(l *pool.Leader) {
		for done := false; !done && err == nil; {
			w.Wait()
			done, err = w.Step(nil, func(b *kvcache.Batch, from int, gate exec.Gate) (int, error) {
				return g.prefill.Run(l, b, from, gate)
			})
		}
	})
	_, failed := w.End()
	if err := errors.Join(err, failed); err != nil {
		return nil, err
	}
	return append([]float32(nil), g.prefill.Logits(0)...), nil
}

// onlyCores computes the batch on the cores and returns the logits of the last row.
func (g *rig) onlyCores() []float32 { return g.onCores()[0] }

// TestWavefront checks wavefronts on a simulated device.
func TestWavefront(t *testing.T) {
	t.Run("shared", func(t *testing.T) {
		dev := sim.New(sim.Config{Unified: true, Sharing: device.Imported})
		t.Cleanup(func() { dev.Close() })
		testWavefront(t, dev, [][2]int{{128, 64}, {128, 64}})
	})
	dev := sim.New(sim.Config{})
	t.Cleanup(func() { dev.Close() })
	testWavefront(t, dev, wavefrontChunks...)
}

// wavefrontChunks has rows of chunks, and how many of them are on the device.
var wavefrontChunks = [][][2]int{
	{{256, 0}}, {{256, 64}}, {{256, 128}}, {{256, 192}},
	{{64, 0}, {64, 64}, {128, 64}},
	{{128, 64}, {128, 64}},
	{{64, 64}, {64, 0}, {64, 64}, {64, 0}},
}

// testWavefront checks that prompts have the bits of the cores for every number of rows on the
// device, with numbers that change from chunk to chunk, and that both caches then have all keys and
// values.
func testWavefront(t *testing.T, dev device.Device, prompts ...[][2]int) {
	f := wavefrontFile(t)
	plan := testPlan(t, f, "int8")
	tokens := testTokens(wavefrontRows+1, 64)
	cores := openRows(t, f, plan, nil, wavefrontRows)
	cores.prompt(tokens[:wavefrontRows])
	want := cores.onlyCores()
	cores.advance(tokens[:wavefrontRows])
	next := cores.feed(tokens[wavefrontRows:], false)
	for _, chunks := range prompts {
		t.Run(fmt.Sprint(chunks), func(t *testing.T) {
			g := openRows(t, f, plan, dev, wavefrontRows)
			g.prompt(tokens[:wavefrontRows])
			got, err := g.wavefront(chunks)
			if err != nil {
				t.Fatal(err)
			}
			sameLogits(t, "prompt", [][]float32{got}, [][]float32{want})
			g.advance(tokens[:wavefrontRows])
			g.describe(tokens[wavefrontRows:])
			if stale := g.runner.mirror.begin(g.batch.Spans, nil); len(stale) > 0 {
				t.Errorf("the device lacks %v", stale)
			}
			sameLogits(t, "decode on the cores", g.onCores(), next)
			if err := g.onDevice(); err != nil {
				t.Fatal(err)
			}
			sameLogits(t, "decode on the device", [][]float32{g.runner.Logits(0)}, next)
		})
	}
}

// TestWavefrontFaults checks that a device that crashes or stalls in the middle of a wavefront ends
// it with an error, after which the cores give the right bits.
func TestWavefrontFaults(t *testing.T) {
	f := wavefrontFile(t)
	plan := testPlan(t, f, "int8")
	tokens := testTokens(128, 64)
	cores := openRows(t, f, plan, nil, wavefrontRows)
	cores.prompt(tokens)
	want := cores.onlyCores()
	for _, c := range []struct {
		fault sim.Fault
		at    int64
		want  error
	}{{sim.Crash, 1, device.ErrLost}, {sim.Crash, 2, device.ErrLost}, {sim.Lie, 2, ErrResult},
		{sim.Stall, 2, device.ErrLost}} {
		t.Run(fmt.Sprint(c.fault, c.at), func(t *testing.T) {
			var armed atomic.Bool
			var submitted atomic.Int64
			dev := sim.New(sim.Config{Fault: func(device.Ticket) sim.Fault {
				if armed.Load() && submitted.Add(1) == c.at {
					return c.fault
				}
				return sim.None
			}})
			defer dev.Close()
			g := openRows(t, f, plan, dev, wavefrontRows)
			if c.fault == sim.Stall {
				g.assumeFast() // else a stall may last a minute
				g.runner.times.least = 50 * time.Millisecond
			}
			armed.Store(true)
			g.prompt(tokens)
			if _, err := g.wavefront([][2]int{{128, 64}}); !errors.Is(err, c.want) {
				t.Errorf("error %v, want %v", err, c.want)
			}
			sameLogits(t, "after the fault", [][]float32{g.onlyCores()}, [][]float32{want})
		})
	}
}

// TestWavefrontRefuses checks chunks that cannot be computed, and a context that ends.
func TestWavefrontRefuses(t *testing.T) {
	f := wavefrontFile(t)
	dev := sim.New(sim.Config{})
	defer dev.Close()
	g := openRows(t, f, testPlan(t, f, "int8"), dev, wavefrontRows)
	g.prompt(testTokens(wavefrontRows, 64))
	whole := SplitBatch(&g.batch, wavefrontRows)
	tail := SplitBatch(&g.batch, 100)
	for name, chunks := range map[string][]Chunk{
		"logits of the device": {whole},
		"within a block":       {tail},
	} {
		if _, err := g.runner.StartWavefront(t.Context(), 0, chunks, nil); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	w, err := g.runner.StartWavefront(ctx, 0, []Chunk{SplitBatch(&g.batch, 64)}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.End(); !errors.Is(err, context.Canceled) {
		t.Errorf("after the context ended: %v", err)
	}
}
