package engine

import (
	"bytes"
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"sandwich/microkernel/qtype"
	"sandwich/plans/heuristic"
	"sandwich/runtime/engine/forward"
	"sandwich/runtime/gguf"
	"sandwich/runtime/kvcache"
	"sandwich/runtime/model"
	"sandwich/runtime/model/synth"
	"sandwich/runtime/pool"
)

// smallModel is a random model in memory: uneven sizes, grouped heads, rows that are no multiple of
// a tile.
func smallModel(t testing.TB, arch string, typ gguf.Type) *gguf.File {
	t.Helper()
	return smallFile(t, arch, typ, synth.Uniform(typ))
}

// smallFile is smallModel of a mix of types, of which typ has the longest blocks.
func smallFile(t testing.TB, arch string, typ gguf.Type, file synth.FileType) *gguf.File {
	t.Helper()
	var out bytes.Buffer
	c := model.Config{
		Name: "small", Arch: arch, Eps: 1e-5, RopeBase: 10000,
		Dims: model.Dims{Hidden: 192, Layers: 2, Heads: 6, KVHeads: 2, HeadDim: 32, FFN: 352, Vocab: 1003,
			Context: 1024},
	}
	if block, _ := typ.Block(); block > 64 {
		c.Dims.Hidden, c.Dims.Heads, c.Dims.FFN = 256, 8, 512
	}
	if arch == "qwen3moe" {
		c.Experts = model.Experts{Count: 7, Used: 3, FFN: 96}
	}
	if err := synth.Write(context.Background(), gguf.NewWriter(&out), c, file, 7, nil); err != nil {
		t.Fatal(err)
	}
	f, err := gguf.Parse(out.Bytes())
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// longTokens is a prompt longer than the largest chunk, of more than eight KV blocks.
const longTokens = 530

// exactTokens is the length of the prompts of tests that compare bits: more than two chunks of 64,
// and two KV blocks. Tests that need longer prompts call long. Race builds, whose kernels are plain
// Go, read a chunk of 7 and two more tokens.
var exactTokens = 150

func init() {
	if raceEnabled {
		exactTokens = 9
	}
}

// long lets a test read all of longTokens.
func long(t *testing.T) {
	t.Helper()
	before := exactTokens
	exactTokens = longTokens
	t.Cleanup(func() { exactTokens = before })
}

// TestBitEqual checks rule 6: the logits of a request do not depend on threads, chunks, other
// requests of the batch, or vector width. One arm is the reference; every other must match it to
// the bit, in prefill and in the decode steps after it.
func TestBitEqual(t *testing.T) {
	skipUnderRace(t)
	for _, c := range []struct {
		arch    string
		typ     gguf.Type
		compute []string
		kv      string
	}{
		{"qwen3", gguf.F32, []string{"f32"}, "f32"}, {"qwen3", gguf.F16, []string{"f32"}, ""}, {"qwen3", gguf.BF16,
			[]string{"f32"}, ""},
		{"qwen3", gguf.Q8_0, []string{"f32", "int8"}, ""}, {"qwen3", gguf.Q4_0, []string{"f32", "int8"}, "q8_0"},
		{"qwen3", gguf.Q5_1, []string{"f32", "int8"}, ""}, {"qwen3", gguf.Q4_K, []string{"f32", "int8"}, ""},
		{"qwen3", gguf.Q6_K, []string{"f32", "int8"}, ""},
		{"qwen3", gguf.Type(qtype.IQ4_XS), []string{"f32", "int8"}, ""},
		{"qwen3", gguf.Type(qtype.MXFP4), []string{"f32", "int8"}, ""},
		{"qwen3", gguf.Type(qtype.NVFP4), []string{"f32", "int8"}, ""},
		{"qwen3", gguf.Type(qtype.TQ1_0), []string{"f32", "int8"}, ""},
		{"qwen3", gguf.Type(qtype.TQ2_0), []string{"f32", "int8"}, ""},
		{"qwen3", gguf.Type(qtype.Q1_0), []string{"f32", "int8"}, ""},
		{"qwen3", gguf.Type(qtype.Q2_0), []string{"f32", "int8"}, ""},
		{"qwen3", gguf.Type(qtype.IQ3_S), []string{"f32", "int8"}, ""},
		{"qwen3", gguf.Type(qtype.IQ3_XXS), []string{"f32", "int8"}, ""},
		{"qwen3", gguf.Type(qtype.IQ2_S), []string{"f32", "int8"}, ""},
		{"qwen3", gguf.Type(qtype.IQ2_XS), []string{"f32", "int8"}, ""},
		{"qwen3", gguf.Type(qtype.IQ2_XXS), []string{"f32", "int8"}, ""},
		{"qwen3", gguf.Type(qtype.IQ1_M), []string{"f32", "int8"}, ""},
		{"qwen3", gguf.Type(qtype.IQ1_S), []string{"f32", "int8"}, ""},
		{"qwen3moe", gguf.F32, []string{"f32"}, ""}, {"qwen3moe", gguf.Q8_0, []string{"int8"}, ""},
	} {
		file := smallModel(t, c.arch, c.typ)
		for _, compute := range c.compute {
			t.Run(fmt.Sprintf("%s/%s/%s", c.arch, c.typ, compute), func(t *testing.T) {
				if c.arch == "qwen3" && slices.Contains([]gguf.Type{gguf.F32, gguf.Q8_0, gguf.Q4_0, gguf.Q4_K}, c.typ) {
					long(t)
				}
				o := heuristic.Options{Compute: compute, KV: c.kv, Threads: 1}
				want := logitsAlone(t, file, o, 512)
				for _, chunk := range []int{1, 7} {
					same(t, fmt.Sprintf("chunk %d", chunk), want, logitsAlone(t, file, o, chunk))
				}
				narrow := o
				narrow.ISA = "avx2"
				same(t, "avx2, chunk 64", want, logitsAlone(t, file, narrow, 64))
				o.Threads = 2
				same(t, "two threads, chunk 64", want, logitsAlone(t, file, o, 64))
				same(t, "batch of 8", want, logitsInBatch(t, file, o, 8))
			})
		}
	}
}

// skipUnderRace skips a test that takes long with plain-Go kernels and that starts no threads but
// those of the tests that race builds run.
func skipUnderRace(t *testing.T) {
	if raceEnabled {
		t.Skip("slow with the plain-Go kernels of a race build, and other tests run the same threads; " +
			"run without -race")
	}
}

func exactPrompt(seed uint64) []int32 {
	rng := rand.New(rand.NewPCG(seed, 1))
	out := make([]int32, longTokens)
	for i := range out {
		out[i] = int32(rng.IntN(1003))
	}
	return out
}

// logitsAlone computes a prompt in chunks, then 4 decode steps with fixed tokens, and returns the
// logits after the prompt and after each step.
func logitsAlone(t *testing.T, file *gguf.File, o heuristic.Options, chunk int) (out [][]float32) {
	t.Helper()
	r := openTestRunner(t, file, o, 512)
	defer r.Close()
	return logitsOf(t, r, chunk)
}

// logitsOf is logitsAlone on a runner.
func logitsOf(t *testing.T, r *forward.Runner, chunk int) (out [][]float32) {
	t.Helper()
	r.Lead(func(l *pool.Leader) {
		line := NewSequence(r, l)
		keep := func(_ int, logits []float32) error {
			out = append(out, append([]float32(nil), logits...))
			return nil
		}
		if err := line.Feed(exactPrompt(1)[:exactTokens], chunk, LastLogits, keep); err != nil {
			t.Error(err)
		}
		if !r.Model.Pooled() { // which have nothing to go on with
			fourSteps(t, line, keep)
		}
	})
	return out
}

// fourSteps generates tokens after a prompt, and keeps the logits.
func fourSteps(t *testing.T, line *Sequence, keep func(row int, logits []float32) error) {
	t.Helper()
	for token := range int32(4) {
		logits, err := line.Step(token + 5)
		if err != nil {
			t.Error(err)
			return
		}
		_ = keep(0, logits)
	}
}

// logitsInBatch decodes the prompt together with n-1 prompts of other contents and lengths; n is
// even.
func logitsInBatch(t *testing.T, file *gguf.File, o heuristic.Options, n int) (out [][]float32) {
	t.Helper()
	const perSequence = 10 // blocks
	r := openTestRunnerBlocks(t, file, o, 512, n*perSequence)
	defer r.Close()
	if r.Model.Pooled() {
		return pooledInBatch(t, r)
	}
	r.Lead(func(l *pool.Leader) {
		lines := make([]*Sequence, n)
		for i := range lines {
			lines[i] = NewSequence(r, l)
			if i > 0 { // of one cache
				lines[i].cache = lines[0].cache
				lines[i].seq = lines[0].cache.Open(kvcache.Salt{})
			}
			prompt := exactPrompt(uint64(1 + i))[:exactTokens-exactTokens/14*i]
			err := lines[i].Feed(prompt, 512, LastLogits, func(_ int, logits []float32) error {
				if i == 0 {
					out = append(out, append([]float32(nil), logits...))
				}
				return nil
			})
			if err != nil {
				t.Error(err)
			}
		}
		for token := range int32(4) {
			var b kvcache.Batch
			// The sequence under test is in the middle of the batch.
			for row := range n {
				line := lines[(row+n/2)%n]
				id := token + 5
				if row != n/2 {
					id = int32(row*31) + token
				}
				b.Tokens = append(b.Tokens, id)
				if !line.cache.Reserve(line.seq, line.pos+1) {
					t.Error("no block for another token")
				}
				line.cache.Cover(line.seq, line.pos+1)
				b.AddSpan(line.seq, kvcache.Span{Row: row, Rows: 1, Pos: line.pos})
				b.LogitRows = append(b.LogitRows, int32(row))
			}
			if _, err := r.Forward(l, &b, 0, nil); err != nil {
				t.Error(err)
				return
			}
			for _, line := range lines {
				line.advance(1)
			}
			out = append(out, append([]float32(nil), r.Logits(n/2)...))
		}
	})
	return out
}

func same(t *testing.T, name string, want, got [][]float32) {
	t.Helper()
	if len(got) != len(want) {
		t.Errorf("%s: %d rows of logits, want %d", name, len(got), len(want))
		return
	}
	for i := range want {
		for j := range want[i] {
			if math.Float32bits(want[i][j]) != math.Float32bits(got[i][j]) {
				t.Errorf("%s: logits of step %d differ at token %d: %v, not %v", name, i, j, got[i][j], want[i][j])
				return
			}
		}
	}
}
