package engine

import (
	"bytes"
	"context"
	"fmt"
	"testing"

	"sandwich/plans/thumb"
	"sandwich/runtime/gguf"
	"sandwich/runtime/model"
)

// recurrent are the families whose layers have a state.
var recurrent = []string{"lfm2", "qwen35", "qwen35moe", "qwen3next-legacy"}

// recurrentFile is a model of random weights of a family, with the vocabulary of exactPrompt.
func recurrentFile(t testing.TB, family string) *gguf.File {
	t.Helper()
	c, ok := model.Tiny(family)
	if !ok {
		t.Fatalf("there is no small %s", family)
	}
	c.Vocab, c.Context = 1003, 1024
	var out bytes.Buffer
	if err := model.SynthTo(context.Background(), gguf.NewWriter(&out), c, model.Uniform(gguf.Q8_0), 7,
		nil); err != nil {
		t.Fatal(err)
	}
	f, err := gguf.Parse(out.Bytes())
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// TestStateBitEqual: a state gives the same bits whatever chunks, threads, company and vector width
// its positions came by.
func TestStateBitEqual(t *testing.T) {
	skipUnderRace(t)
	for _, family := range recurrent {
		t.Run(family, func(t *testing.T) {
			file := recurrentFile(t, family)
			o := thumb.Options{Threads: 1}
			want := logitsAlone(t, file, o, 512)
			for _, chunk := range []int{1, 7, 64} {
				same(t, fmt.Sprintf("chunk %d", chunk), want, logitsAlone(t, file, o, chunk))
			}
			narrow := o
			narrow.Compute = "f32"
			wide := logitsAlone(t, file, narrow, 64)
			narrow.ISA = "avx2"
			same(t, "avx2", wide, logitsAlone(t, file, narrow, 7))
			o.Threads = 2
			same(t, "two threads", want, logitsAlone(t, file, o, 512))
			same(t, "batch of 8", want, logitsInBatch(t, file, o, 8))
		})
	}
}
