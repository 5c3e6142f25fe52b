package offload

import (
	"bytes"
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
	"testing"

	"sandwich/runtime/device"
	"sandwich/runtime/device/sim"
	"sandwich/runtime/gguf"
	"sandwich/runtime/kvcache"
	"sandwich/runtime/model/synth"
)

// instant is a device whose kernels compute nothing and need no verification.
type instant struct{ device.Device }

func (d instant) Info() device.Info {
	i := d.Device.Info()
	i.Simulated = true
	return i
}

// instantDevices opens the devices of BenchmarkForward. They take no time for kernels, so that a
// forward takes the time of the host.
var instantDevices = map[string]func(b *testing.B) device.Device{
	"sim": func(*testing.B) device.Device { return sim.New(sim.Config{Mode: sim.Timed}) },
	// A stub of libcuda.so.1 in a child process.
	"cuda": func(b *testing.B) device.Device {
		folder := b.TempDir()
		compiler := exec.Command("cc", "-O1", "-ffp-contract=off", "-shared", "-fPIC", "-o",
			filepath.Join(folder, "libcuda.so.1"), "../device/cuda/testdata/stub.c", "-lm")
		if out, err := compiler.CombinedOutput(); err != nil {
			b.Skipf("no stub of the CUDA driver: %v: %s", err, out)
		}
		b.Setenv("LD_LIBRARY_PATH", folder)
		b.Setenv("STUB_KERNELS", "ignore")
		d, err := device.Open(b.Context(), "cuda:0")
		if err != nil {
			b.Skip(err)
		}
		return instant{d}
	},
}

// shortLlama writes llama-3.1-8b with so many layers and a short FFN, whose width costs the host
// nothing.
func shortLlama(b *testing.B, layers int) *gguf.File {
	c, err := synth.Preset("llama-3.1-8b")
	if err != nil {
		b.Fatal(err)
	}
	c.Dims.Layers, c.Dims.FFN = layers, 256
	var data bytes.Buffer
	w := gguf.NewWriter(&data)
	if err := synth.Write(context.Background(), w, c, synth.Uniform(gguf.Q4_K), 7, nil); err != nil {
		b.Fatal(err)
	}
	f, err := gguf.Parse(data.Bytes())
	if err != nil {
		b.Fatal(err)
	}
	return f
}

// BenchmarkForward measures what the host contributes to a decode step at position 128 and to a
// prefill of 512 rows.
func BenchmarkForward(b *testing.B) {
	for _, layers := range []int{8, 32} {
		b.Run(fmt.Sprintf("layers=%d", layers), func(b *testing.B) {
			f := shortLlama(b, layers)
			plan := testPlan(b, f, "int8-256")
			for _, name := range []string{"sim", "cuda"} {
				b.Run(name, func(b *testing.B) {
					dev := instantDevices[name](b)
					defer dev.Close()
					g := openWith(b, f, plan, Options{Device: dev, Rows: 512})
					defer g.close()
					for _, rows := range []int{1, 512} {
						b.Run(fmt.Sprintf("rows=%d", rows), func(b *testing.B) { benchmarkForward(b, g, rows) })
					}
				})
			}
		})
	}
}

func benchmarkForward(b *testing.B, g *rig, rows int) {
	pos := 0
	if rows == 1 {
		pos = 128
	}
	g.cache.Reserve(g.seq, pos+rows)
	g.cache.Cover(g.seq, pos+rows)
	g.batch = kvcache.Batch{Tokens: testTokens(rows, 128256), Prefill: rows > 1, LogitRows: []int32{int32(rows - 1)}}
	g.batch.AddSpan(g.seq, kvcache.Span{Rows: rows, Pos: pos})
	for range 3 { // learns the durations of segments
		if err := g.onDevice(); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := g.runner.Forward(b.Context(), 0, &g.batch, 0, 0, nil, nil); err != nil {
			b.Fatal(err)
		}
	}
}
