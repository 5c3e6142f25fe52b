package offload

import (
	"errors"
	"sync/atomic"
	"testing"

	"sandwich/runtime/device"
	"sandwich/runtime/device/sim"
	"sandwich/runtime/kvcache"
	"sandwich/runtime/pool"
)

// uploading is a gate that halts a forward after every step and reports progress to an Upload.
type uploading struct{ upload *Upload }

func (g *uploading) Passed(next int) bool {
	g.upload.Reached(next - 1)
	return true
}

// feedUploading runs a chunk on the cores, halted after every op, and copies its keys and values to
// the device meanwhile.
func (g *rig) feedUploading(tokens []int32) {
	g.t.Helper()
	g.describe(tokens)
	u := g.runner.NewUpload(&g.batch)
	g.a.Workers.Pool.Lead(func(l *pool.Leader) {
		for next := 0; next < len(g.a.Model.Ops); {
			u.Begin(&g.batch)
			at, err := g.prefill.Run(l, &g.batch, next, &uploading{u})
			if err != nil || at <= next {
				g.t.Fatalf("op %d: %v", at, err)
			}
			next = at
			u.End(next == len(g.a.Model.Ops))
		}
	})
	g.advance(tokens)
}

// TestUpload checks that the keys and values of prompts on the cores are on the device when the
// prompts end, so that a decode batch there copies none and has the bits of the cores.
func TestUpload(t *testing.T) {
	f := testFile(t, "llama", true)
	plan := testPlan(t, f, "int8")
	dev := sim.New(sim.Config{})
	defer dev.Close()
	cores, both := open(t, f, plan, nil), open(t, f, plan, dev)
	tokens := testTokens(testRows*2+5, 331)
	for at := 0; at < 2*testRows; at += testRows {
		cores.feed(tokens[at:][:testRows], false)
		both.feedUploading(tokens[at:][:testRows])
	}
	for i := range both.a.Stores {
		for pos := 0; pos < 2*testRows; pos += kvcache.BlockTokens {
			block := both.seq.Tables(nil)[i][pos/kvcache.BlockTokens]
			want := min(kvcache.BlockTokens, 2*testRows-pos)
			if got := int(both.runner.mirror.valid[i][block]); got != want {
				t.Errorf("block %d: %d positions are on the device, want %d", block, got, want)
			}
		}
	}
	for _, token := range tokens[2*testRows:] {
		one := []int32{token}
		sameLogits(t, "decode", both.feed(one, true), cores.feed(one, false))
	}
}

// TestUploadFails checks that the first decode batch after an upload that the device did not run
// reports that, or copies the blocks again.
func TestUploadFails(t *testing.T) {
	f := testFile(t, "llama", true)
	plan := testPlan(t, f, "int8")
	tokens := testTokens(21, 331)
	cores := open(t, f, plan, nil)
	cores.feed(tokens[:20], false)
	want := cores.feed(tokens[20:], false)
	for lies, reported := range map[int64]bool{1: false, 2: true} { // one upload per layer
		var armed atomic.Bool
		var uploads atomic.Int64
		dev := sim.New(sim.Config{Fault: func(device.Ticket) sim.Fault {
			if armed.Load() && uploads.Add(1) == lies { // the first submissions are uploads
				return sim.Lie
			}
			return sim.None
		}})
		defer dev.Close()
		g := open(t, f, plan, dev)
		armed.Store(true)
		g.feedUploading(tokens[:20])
		g.describe(tokens[20:])
		switch err := g.onDevice(); {
		case reported && !errors.Is(err, ErrResult):
			t.Errorf("lie %d: error %v, want %v", lies, err, ErrResult)
		case !reported && err != nil:
			t.Errorf("lie %d: %v", lies, err)
		case !reported:
			sameLogits(t, "after the lie", [][]float32{g.runner.Logits(0)}, want)
		}
	}
}
