package modelfile_test

import (
	"bytes"
	"context"
	"testing"

	"sandwich/runtime/gguf"
	"sandwich/runtime/model"
	"sandwich/runtime/model/synth"
)

// write returns the bytes of a synthetic model.
func write(t testing.TB, c model.Config, typ gguf.Type, seed uint64) []byte {
	t.Helper()
	var buf bytes.Buffer
	if err := synth.Write(context.Background(), gguf.NewWriter(&buf), c, synth.Uniform(typ), seed, nil); err != nil {
		t.Fatal(err)
	}
	return buf.Bytes()
}
