package enumerate_test

import (
	"runtime"
	"testing"

	"sandwich/topotree"
	"sandwich/topotree/enumerate"
	"sandwich/topotree/internal/topotest"
)

// benchEnumerate walks the whole default space of a machine and reports its counts and the heap
// that the walk held.
func benchEnumerate(b *testing.B, m *topotree.Machine) {
	b.Helper()
	defer topotest.WithoutVerify()()
	var stats enumerate.Stats
	var peak uint64
	b.ReportAllocs()
	for b.Loop() {
		n := 0
		for range enumerate.Trees(m.Tree, enumerate.Bounds{Stats: &stats}) {
			if n++; n%200000 == 0 {
				var ms runtime.MemStats
				runtime.ReadMemStats(&ms)
				peak = max(peak, ms.Sys)
			}
		}
	}
	b.ReportMetric(float64(stats.Generated), "generated")
	b.ReportMetric(float64(stats.Duplicates), "duplicates")
	b.ReportMetric(float64(stats.Kept), "kept")
	b.ReportMetric(float64(peak)/(1<<20), "MiB")
}

// BenchmarkEnumerate shows how the space grows with the machine.
func BenchmarkEnumerate(b *testing.B) {
	for _, c := range []struct{ name, text string }{
		{"16", "numa:2 l3:2 core:4"},
		{"64", "pack:2 l3:4 core:4 pu:2"},
		{"192-kunpeng920", topotest.Kunpeng920},
		{"256-epyc7h12", "pack:2 numa:1 l3:16 core:4 pu:2"},
		{"1024", "pack:4 numa:4 l3:2 core:16 pu:2"},
		{"1024-flat", "pack:8 core:128"},
	} {
		b.Run(c.name, func(b *testing.B) { benchEnumerate(b, topotest.Synthetic(b, c.text)) })
	}
}

// BenchmarkEnumerateTwoClasses enumerates the trees of a Kunpeng 920 with fast and slow nodes.
func BenchmarkEnumerateTwoClasses(b *testing.B) {
	m, err := topotest.Synthetic(b, topotest.Kunpeng920).WithMeasured([]topotree.MeasuredClass{
		{Name: "fast", CPUs: topotree.CPURange(0, 95)}, {Name: "slow", CPUs: topotree.CPURange(96, 191)}})
	if err != nil {
		b.Fatal(err)
	}
	benchEnumerate(b, m)
}
