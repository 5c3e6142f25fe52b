package engine

import (
	"errors"
	"testing"

	"sandwich/plans"
	"sandwich/plans/heuristic"
	"sandwich/runtime/engine/forward"
	"sandwich/runtime/exec"
	"sandwich/runtime/gguf"
	"sandwich/runtime/mem"
)

// TestSharedWeights checks that a runner of another instruction set over the weights of an open one
// computes the same bits, holds no weights of its own, and leaves the other runner usable.
func TestSharedWeights(t *testing.T) {
	skipUnderRace(t)
	for _, typ := range []gguf.Type{gguf.F32, gguf.Q8_0} {
		t.Run(typ.String(), func(t *testing.T) {
			file, o := smallModel(t, "qwen3", typ), heuristic.Options{Threads: 1}
			narrow := o
			narrow.ISA = "avx2"
			plan, err := planFor(t, file, narrow)
			if errors.Is(err, plans.ErrISA) {
				t.Skip(err)
			}
			if err != nil {
				t.Fatal(err)
			}
			plan.Chunk = 64
			first := openTestRunner(t, file, o, 64)
			want := logitsOf(t, first, 64)
			shared, err := forward.Open(t.Context(), forward.Options{Options: exec.Options{Plan: plan},
				SharedWith: first})
			if err != nil {
				t.Fatal(err)
			}
			a, b := first.Assembly(), shared.Assembly()
			if a.Weights != b.Weights || a.Buffers != b.Buffers || a.KV[0] != b.KV[0] {
				t.Error("it has weights, activations or a cache of its own")
			}
			same(t, "shared weights", want, logitsOf(t, shared, 7))
			same(t, "the first again", want, logitsOf(t, first, 64))
			shared.Close()
			same(t, "the first alone", want, logitsOf(t, first, 64))
			first.Close()
		})
	}
}

// TestSharedWeightsOtherCache checks that a plan with another KV type allocates its own cache and
// frees it.
func TestSharedWeightsOtherCache(t *testing.T) {
	skipUnderRace(t)
	file, o := smallModel(t, "qwen3", gguf.Q8_0), heuristic.Options{Threads: 1}
	first := openTestRunner(t, file, o, 64)
	defer first.Close()
	f16 := logitsOf(t, first, 64)
	o.KV = "f32"
	want := logitsAlone(t, file, o, 64)
	plan, err := planFor(t, file, o)
	if err != nil {
		t.Fatal(err)
	}
	plan.Chunk = 64
	held := mem.Total()
	shared, err := forward.Open(t.Context(), forward.Options{Options: exec.Options{Plan: plan}, SharedWith: first})
	if err != nil {
		t.Fatal(err)
	}
	if first.Assembly().KV[0] == shared.Assembly().KV[0] {
		t.Error("caches of different types are shared")
	}
	same(t, "shared weights", want, logitsOf(t, shared, 64))
	same(t, "the first again", f16, logitsOf(t, first, 64))
	shared.Close()
	if more := mem.Total() - held; more != 0 {
		t.Errorf("%d bytes are still allocated", more)
	}
}

// TestSharedWeightsRefused checks that sharing weights with another arithmetic is refused.
func TestSharedWeightsRefused(t *testing.T) {
	file := smallModel(t, "qwen3", gguf.Q8_0)
	first := openTestRunner(t, file, heuristic.Options{Threads: 1, Compute: "int8"}, 64)
	defer first.Close()
	plan, err := planFor(t, file, heuristic.Options{Threads: 1, Compute: "f32"})
	if err != nil {
		t.Fatal(err)
	}
	held := mem.Total()
	if r, err := forward.Open(t.Context(), forward.Options{Options: exec.Options{Plan: plan},
		SharedWith: first}); err == nil {
		r.Close()
		t.Error("a plan in float32 shares the weights of one in integers")
	}
	if more := mem.Total() - held; more != 0 {
		t.Errorf("%d bytes are still allocated", more)
	}
}
