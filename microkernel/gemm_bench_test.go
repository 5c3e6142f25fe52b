package microkernel

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"runtime"
	"sort"
	"strings"
	"testing"
	"unsafe"

	"sandwich/microkernel/internal/kerneltest"
)

var benchSpec = flag.String("spec", "", "specs to benchmark in place of the built-in choice, separated by commas")

// candidates are the specs a benchmark runs: the one of -spec, or those of the list this host can
// run.
func candidates(b *testing.B, texts ...string) []Spec {
	if *benchSpec != "" {
		texts = strings.Split(*benchSpec, ",")
	}
	var out []Spec
	for _, t := range texts {
		s, err := ParseSpec(t)
		if err == nil {
			err = s.Validate()
		}
		if err != nil {
			b.Fatal(err)
		}
		if Host().Has(s.Needs()) {
			out = append(out, s)
		}
	}
	return out
}

// benchGEMM runs M x N x K with the panels of W visited in groups, over a W of the given number of
// copies so that it can be made larger than any cache. One op is the whole of M x N x K.
func benchGEMM(b *testing.B, s Spec, m, n, k int) {
	kernel, err := Build(s)
	if err != nil {
		b.Fatal(err)
	}
	l := Layout{s.B, n, k}
	w := kerneltest.Map(b, l.Bytes())
	r := rand.New(rand.NewPCG(1, 1))
	for i := 0; i < len(w); i += 2 {
		w[i], w[i+1] = byte(r.Uint32()), 0x20 // small positive scales, ordinary floats
	}
	row := 4 * k
	if s.Compute.Quantizes() {
		row = ActQ8RowBytes(k)
	}
	stride := row + 64*(1-row/64%2)
	a, c := kerneltest.Map(b, m*stride), kerneltest.Map(b, m*(4*n+64))
	for i := range m {
		if s.Compute.Quantizes() {
			randomActQ8(r, a[i*stride:][:row], s.Compute)
		}
	}
	g := GemmArgs{A: unsafe.Pointer(&a[0]), AStride: stride, BStride: l.PanelStride(), CStride: 4*n + 64, M: m, K1: k}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	var samples []float64
	for b.Loop() {
		start := kerneltest.ThreadTime()
		for n0 := 0; n0 < n; n0 += s.NR {
			g.B = unsafe.Pointer(&w[n0/PanelWidth*l.PanelStride()])
			g.C = unsafe.Pointer(&c[4*n0])
			g.N = min(s.NR, n-n0)
			kernel.Run(&g)
		}
		samples = append(samples, (kerneltest.ThreadTime() - start).Seconds())
	}
	sort.Float64s(samples)
	seconds := samples[len(samples)/2]
	flop := 2 * float64(m) * float64(n) * float64(k) / 1e9
	b.ReportMetric(flop/seconds, "GFLOP/s")
	b.ReportMetric(float64(l.Panels())*float64(l.panelBytes(k))/seconds/1e9, "GB/s")
	b.ReportMetric(0, "ns/op")
}

// BenchmarkTile is the arithmetic of the register tiles: M = 512 rows against one group of panels
// that stays in the second-level cache. The ceiling is the FMA peak (BenchmarkPeak).
func BenchmarkTile(b *testing.B) {
	for _, s := range candidates(b,
		"avx512/f32/f32/14x32/ku1/load", "avx512/f32/f32/14x32/ku2/load", "avx512/f32/f32/14x32/ku4/load",
		"avx512/f32/f32/14x32/ku4/embed",
		"avx512/f32/f32/9x48/ku4/load", "avx512/f32/f32/6x64/ku4/load", "avx512/f32/f32/24x16/ku4/embed",
		"avx512/f32/f32/8x32/ku4/load",
		"avx512/f32/f16/14x32/ku4/load", "avx512/f32/bf16/13x32/ku4/load", "avx512/f32/q8_0/12x32/ku32/load",
		"avx512/f32/q8_0/8x32/ku32/load",
		"avx512/f32/q4_0/11x32/ku32/load",
		"avx512/int8/q8_0/6x32/ku32/load/vnni", "avx512/int8/q8_0/7x32/ku32/load/vnni",
		"avx512/int8/q8_0/12x16/ku32/embed/vnni", "avx512/int8/q8_0/3x64/ku32/load/vnni",
		"avx512/int8/q4_0/6x32/ku32/load/vnni", "avx512/int8/q4_0/6x32/ku32/load/madd",
		"avx2/f32/f32/6x16/ku4/load", "avx2/f32/f32/3x32/ku4/load", "avx2/f32/f16/6x16/ku4/load",
		"avx2/int8/q8_0/3x16/ku32/load/avxvnni", "avx2/int8/q8_0/2x16/ku32/load/madd",
		"avx2/int8/q4_0/2x16/ku32/load/madd",
	) {
		b.Run(s.String(), func(b *testing.B) { benchGEMM(b, s, 512, s.NR, 512) })
	}
}

// BenchmarkStream is decode: few rows against 512 MiB of packed weights, read from memory once. The
// ceiling is the read bandwidth (BenchmarkReader).
func BenchmarkStream(b *testing.B) {
	for _, m := range []int{1, 4, 8} {
		for _, s := range candidates(b,
			"avx512/f32/f32/1x128/ku1/load", "avx512/f32/f32/1x64/ku2/load", "avx512/f32/f32/1x32/ku4/load",
			"avx512/f32/f32/1x16/ku4/load",
			"avx512/f32/f16/1x128/ku1/load", "avx512/f32/f16/1x64/ku2/load",
			"avx512/f32/bf16/1x128/ku2/load", "avx512/f32/bf16/1x64/ku2/load",
			"avx512/f32/q8_0/1x64/ku32/load", "avx512/f32/q8_0/1x128/ku32/embed",
			"avx512/f32/q4_0/1x64/ku32/load", "avx512/f32/q4_0/1x32/ku32/load",
			"avx512/int8/q8_0/1x128/ku32/load/vnni", "avx512/int8/q8_0/1x64/ku32/embed/vnni",
			"avx512/int8/q8_0/1x32/ku32/embed/vnni",
			"avx512/int8/q4_0/1x128/ku32/load/vnni", "avx512/int8/q4_0/1x64/ku32/embed/vnni",
			"avx512/int8/q4_0/1x64/ku32/load/madd",
		) {
			s.MR = m
			for s.Validate() != nil {
				s.NR -= PanelWidth
			}
			b.Run(fmt.Sprintf("M%d/%s", m, s), func(b *testing.B) {
				const k = 4096
				n := (512 << 20) / (Layout{s.B, 16, k}).PanelStride() * 16
				benchGEMM(b, s, m, n, k)
			})
		}
	}
}
