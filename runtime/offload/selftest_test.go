package offload

import (
	"encoding/binary"
	"errors"
	"math"
	"strings"
	"testing"

	"sandwich/microkernel"
	"sandwich/microkernel/devgen"
	"sandwich/microkernel/devgen/kernels"
	"sandwich/microkernel/qtype"
	"sandwich/runtime/device"
	"sandwich/runtime/device/sim"
)

// changed returns a function that changes every number that a kernel writes, if its name contains
// part.
func changed(part string, mask byte) func(*devgen.Kernel, [][]byte) {
	return func(k *devgen.Kernel, buffers [][]byte) {
		if !strings.Contains(k.Name, part) {
			return
		}
		for i, b := range k.Bindings {
			if b.Access == devgen.Read {
				continue
			}
			for at := 0; at+4 <= len(buffers[i]); at += 4 {
				buffers[i][at] ^= mask        // the lowest bits of a float32
				buffers[i][at+3] ^= mask &^ 1 // sign and exponent
			}
		}
	}
}

// TestKernelSelfTest checks that a device with an inexact kernel is refused by the kernel's name,
// that Rounding permits rounding and no more, and that such a device is not reported as exact.
func TestKernelSelfTest(t *testing.T) {
	f := testFile(t, "llama", true)
	plan := testPlan(t, f, "int8")
	cores := open(t, f, plan, nil)
	for _, c := range []struct {
		name     string
		config   sim.Config
		rounding bool
		exact    bool
		want     string // of the error; "": none
	}{
		{"exact", sim.Config{}, false, true, ""},
		{"permitted but exact", sim.Config{}, true, true, ""},
		{"rounded product", sim.Config{After: changed("q8_0_int8", 1)}, false, false,
			"arithmetic that is not exact (kernel rows1x1_q8_0_int8_store"},
		{"rounded attention", sim.Config{After: changed("attention", 1)}, false, false,
			"not exact (kernel attention_part_32"},
		{"permitted rounding", sim.Config{After: changed("attention", 1)}, true, false, ""},
		{"wrong results", sim.Config{After: changed("attention", 0x7F)}, true, false,
			"wrong results (kernel attention_part_32"},
		{"inexact class", sim.Config{Inexact: 1 << device.Division}, false, false, "not exact (division)"},
		{"permitted class", sim.Config{Inexact: 1 << device.Division}, true, false, ""},
	} {
		c.config.Name = "self-test: " + c.name
		dev := sim.New(c.config)
		for range 2 { // the second time without a run
			r, err := Open(Options{Device: dev, Assembly: cores.a, Rows: testRows, LogitRows: 1, Sets: 1, Context: 512,
				Rounding: c.rounding})
			switch {
			case c.want == "" && err != nil || c.want != "" && (!errors.Is(err, ErrUnsupported) ||
				!strings.Contains(err.Error(), c.want)):
				t.Errorf("%s: %v, want %q", c.name, err, c.want)
			case err == nil && r.Exact() != c.exact:
				t.Errorf("%s: Exact is %v", c.name, r.Exact())
			}
			if r != nil {
				if err := r.Close(); err != nil {
					t.Error(err)
				}
			}
		}
		dev.Close()
	}
}

// TestSamples checks that each kind of kernel has a sample which the interpreter runs and that its
// results are finite.
func TestSamples(t *testing.T) {
	dev := sim.New(sim.Config{})
	defer dev.Close()
	list := []description{addRows{}, gatherRows{}, kernels.Norm{Norm: true, Float: true, Words: 1},
		kernels.Norm{Path: microkernel.ComputeInt8, Words: 1},
		kernels.Norm{Path: microkernel.ComputeInt8Superblock, Words: 1},
		kernels.Norm{Path: microkernel.ComputeInt8K, Words: 1},
		kernels.Norm{Norm: true, Float: true, Path: microkernel.ComputeInt8, Words: 1},
		kernels.Rotate{HeadDim: 32, Rotated: 16, Neox: true, QNorm: true, KNorm: true}, kernels.Rotate{HeadDim: 64},
		kernels.Norm{Add: true, Norm: true, Float: true, Path: microkernel.ComputeInt8K, Words: 1},
		kernels.AttentionPart{HeadDim: 32, Rows: 4, Softcap: true},
		kernels.AttentionPart{HeadDim: 64, Rows: 1, Window: true},
		kernels.AttentionMerge{HeadDim: 32, Rows: 8, Sinks: true},
		kernels.AttentionMerge{HeadDim: 64, Rows: 1, Window: true},
		kernels.Attention{HeadDim: 32, Rows: 8}, kernels.Attention{HeadDim: 32, Rows: 4, Window: true, Softcap: true}}
	for _, g := range []kernels.GEMM{{Weight: qtype.Q8_0, Path: microkernel.ComputeInt8, Bias: true},
		{Weight: qtype.Q4_K, Path: microkernel.ComputeInt8Superblock, Epilogue: kernels.Gated, Unit: kernels.GeGLU},
		{Weight: qtype.Q6_K, Path: microkernel.ComputeInt8, Epilogue: kernels.Add}, {Weight: qtype.BF16},
		{Weight: qtype.Q2_K, Path: microkernel.ComputeInt8K}, {Weight: qtype.IQ4_XS, Path: microkernel.ComputeInt8K},
		{Weight: qtype.Q4_0, Path: microkernel.ComputeInt8}, {Weight: qtype.F16, Epilogue: kernels.Add}} {
		for _, rows := range []int{1, 8, 32} {
			list = append(list, g.For(rows, false), g.For(rows, true))
		}
	}
	seen := map[description]bool{}
	for _, d := range list {
		if seen[d] {
			continue
		}
		seen[d] = true
		k, err := d.Kernel()
		if err != nil {
			t.Fatal(err)
		}
		s, err := sampleOf(d, k)
		if err != nil {
			t.Fatal(err)
		}
		if err := device.Verify(t.Context(), dev, k, s.groups, s.buffers, s.push); err != nil {
			t.Errorf("%s: %v", k.Name, err)
		}
		for i, b := range k.Bindings {
			if b.Access != devgen.Read && b.Name != "quantized" && b.Name != "kv" && !finite(floatsOf(s.buffers[i])) {
				t.Errorf("%s: %s is not finite", k.Name, b.Name)
			}
		}
	}
}

func floatsOf(data []byte) (x []float32) {
	for at := 0; at+4 <= len(data); at += 4 {
		x = append(x, math.Float32frombits(binary.LittleEndian.Uint32(data[at:])))
	}
	return x
}
