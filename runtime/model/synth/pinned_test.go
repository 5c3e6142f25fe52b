package synth

import (
	"bytes"
	"crypto/sha256"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sandwich/runtime/gguf"
	"sandwich/runtime/model/modelfile"
	"sandwich/runtime/model/modelshape"
	"sandwich/runtime/refdata"
)

var update = flag.Bool("update", false, "write the golden files anew")

// TestPinned checks what other files store: the digests of shapes in plans, the bytes of synthetic
// models that results were measured with, and the order of ops of a forward. A new architecture
// adds lines. A changed line makes stored plans invalid.
func TestPinned(t *testing.T) {
	var got strings.Builder
	for _, name := range PresetNames() {
		c, err := Preset(name)
		if err != nil {
			t.Fatal(err)
		}
		for _, typ := range []string{"f32", "bf16", "q8_0", "q4_K_M"} {
			file, err := ParseFileType(typ)
			if err != nil {
				t.Fatal(err)
			}
			shape, err := Shape(c, file)
			if err != nil {
				t.Fatal(err)
			}
			fmt.Fprintf(&got, "preset %s %s %s\n", name, typ, shape.Digest())
		}
	}
	for _, arch := range []string{"llama", "qwen2", "qwen3", "qwen3moe"} {
		for _, tied := range []bool{false, true} {
			c := Small(arch)
			c.Tied = tied
			raw := synth(t, c, gguf.Q8_0, 5)
			fmt.Fprintf(&got, "synth %s tied=%t %x\n", arch, tied, sha256.Sum256(raw))
			fmt.Fprintf(&got, "ops %s tied=%t %s\n", arch, tied, loadedOps(t, raw))
		}
	}
	path := filepath.Join("testdata", "pinned.golden")
	if *update {
		if err := os.WriteFile(path, []byte(got.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if got.String() != string(want) {
		t.Errorf("digests, models or ops changed; now they are\n%s", got.String())
	}
}

// loadedOps are the ops of a file: kind, layer and name.
func loadedOps(t *testing.T, raw []byte) string {
	t.Helper()
	f, err := gguf.Parse(raw)
	if err != nil {
		t.Fatal(err)
	}
	m, err := modelfile.Load(f)
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, op := range m.Ops {
		out = append(out, fmt.Sprintf("%s/%d/%s", op.Kind, op.Layer, op.Name))
	}
	return strings.Join(out, " ")
}

// TestPinnedReference compares the digests of the available reference models with the golden file.
// Set SANDWICH_TESTDATA so that all are available before you update it.
func TestPinnedReference(t *testing.T) {
	golden, err := os.ReadFile(filepath.Join("testdata", "reference.golden"))
	if err != nil && !*update {
		t.Fatal(err)
	}
	want := map[string]bool{}
	for line := range strings.Lines(string(golden)) {
		want[line] = true
	}
	var got bytes.Buffer
	for _, path := range refdata.Glob(t, "parity/models/*.gguf") {
		f, err := gguf.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		shape, err := modelshape.Of(f)
		if err != nil {
			t.Fatal(err)
		}
		line := fmt.Sprintf("%s %s\n", filepath.Base(path), shape.Digest())
		if got.WriteString(line); !want[line] && !*update {
			t.Errorf("the digest is now %s", line)
		}
		if err := f.Close(); err != nil {
			t.Error(err)
		}
	}
	if *update {
		if err := os.WriteFile(filepath.Join("testdata", "reference.golden"), got.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}
