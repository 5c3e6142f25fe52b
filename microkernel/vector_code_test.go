package microkernel

import (
	"crypto/sha256"
	"fmt"
	"hash"
	"os"
	"slices"
	"strings"
	"testing"

	"sandwich/microkernel/internal/code"
	"sandwich/microkernel/internal/kernel"
)

// TestVectorCode pins the machine code of row operations, attention kernels and probes. Each line
// of testdata/vector.golden is a group of functions and a digest of their bytes. -update rewrites
// the file.
func TestVectorCode(t *testing.T) {
	const file = "testdata/vector.golden"
	var out strings.Builder
	line := func(name string, write func(h hash.Hash)) {
		h := sha256.New()
		write(h)
		fmt.Fprintf(&out, "%s %x\n", name, h.Sum(nil)[:8])
	}
	for _, isa := range []ISA{AVX2, AVX512, NEON} {
		target := isa.Target()
		attention := target.Attention
		for k := range kernel.VectorOps {
			line(fmt.Sprintf("%s/op/%d", isa, k), func(h hash.Hash) { writeCode(h)(target.Vector.Op(k)) })
		}
		for i, dot := range []kernel.Dot{NoDot, DPBF16, kernel.TDPBF16, VNNI} {
			limit := attention.Rows(dot)
			line(fmt.Sprintf("%s/attention/%d", isa, i), func(h hash.Hash) {
				eachAttention(dot, limit, func(f kernel.AttentionSpec) { writeCode(h)(attention.Kernel(f)) })
			})
			line(fmt.Sprintf("%s/open/%d", isa, i), func(h hash.Hash) {
				eachAttention(dot, limit, func(f kernel.AttentionSpec) { writeCode(h)(attention.OpenBlock(f)) })
			})
		}
		line(isa.String()+"/reader", func(h hash.Hash) {
			writeCode(h)(target.Probes.Reader(false))
			writeCode(h)(target.Probes.Reader(true))
		})
		for _, f := range []Features{target.Needs, ^Features(0)} {
			for _, typ := range []string{"f32", "int8", "bf16"} {
				if _, ok := target.Peaks[typ]; !ok {
					continue
				}
				line(fmt.Sprintf("%s/peak/%s/%x", isa, typ, f), func(h hash.Hash) {
					machine, ops, err := target.Probes.Peak(typ, f)
					writeCode(h)(machine, err)
					fmt.Fprintln(h, ops)
				})
			}
			for c := range InstructionClasses {
				line(fmt.Sprintf("%s/port/%s/%x", isa, c, f), func(h hash.Hash) {
					machine, n, err := target.Probes.Port([]code.Class{c, code.Load}, f)
					writeCode(h)(machine, err)
					fmt.Fprintln(h, n)
				})
			}
		}
	}
	for transpose := range kernel.Transposes {
		line(fmt.Sprintf("avx2/transpose/%d", transpose), func(h hash.Hash) {
			writeCode(h)(AVX2.Target().Vector.Transpose(transpose))
		})
	}
	compareGolden(t, file, out.String())
}

// compareGolden compares text with a golden file line by line and, with -update, rewrites it first.
func compareGolden(t *testing.T, file, text string) {
	t.Helper()
	if *update {
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	got, lines := strings.Split(text, "\n"), strings.Split(string(want), "\n")
	for i, line := range got {
		if i >= len(lines) || line != lines[i] {
			t.Fatalf("%s: line %d is %q: the machine code of these functions changed", file, i+1, line)
		}
	}
	if len(got) != len(lines) {
		t.Fatalf("%s has %d lines, want %d", file, len(lines), len(got))
	}
}

// writeCode returns a function that adds generated code, or its failure, to a digest.
func writeCode(h hash.Hash) func(machine []byte, err error) {
	return func(machine []byte, err error) { fmt.Fprintf(h, "%x %v\n", machine, err != nil) }
}

// eachAttention calls visit with a sample of the attention kernels of a dot product.
func eachAttention(dot kernel.Dot, limit int, visit func(f kernel.AttentionSpec)) {
	elements := []kernel.AttentionSpec{{}, {F16: true}, {F16: true, HoldsBF16: true}, {Int8: true}}
	for bits := range 1 << 4 {
		for _, f := range elements {
			f.Dot, f.Window, f.Capped, f.Opened = dot, bits&1 > 0, bits&2 > 0, bits&4 > 0
			if bits&8 > 0 {
				f.CPU = HasVBMI
			}
			if dot == VNNI && !f.Int8 || bits&8 > 0 && dot != VNNI || dot == NoDot && f.Opened {
				continue
			}
			for _, f.HeadDim = range []int{32, 64, 72, 128} {
				if f.Int8 && f.HeadDim%32 != 0 {
					continue
				}
				for _, f.Rows = range slices.Compact([]int{1, min(4, limit), min(8, limit), min(9, limit), limit}) {
					visit(f)
				}
			}
		}
	}
}
