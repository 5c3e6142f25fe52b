package filehash

import (
	"bytes"
	"testing"

	"sandwich/runtime/demo"
	"sandwich/runtime/gguf"
)

// TestOf checks that equal files have equal hashes, and that a change of the metadata or of the
// first bytes of a tensor changes the hash.
func TestOf(t *testing.T) {
	of := func(data []byte) string {
		t.Helper()
		f, err := gguf.Parse(data)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		sum, err := Of(f)
		if err != nil || len(sum) != digits {
			t.Fatalf("%q, %v", sum, err)
		}
		return sum
	}
	data := demo.Model()
	first := of(data)
	if again := of(bytes.Clone(data)); again != first {
		t.Errorf("equal files have the hashes %s and %s", first, again)
	}
	f, err := gguf.Parse(data)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	tensors := f.Tensors()
	last := tensors[len(tensors)-1]
	at := bytes.LastIndex(data, last.Data)
	if at < 0 {
		t.Fatal("the last tensor is not found")
	}
	weights := bytes.Clone(data)
	weights[at+100] ^= 1
	if got := of(weights); got == first {
		t.Error("a changed weight does not change the hash")
	}
	name := bytes.Replace(data, []byte(f.Architecture()), bytes.ToUpper([]byte(f.Architecture())), 1)
	if got := of(name); got == first {
		t.Error("changed metadata does not change the hash")
	}
}
