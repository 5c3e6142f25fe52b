package topotree

import (
	"bytes"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"sandwich/runtime/refdata"
)

// benchEnumerate walks the whole default space of a machine and reports its counts and the heap
// that the walk held.
func benchEnumerate(b *testing.B, m *Machine) {
	b.Helper()
	verify = false
	defer func() { verify = true }()
	var stats Stats
	var peak uint64
	b.ReportAllocs()
	for b.Loop() {
		n := 0
		for range Enumerate(m.Tree, Bounds{Stats: &stats}) {
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

// kunpeng920 is Sandwich's machine: 4 packages, 8 nodes x 24 cores, the clusters of four hidden.
const kunpeng920 = "pack:4 numa:2(memory=32GiB) l3:1(size=24MiB) l2:24(size=512KiB) core:1 pu:1"

// BenchmarkEnumerate shows how the space grows with the machine.
func BenchmarkEnumerate(b *testing.B) {
	for _, c := range []struct{ name, text string }{
		{"16", "numa:2 l3:2 core:4"},
		{"64", "pack:2 l3:4 core:4 pu:2"},
		{"192-kunpeng920", kunpeng920},
		{"256-epyc7h12", "pack:2 numa:1 l3:16 core:4 pu:2"},
		{"1024", "pack:4 numa:4 l3:2 core:16 pu:2"},
		{"1024-flat", "pack:8 core:128"},
	} {
		b.Run(c.name, func(b *testing.B) { benchEnumerate(b, mustSynthetic(b, c.text)) })
	}
}

// BenchmarkEnumerateTwoClasses walks kunpeng920 when a measurement told fast nodes from slow ones.
func BenchmarkEnumerateTwoClasses(b *testing.B) {
	m, err := mustSynthetic(b, kunpeng920).WithMeasured([]MeasuredClass{{"fast", CPURange(0, 95)},
		{"slow", CPURange(96, 191)}})
	if err != nil {
		b.Fatal(err)
	}
	benchEnumerate(b, m)
}

// BenchmarkRead reads saved machines from a file system, and XML from memory.
func BenchmarkRead(b *testing.B) {
	dir := refdata.Path(b, "topologies")
	for name, f := range readFacts(b, dir, "facts.json") {
		if f.Kind == "sysfs" {
			b.Run(name, func(b *testing.B) {
				root := b.TempDir()
				for path, file := range dumpFS(b, dir, f.Input, f.Folder) {
					if file.Mode.IsRegular() {
						writeFile(b, filepath.Join(root, path), file.Data)
					}
				}
				for b.Loop() {
					if _, err := ReadSysfs(os.DirFS(root)); err != nil {
						b.Fatal(err)
					}
				}
			})
			continue
		}
		b.Run(f.Input, func(b *testing.B) {
			text, err := os.ReadFile(filepath.Join(dir, f.Input))
			if err != nil {
				b.Fatal(err)
			}
			for b.Loop() {
				if _, err := ReadXML(bytes.NewReader(text)); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func writeFile(t testing.TB, path string, data []byte) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, data, 0o644); err != nil {
		t.Fatal(err)
	}
}
