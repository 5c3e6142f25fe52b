package engine

import (
	"bytes"
	"context"
	"encoding/binary"
	"math"
	"slices"
	"strings"
	"testing"

	"sandwich/plans/heuristic"
	"sandwich/runtime/gguf"
	"sandwich/runtime/model/modelfile"
	"sandwich/runtime/model/synth"
)

// extended is a file with further vectors of float32.
func extended(t *testing.T, raw []byte, vectors map[string][]float32) *gguf.File {
	t.Helper()
	f, err := gguf.Parse(raw)
	if err != nil {
		t.Fatal(err)
	}
	text := func(s string) []byte { return append(binary.LittleEndian.AppendUint64(nil, uint64(len(s))), s...) }
	infos := bytes.Index(raw, text(f.Tensors()[0].Name))
	out, data := slices.Clone(raw[:infos]), []byte(nil)
	binary.LittleEndian.PutUint64(out[8:], uint64(len(f.Tensors())+len(vectors)))
	add := func(name string, typ gguf.Type, dims []int, values []byte) {
		out = binary.LittleEndian.AppendUint32(append(out, text(name)...), uint32(len(dims)))
		for _, d := range dims {
			out = binary.LittleEndian.AppendUint64(out, uint64(d))
		}
		out = binary.LittleEndian.AppendUint32(out, uint32(typ))
		out = binary.LittleEndian.AppendUint64(out, uint64(len(data)))
		data = append(data, values...)
		data = append(data, make([]byte, -len(data)&31)...)
	}
	for _, tensor := range f.Tensors() {
		add(tensor.Name, tensor.Type, tensor.Dims, tensor.Data)
	}
	for name, v := range vectors {
		var values []byte
		for _, x := range v {
			values = binary.LittleEndian.AppendUint32(values, math.Float32bits(x))
		}
		add(name, gguf.F32, []int{len(v)}, values)
	}
	f, err = gguf.Parse(slices.Concat(out, make([]byte, -len(out)&31), data))
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// TestScales checks that a matrix whose products are scaled by a power of two gives the bits of one
// whose elements are scaled; that experts have a scale each; and that a scale which is not a number
// is refused.
func TestScales(t *testing.T) {
	skipUnderRace(t)
	for _, family := range []string{"qwen2", "qwen3moe", "phi3"} {
		c, _ := synth.Tiny(family)
		c.Vocab, c.Context, c.Tied = 1003, 1024, false
		var out bytes.Buffer
		err := synth.Write(context.Background(), gguf.NewWriter(&out), c, synth.Uniform(gguf.F32), 5, nil)
		if err != nil {
			t.Fatal(err)
		}
		raw, scales := out.Bytes(), map[string][]float32{"output.input_scale": {7}}
		plain, err := gguf.Parse(raw)
		if err != nil {
			t.Fatal(err)
		}
		for i, tensor := range plain.Tensors() {
			name, matrix := strings.CutSuffix(tensor.Name, ".weight")
			if !matrix || len(tensor.Dims) == 1 || name == "token_embd" || strings.HasSuffix(name, "gate_inp") {
				continue
			}
			n := 1
			if len(tensor.Dims) == 3 {
				n = tensor.Dims[2]
			}
			s := make([]float32, n)
			for j := range s {
				s[j] = []float32{0.5, 2, 1}[(i+j)%3]
			}
			scales[name+".scale"], scales[name+".input_scale"] = s, s
		}
		o := heuristic.Options{Compute: "f32", KV: "f32", Threads: 2}
		got := logitsAlone(t, extended(t, raw, scales), o, 512)
		if unscaled := logitsAlone(t, plain, o, 512); slices.Equal(unscaled[0], got[0]) {
			t.Fatalf("%s: scales change nothing", family)
		}
		product := slices.Clone(raw)
		wanted, err := gguf.Parse(product)
		if err != nil {
			t.Fatal(err)
		}
		for name, s := range scales {
			if tensor, ok := wanted.Tensor(strings.TrimSuffix(name, "scale") + "weight"); ok {
				times(tensor.Data, s)
			}
		}
		same(t, family, logitsAlone(t, wanted, o, 512), got)
		scales["output.scale"] = []float32{float32(math.NaN())}
		_, err = modelfile.Load(extended(t, raw, scales))
		if err == nil || !strings.Contains(err.Error(), "output.scale") {
			t.Errorf("a scale that is not a number: %v", err)
		}
	}
}

// times multiplies float32 elements, of as many matrices as there are factors, by theirs.
func times(data []byte, by []float32) {
	for i := 0; i < len(data); i += 4 {
		x := math.Float32frombits(binary.LittleEndian.Uint32(data[i:])) * by[i/(len(data)/len(by))]
		binary.LittleEndian.PutUint32(data[i:], math.Float32bits(x))
	}
}
