package offload

import (
	"errors"
	"fmt"
	"testing"

	"sandwich/runtime/device/sim"
	"sandwich/runtime/exec"
	"sandwich/runtime/kvcache"
	"sandwich/runtime/pool"
)

// TestWavefrontPauses checks that a wavefront that pauses after steps of the cores, while
// another sequence runs on the device, has the bits of the cores, and that the other one has too.
func TestWavefrontPauses(t *testing.T) {
	f := wavefrontFile(t)
	plan := testPlan(t, f, "int8")
	tokens := testTokens(wavefrontRows-kvcache.BlockTokens+1, 64)
	dev := sim.New(sim.Config{})
	defer dev.Close()
	cores := openRows(t, f, plan, nil, wavefrontRows)
	cores.prompt(tokens)
	want := cores.onlyCores()
	cores.seq, cores.pos = cores.cache.Open(kvcache.Salt{1}), 0
	cores.prompt(tokens[:3])
	wantOther := cores.onlyCores()
	for _, sizes := range [][][2]int{{{193, 64}}, {{64, 64}, {64, 0}, {65, 64}}} {
		t.Run(fmt.Sprint(sizes), func(t *testing.T) {
			g := openRows(t, f, plan, dev, wavefrontRows)
			other := openOther(g, tokens[:3])
			g.prompt(tokens)
			list, changed := g.split(sizes), make(chan struct{}, 1)
			w, err := g.runner.StartWavefront(t.Context(), 0, list, func() {
				select {
				case changed <- struct{}{}:
				default:
				}
			})
			if err != nil {
				t.Fatal(err)
			}
			pauses, steps := 0, 0
			g.a.Workers.Pool.Lead(func(l *pool.Leader) {
				for done := false; !done && err == nil; {
					w.Wait()
					done, err = w.Step(always{}, func(b *kvcache.Batch, from int, gate exec.Gate) (int, error) {
						return g.prefill.Run(l, b, from, gate)
					})
					if steps++; steps%3 > 0 {
						continue
					}
					w.Pause()
					for halted := false; !halted && err == nil; {
						if halted, err = w.Halted(); !halted {
							<-changed
						}
					}
					if pauses++; err == nil {
						_, err = g.runner.Forward(t.Context(), 1, other, 0, 0, nil, nil)
						sameLogits(t, "other sequence", [][]float32{g.runner.Logits(0)}, [][]float32{wantOther})
					}
					w.Resume(g.split(sizes))
				}
			})
			_, failed := w.End()
			if err := errors.Join(err, failed); err != nil {
				t.Fatal(err)
			}
			if sameLogits(t, "prompt", [][]float32{g.prefill.Logits(0)}, [][]float32{want}); pauses < 5 {
				t.Errorf("%d pauses", pauses)
			}
		})
	}
}

// openOther returns a batch of another sequence.
func openOther(g *rig, tokens []int32) *kvcache.Batch {
	s := g.cache.Open(kvcache.Salt{1})
	g.cache.Reserve(s, len(tokens))
	g.cache.Cover(s, len(tokens))
	b := &kvcache.Batch{Prefill: true, Tokens: tokens, LogitRows: []int32{int32(len(tokens) - 1)}}
	b.AddSpan(s, kvcache.Span{Seq: 1, Rows: len(tokens)})
	return b
}

// split divides the batch into chunks of the given rows and rows of the device.
func (g *rig) split(sizes [][2]int) (list []Chunk) {
	for rest := &g.batch; len(sizes) > 0; sizes = sizes[1:] {
		both := SplitBatch(rest, sizes[0][0])
		list = append(list, SplitBatch(&both.Device, sizes[0][1]))
		rest = &both.Cores
	}
	return list
}

// TestWavefrontDiscard checks that a paused wavefront that is discarded leaves the device usable.
func TestWavefrontDiscard(t *testing.T) {
	f := wavefrontFile(t)
	dev := sim.New(sim.Config{})
	defer dev.Close()
	g := openRows(t, f, testPlan(t, f, "int8"), dev, wavefrontRows)
	tokens := testTokens(128, 64)
	g.prompt(tokens)
	want := g.onlyCores()
	g.runner.CoresWrite(&g.batch)
	g.prompt(tokens)
	w, err := g.runner.StartWavefront(t.Context(), 0, g.split([][2]int{{128, 64}}), nil)
	if err != nil {
		t.Fatal(err)
	}
	w.Pause()
	w.Discard()
	if halted, _ := w.Halted(); !halted {
		t.Error("the device runs after Discard")
	}
	if err := g.onDevice(); err != nil {
		t.Fatal(err)
	}
	sameLogits(t, "after Discard", [][]float32{g.runner.Logits(0)}, [][]float32{want})
}
