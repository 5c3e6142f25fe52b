package offload

import (
	"bytes"
	"flag"
	"testing"
	"time"

	"sandwich/runtime/device"
	"sandwich/runtime/device/rates"
	"sandwich/runtime/gguf"
	"sandwich/runtime/model"
	"sandwich/runtime/model/synth"
)

var handoverLayers = flag.Int("handover", 0, "layers of a model of which TestHandover measures the hand-over")

// TestHandover prints how much longer a chunk of 512 tokens takes on the devices of this host
// because its keys and values are copied to the cores, and the time of such a copy at the measured
// rate. With 32 layers, the sizes are those of llama-3.1-8b: 67 MB.
func TestHandover(t *testing.T) {
	if *handoverLayers == 0 {
		t.Skip("it measures; make device-check runs it")
	}
	const rows = 512
	c := model.Config{Name: "handover", Arch: "llama", Eps: 1e-5, RopeBase: 10000,
		Dims: model.Dims{Hidden: 1024, Layers: *handoverLayers, Heads: 8, KVHeads: 8, HeadDim: 128, FFN: 256,
			Vocab: 331, Context: rows}}
	var data bytes.Buffer
	if err := synth.Write(t.Context(), gguf.NewWriter(&data), c, synth.Uniform(gguf.Q8_0), 7, nil); err != nil {
		t.Fatal(err)
	}
	f, err := gguf.Parse(data.Bytes())
	if err != nil {
		t.Fatal(err)
	}
	plan := testPlan(t, f, "int8")
	for _, found := range device.List(t.Context()) {
		if found.Err != nil || found.Info.NotAutomatic() != "" {
			continue
		}
		t.Run(found.ID, func(t *testing.T) {
			dev, err := device.Open(t.Context(), found.ID)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { dev.Close() })
			measured := rates.Describe(found.ID, "", dev.Info())
			if _, err := rates.Add(t.Context(), dev, &measured); err != nil {
				t.Fatal(err)
			}
			g := openRows(t, f, plan, dev, rows)
			g.describe(testTokens(rows, c.Dims.Vocab))
			g.batch.LogitRows = append(g.batch.LogitRows[:0], rows-1)
			with, without := g.fastest(t, true), g.fastest(t, false)
			moved := 2 * 2 * rows * c.Dims.KVHeads * c.Dims.HeadDim * c.Dims.Layers
			if g.runner.SharesKV() {
				moved = 0
			}
			copied := float64(moved) / measured.CopyBackBytesPerSecond
			t.Logf("%d bytes, chunk %.2f ms with and %.2f ms without copies", moved, with*1e3, without*1e3)
			t.Logf("handover %s %.2f of %.2f ms", found.ID, (with-without)*1e3, copied*1e3)
		})
	}
}

// fastest returns the least seconds of some forwards on the device, with the copies of keys and
// values to the cores or without them.
func (g *rig) fastest(t *testing.T, copies bool) (best float64) {
	t.Helper()
	for i := range 6 {
		began := time.Now()
		f := forward{Runner: g.runner, set: g.runner.sets[0], batch: &g.batch, end: g.runner.endOf(&g.batch)}
		err := f.begin(t.Context())
		if !copies {
			f.set.staged = nil
		}
		if err == nil {
			err = f.resume(t.Context())
		}
		if err != nil {
			t.Fatal(err)
		}
		if took := time.Since(began).Seconds(); i > 0 && (best == 0 || took < best) {
			best = took // the first one verifies kernels
		}
	}
	return best
}
