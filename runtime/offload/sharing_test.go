package offload

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"sandwich/runtime/device"
	"sandwich/runtime/device/sim"
)

// wantCopies checks that weights and KV cache exist once if they are shared, by the bytes that the
// device allocated.
func wantCopies(t *testing.T, dev device.Device, g *rig, sharing device.Sharing) {
	t.Helper()
	info, model := dev.Info(), uint64(g.a.Weights.Bytes())+uint64(g.a.KV.Bytes())
	used, want := info.MemoryBytes-info.FreeBytes, g.runner.Bytes()
	for _, s := range g.runner.sets {
		for _, act := range append(s.acts[:], s.quantized, s.mark.at) {
			if act.Buffer != nil {
				want += act.Buffer.Bytes()
			}
		}
	}
	want += g.runner.uploads.mark.at.Buffer.Bytes()
	switch copied := g.runner.Copied(); sharing {
	case device.NotShared:
		if copied < model*9/10 || copied > model || used != want || g.runner.Bytes() < copied {
			t.Errorf("%d bytes are copied and %d used, want about %d and %d", copied, used, model, want)
		}
	case device.Exported: // the memory of the cores is that of the device
		want += model
		fallthrough
	default:
		if copied != 0 || used != want || !g.runner.SharesKV() {
			t.Errorf("%d bytes are copied and %d used, want 0 and %d", copied, used, want)
		}
	}
}

// TestRefusedSharing checks that a driver that refuses to share the weights, the KV cache or both
// gets copies, and that the note says so.
func TestRefusedSharing(t *testing.T) {
	f := testFile(t, "llama", true)
	plan := testPlan(t, f, "int8")
	tokens := testTokens(20, 331)
	want := open(t, f, plan, nil).feed(tokens, false)
	for _, refused := range [][]int{{1}, {2}, {1, 2}} {
		calls := 0
		dev := sim.New(sim.Config{Unified: true, Sharing: device.Imported, RefuseShared: func(uint64) error {
			if calls++; slices.Contains(refused, calls) {
				return errors.New("it cannot pin the pages")
			}
			return nil
		}})
		t.Cleanup(func() { dev.Close() })
		g := open(t, f, plan, dev)
		sameLogits(t, fmt.Sprint(refused), g.feed(tokens, true), want)
		weights, kv := g.runner.mem.shared.Buffer(g.a.Weights.Memory(0)) == nil, !g.runner.SharesKV()
		if weights != slices.Contains(refused, 2) || kv != slices.Contains(refused, 1) {
			t.Errorf("refused %v: copies of weights %v, of the KV cache %v", refused, weights, kv)
		}
		note := g.runner.mem.shared.Note(g.runner.Copied())
		if !strings.Contains(note, "a second copy of ") || !strings.HasSuffix(note, ": it cannot pin the pages") {
			t.Errorf("note %q", note)
		}
	}
}
