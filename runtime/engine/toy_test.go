package engine

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"testing"

	"sandwich/plans/heuristic"
	"sandwich/runtime/engine/forward"
	"sandwich/runtime/exec"
	"sandwich/runtime/gguf"
	"sandwich/runtime/model"
	"sandwich/runtime/model/arch"
	"sandwich/runtime/model/modelfile"
	"sandwich/runtime/model/synth"
)

// A model family that exists only in this file: the embedding, the sums of the residual stream and
// the logits are scaled, blocks have a norm after them as well, every second layer has no
// positions, and the last one has another rotation base.
func init() {
	arch.Register(arch.Architecture{Name: "toy", Decoder: toy})
}

func toy(b *model.Builder) {
	wide, near := b.Rope(model.Rope{Neox: true}), b.Rope(model.Rope{Base: 500})
	scale := float32(math.Sqrt(float64(b.Hidden)))
	b.Embed(scale / 8) // X [T, hidden]
	for i := range b.Layers() {
		rope := []*model.Rope{wide, nil, near}[i%3]
		b.Norm("attn_norm") // H [T, hidden]
		b.QKV(model.Always) // Q [T, heads*headDim], K and V [T, kvHeads*headDim]
		b.Rotate(model.Rotation{Rope: rope, KNorm: "attn_k_norm"})
		b.Attend(model.Attn{Scale: 0.3 * b.HeadScale()}) // Att [T, heads*headDim]
		b.AttnOut()                                      // Y [T, hidden]
		b.Residual(model.Residual{Scale: 0.5, Post: "post_attention_norm"})
		b.Norm("ffn_norm")  // H [T, hidden]
		b.FFN(model.SwiGLU) // Gate [T, ffn], Y [T, hidden]
		b.Residual(model.Residual{Scale: 0.75})
	}
	b.Norm("output_norm") // H [T, hidden]
	b.Head(0.25)          // Logits [wanted rows, vocab]
}

func toyConfig(arch string) model.Config {
	return model.Config{Name: "toy", Arch: arch, Eps: 1e-5, RopeBase: 10000, Dims: model.Dims{
		Hidden: 96, Layers: 3, Heads: 6, KVHeads: 2, HeadDim: 16, FFN: 112, Vocab: 1003, Context: 1024}}
}

// toyFile is a model of random weights with some more metadata.
func toyFile(t *testing.T, c model.Config, metadata ...func(*gguf.Writer)) *gguf.File {
	t.Helper()
	var out bytes.Buffer
	w := gguf.NewWriter(&out)
	for _, set := range metadata {
		set(w)
	}
	if err := synth.Write(context.Background(), w, c, synth.Uniform(gguf.F32), 11, nil); err != nil {
		t.Fatal(err)
	}
	f, err := gguf.Parse(out.Bytes())
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// TestToyBitEqual checks rule 6 for values of properties that no supported family has yet.
func TestToyBitEqual(t *testing.T) {
	skipUnderRace(t)
	file := toyFile(t, toyConfig("toy"))
	for _, ranks := range [][]int{{1}, {1, 1}} {
		o := heuristic.Options{Compute: "f32", KV: "f32", Threads: 1}
		two := o
		two.Threads = 2
		if len(ranks) > 1 {
			o.Service, two.Service = crews(1, 1), crews(2, 2) // of the same shares
		}
		want := logitsAlone(t, file, o, 512)
		for _, chunk := range []int{7, 64} {
			same(t, fmt.Sprintf("%d ranks, chunk %d", len(ranks), chunk), want, logitsAlone(t, file, o, chunk))
		}
		same(t, fmt.Sprintf("%d ranks, more threads", len(ranks)), want, logitsAlone(t, file, two, 64))
		same(t, fmt.Sprintf("%d ranks, batch of 8", len(ranks)), want, logitsInBatch(t, file, o, 8))
	}
}

// TestToyOracle compares with the ops in plain Go and float64.
func TestToyOracle(t *testing.T) {
	skipUnderRace(t)
	long(t)
	odd := toyConfig("llama")
	odd.HeadDim = 24 // no multiple of a vector
	for name, c := range map[string]model.Config{"toy": toyConfig("toy"), "odd heads": odd} {
		t.Run(name, func(t *testing.T) { compareWithOracle(t, toyFile(t, c)) })
	}
}

func compareWithOracle(t *testing.T, file *gguf.File) {
	t.Helper()
	m, err := modelfile.Load(file)
	if err != nil {
		t.Fatal(err)
	}
	want := newOracle(m).forward(exactPrompt(1)[:exactTokens])
	for _, ranks := range [][]int{{1}, {1, 1}, {1, 2}} {
		o := heuristic.Options{Compute: "f32", KV: "f32", Threads: 2}
		if len(ranks) > 1 {
			o.Service = crews(ranks...)
		}
		got := logitsAlone(t, file, o, 64)[0]
		for i, w := range want {
			if d := math.Abs(float64(got[i]) - w); d > 1e-3*max(1, math.Abs(w)) {
				t.Fatalf("ranks %v: logit %d is %v, the oracle's %v", ranks, i, got[i], w)
			}
		}
	}
}

// TestToyRefused checks that Open refuses a value that exec does not support, by layer and name,
// and that inspection reports it too.
func TestToyRefused(t *testing.T) {
	want := `layer 0: RoPE scaling "dynamic" is not supported`
	file := toyFile(t, toyConfig("llama"), func(w *gguf.Writer) {
		w.SetString("llama.rope.scaling.type", "dynamic")
	})
	plan, err := planFor(t, file, heuristic.Options{Threads: 1})
	if err != nil {
		t.Fatal(err)
	}
	_, err = forward.Open(t.Context(), forward.Options{Options: exec.Options{File: file, Plan: plan, Blocks: 9,
		LogitRows: 1}})
	if !errors.Is(err, model.ErrUnsupported) || err.Error() != want {
		t.Errorf("%v, want %q", err, want)
	}
	report, err := modelfile.Inspect(file, exec.MemoryOf)
	if err != nil || report.Refused != want || report.Shape == nil {
		t.Errorf("inspection says %q, %v; want %q and a shape", report.Refused, err, want)
	}
}
