package engine

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"runtime"
	"testing"

	"sandwich/plans/heuristic"
	"sandwich/runtime/exec"
	"sandwich/runtime/gguf"
)

// arithmeticOf is the hash of TestArithmeticVersion by exec.ArithmeticVersion. Entries are only
// added.
var arithmeticOf = map[int]string{
	1: "f2da76d4576205b634f35ed8e8e7d7c1fee2f270aa0dbe7fcfa769573ae0d69f",
}

// TestArithmeticVersion checks that exact plans give the logits that they gave when
// exec.ArithmeticVersion was last raised. If this test fails because a change of the arithmetic is
// intended, raise the version and add its hash: blocks of earlier builds are then not used.
func TestArithmeticVersion(t *testing.T) {
	skipUnderRace(t)
	if runtime.GOARCH != "amd64" {
		t.Skip("the random weights of the recorded hash are those of amd64")
	}
	h := sha256.New()
	for _, c := range []struct{ family, compute, kv string }{{"llama", "f32", "f16"}, {"llama", "int8", "q8_0"},
		{"gemma3", "f32", "f16"}, {"qwen35", "int8", "f16"}} {
		file := familyFile(t, c.family, gguf.Q8_0)
		o := heuristic.Options{Compute: c.compute, KV: c.kv, Attend: "f32", Threads: 1}
		for _, row := range logitsAlone(t, file, o, 64) {
			_ = binary.Write(h, binary.LittleEndian, row) // a hash does not fail
		}
	}
	got, want := fmt.Sprintf("%x", h.Sum(nil)), arithmeticOf[exec.ArithmeticVersion]
	if got != want {
		t.Errorf("logits have the hash %s; version %d of the arithmetic has %q", got, exec.ArithmeticVersion, want)
	}
}
