package synth

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"testing"

	"sandwich/runtime/gguf"
	"sandwich/runtime/model"
	"sandwich/runtime/model/arch"
	"sandwich/runtime/model/modelfile"
	"sandwich/runtime/model/modelshape"
	"sandwich/runtime/model/tensors"
	"sandwich/runtime/model/vocab"
)

// synth returns the bytes of a synthetic model.
func synth(t testing.TB, c model.Config, typ gguf.Type, seed uint64) []byte {
	t.Helper()
	var buf bytes.Buffer
	if err := Write(context.Background(), gguf.NewWriter(&buf), c, Uniform(typ), seed, nil); err != nil {
		t.Fatal(err)
	}
	return buf.Bytes()
}

var allTypes = []gguf.Type{gguf.F32, gguf.F16, gguf.BF16, gguf.Q8_0, gguf.Q4_0, gguf.Q4_1, gguf.Q5_0,
	gguf.Q5_1, gguf.IQ4_NL,
	gguf.Q2_K, gguf.Q3_K, gguf.Q4_K, gguf.Q5_K, gguf.Q6_K}

// typesFor are all types for one family, and some for the others.
func typesFor(family string) []gguf.Type {
	if family == "qwen3" {
		return allTypes
	}
	return []gguf.Type{gguf.F32, gguf.Q8_0}
}

// TestSynthShape writes each architecture in each type, and checks that the shape read back is that
// of Shape and that Load returns no error but ErrUnsupported.
func TestSynthShape(t *testing.T) {
	for _, family := range Families() {
		for _, typ := range typesFor(family) {
			c := Small(family)
			c.Tied = typ == gguf.Q8_0
			f, err := gguf.Parse(synth(t, c, typ, 1))
			if err != nil {
				t.Fatal(err)
			}
			got, err := modelshape.Of(f)
			if err != nil {
				t.Fatalf("%s %s: %v", family, typ, err)
			}
			want, err := Shape(c, Uniform(typ))
			if err != nil {
				t.Fatal(err)
			}
			got.Name, want.Name = "", ""
			if !reflect.DeepEqual(got, want) {
				t.Errorf("%s %s: shape\n%+v, want\n%+v", family, typ, got, want)
			}
			if err := got.Check(); err != nil {
				t.Error(err)
			}
			_, err = modelfile.Load(f)
			if _, unknown := arch.Find(c.Arch); unknown != nil && !errors.Is(err, model.ErrUnsupported) {
				t.Errorf("Load of %s: %v", family, err)
			} else if unknown == nil && err != nil && !errors.Is(err, model.ErrUnsupported) {
				t.Errorf("Load of %s %s: %v", family, typ, err)
			}
		}
	}
}

// TestSynthLoads checks that files of each family load with the requested dimensions.
func TestSynthLoads(t *testing.T) {
	for _, arch := range Families() {
		for _, typ := range typesFor(arch) {
			c := Small(arch)
			f, err := gguf.Parse(synth(t, c, typ, 1))
			if err != nil {
				t.Fatal(err)
			}
			m, err := modelfile.Load(f)
			if err != nil {
				t.Fatalf("%s %s: %v", arch, typ, err)
			}
			if m.Dims != c.Dims {
				t.Errorf("%s %s: %+v, want %+v", arch, typ, m.Dims, c.Dims)
			}
		}
	}
}

// TestSynthDeterministic checks that equal seeds give equal bytes on all platforms and other seeds
// give others.
func TestSynthDeterministic(t *testing.T) {
	c := Small("llama")
	c.Llama3 = &model.Llama3Rope{Factor: 8, Low: 1, High: 4, Original: 64}
	one := synth(t, c, gguf.Q8_0, 1)
	if !bytes.Equal(one, synth(t, c, gguf.Q8_0, 1)) {
		t.Error("the same seed gave other bytes")
	}
	if bytes.Equal(one, synth(t, c, gguf.Q8_0, 2)) {
		t.Error("another seed gave the same bytes")
	}
	const want = "f5820b05309214658cbe43e52112930733cf9a87598c0e49457e6bcc0131373b"
	if sum := sha256.Sum256(one); hex.EncodeToString(sum[:]) != want {
		t.Errorf("sha256 %x, want %s: synthetic models changed, so recorded figures no longer belong to them", sum,
			want)
	}
}

// TestSynthWeights checks mean and deviation of each tensor, and that no two tensors begin with the
// same value.
func TestSynthWeights(t *testing.T) {
	c := Small("llama")
	f, err := gguf.Parse(synth(t, c, gguf.F32, 7))
	if err != nil {
		t.Fatal(err)
	}
	first := map[float32]string{}
	for _, s := range modelshape.Tensors(c) {
		ten, _ := f.Tensor(s.Name)
		x := make([]float32, ten.Elems())
		if err := gguf.Dequantize(x, ten.Type, ten.Data); err != nil {
			t.Fatal(err)
		}
		if other, seen := first[x[0]]; seen {
			t.Errorf("%s begins like %s", s.Name, other)
		}
		first[x[0]] = s.Name
		var sum, squares float64
		for _, v := range x {
			sum += float64(v)
			squares += float64(v) * float64(v)
		}
		n := float64(len(x))
		mean := sum / n
		std := math.Sqrt(squares/n - mean*mean)
		if tol := 5 * float64(s.Std) / math.Sqrt(n); math.Abs(mean-float64(s.Mean)) > tol ||
			math.Abs(std-float64(s.Std)) > tol {
			t.Errorf("%s: mean %g, std %g; want %g, %g within %g", s.Name, mean, std, s.Mean, s.Std, tol)
		}
	}
}

// TestVocabularies checks sizes of vocabularies, that no token occurs twice, and that merges are of
// earlier tokens.
func TestVocabularies(t *testing.T) {
	for name, c := range map[string]model.Config{"spm": {Arch: "llama"}, "llama-bpe": {Arch: "llama"},
		"qwen2": {Arch: "qwen3"}} {
		for _, size := range map[string][]int{"spm": {vocab.MinTokens, 5000, 32000}, "llama-bpe": {128256},
			"qwen2": {vocab.MinTokens,
				151936}}[name] {
			c.Vocab = size
			checkVocabulary(t, name, size, tokenizerOf(t, c))
		}
	}
	if err := writeVocabulary(gguf.NewWriter(&bytes.Buffer{}), model.Config{Arch: "llama",
		Dims: model.Dims{Vocab: vocab.MinTokens - 1}}); err == nil {
		t.Error("too small a vocabulary was accepted")
	}
}

func checkVocabulary(t *testing.T, name string, size int, f *gguf.File) {
	tokens, _ := f.Strings("tokenizer.ggml.tokens")
	types, _ := f.Ints("tokenizer.ggml.token_type")
	id := map[string]int{}
	for i, tok := range tokens {
		if old, twice := id[tok]; twice {
			t.Fatalf("%s of %d: token %q is both %d and %d", name, size, tok, old, i)
		}
		id[tok] = i
	}
	if len(tokens) != size || len(types) != size {
		t.Fatalf("%s: %d tokens, %d types, want %d", name, len(tokens), len(types), size)
	}
	eos, ok := f.Uint("tokenizer.ggml.eos_token_id")
	if !ok || types[eos] != vocab.Control {
		t.Errorf("%s of %d: eos %d, %v is no control token", name, size, eos, ok)
	}
	if name == "spm" {
		if scores, ok := f.Floats("tokenizer.ggml.scores"); !ok || len(scores) != size {
			t.Errorf("%d scores, %v", len(scores), ok)
		}
		return
	}
	merges, _ := f.Strings("tokenizer.ggml.merges")
	if len(merges) == 0 {
		t.Fatalf("%s of %d: no merges", name, size)
	}
	for i, m := range merges {
		left, right, _ := bytes.Cut([]byte(m), []byte(" "))
		l, okL := id[string(left)]
		r, okR := id[string(right)]
		whole, okW := id[string(left)+string(right)]
		if !okL || !okR || !okW || l >= whole || r >= whole || whole != 256+i {
			t.Fatalf("%s of %d: merge %d %q: %d %d -> %d", name, size, i, m, l, r, whole)
		}
	}
}

// TestSynthCancelled checks that a cancelled WriteFile leaves no file.
func TestSynthCancelled(t *testing.T) {
	dir := t.TempDir()
	ctx, cancel := context.WithCancel(context.Background())
	c := Small("llama")
	c.Layers = 50
	err := WriteFile(ctx, filepath.Join(dir, "m.gguf"), c, Uniform(gguf.F32), 1, func(done, total int64) { cancel() })
	if !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
	if left, _ := os.ReadDir(dir); len(left) != 0 {
		t.Errorf("%v was left behind", left)
	}
}

// TestSynthFile writes a file and checks that progress reaches its end.
func TestSynthFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "m.gguf")
	var last, total int64
	err := WriteFile(context.Background(), path, Small("qwen2"), Uniform(gguf.Q4_0), 1, func(done, all int64) {
		if done <= last {
			t.Errorf("progress went from %d to %d", last, done)
		}
		last, total = done, all
	})
	if err != nil || last != total || total == 0 {
		t.Fatalf("%v; progress ended at %d of %d", err, last, total)
	}
	f, err := gguf.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	r, err := modelfile.Inspect(f, func(m *model.Model) (modelfile.Memory, []error) {
		return modelfile.Memory{Packed: int64(len(m.Weights)), PerToken: 77, Bounded: 5}, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if r.Packed == 0 || r.Refused != "" || r.Shape == nil || r.Bytes < total ||
		r.KVPerToken != 77 || r.KVBounded != 5 || len(r.Types) != 2 || r.Types[0].Type != "q4_0" {
		t.Errorf("report %+v", r)
	}
}

// TestSynthRefuses checks configurations that cannot be written.
func TestSynthRefuses(t *testing.T) {
	for name, spoil := range map[string]func(*model.Config){
		"unknown architecture": func(c *model.Config) { c.Arch = "gpt-j" },
		"no layers":            func(c *model.Config) { c.Layers = 0 },
		"uneven heads":         func(c *model.Config) { c.KVHeads = 3 },
		"huge vocabulary":      func(c *model.Config) { c.Vocab = 1 << 40 },
		"experts in llama":     func(c *model.Config) { c.Experts.Count = 8 },
		"no epsilon":           func(c *model.Config) { c.Eps = math.NaN() },
	} {
		c := Small("llama")
		spoil(&c)
		path := filepath.Join(t.TempDir(), "m.gguf")
		if err := WriteFile(context.Background(), path, c, Uniform(gguf.F32), 1, nil); err == nil {
			t.Errorf("%s: accepted", name)
		}
		if _, err := os.Stat(path); err == nil {
			t.Errorf("%s: a file appeared", name)
		}
	}
}

// BenchmarkChunk measures one core making weights, the bulk of `model synth`.
func BenchmarkChunk(b *testing.B) {
	for _, typ := range []gguf.Type{gguf.F32, gguf.BF16, gguf.Q8_0, gguf.Q4_0} {
		b.Run(typ.String(), func(b *testing.B) {
			c := chunk{spec: tensors.Spec{Dims: []int{2048, 128}, Std: 0.02}, typ: typ, hi: 128}
			b.SetBytes(4 * 2048 * 128)
			for b.Loop() {
				if _, err := c.make(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
