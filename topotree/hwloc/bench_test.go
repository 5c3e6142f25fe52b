package hwloc_test

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"sandwich/runtime/refdata"
	"sandwich/topotree/hwloc"
	"sandwich/topotree/internal/topotest"
	"sandwich/topotree/sysfs"
)

// BenchmarkRead reads saved machines from a file system, and XML from memory.
func BenchmarkRead(b *testing.B) {
	dir := refdata.Path(b, "topologies")
	for name, f := range topotest.ReadFacts(b, dir, "facts.json") {
		if f.Kind == "sysfs" {
			b.Run(name, func(b *testing.B) {
				root := b.TempDir()
				for path, file := range topotest.DumpFS(b, dir, f.Input, f.Folder) {
					if file.Mode.IsRegular() {
						writeFile(b, filepath.Join(root, path), file.Data)
					}
				}
				for b.Loop() {
					if _, err := sysfs.Read(os.DirFS(root)); err != nil {
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
				if _, err := hwloc.ReadXML(bytes.NewReader(text)); err != nil {
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
