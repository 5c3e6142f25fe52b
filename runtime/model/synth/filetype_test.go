package synth

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"sandwich/runtime/gguf"
	"sandwich/runtime/model"
	"sandwich/runtime/model/modelshape"
)

// TestMixTypes compares the types of a mix with those that llama-quantize gave to a float32 file of
// the same sizes.
func TestMixTypes(t *testing.T) {
	wide, tied, odd, moe := Small("llama"), Small("qwen3"), Small("qwen2"), Small("qwen3moe")
	wide.Layers = 12
	tied.Layers, tied.Tied = 13, true
	odd.Layers, odd.Tied, odd.Hidden, odd.FFN = 9, true, 192, 544
	moe.Layers = 10
	for _, c := range []struct {
		name, mix string
		config    model.Config
		want      map[string]string // role: the type where it is not the base, and the layers that have it
	}{
		{"wide", "q4_K_M", wide, map[string]string{"head": "q6_k [-1]", "v": "q6_k [0 3 6 9 10 11]",
			"down": "q6_k [0 3 6 9 10 11]"}},
		{"wide", "Q5_K_M", wide, map[string]string{"head": "q6_k [-1]", "v": "q6_k [0 3 6 9 10 11]",
			"down": "q6_k [0 3 6 9 10 11]"}},
		{"tied", "q4_k_m", tied, map[string]string{"embed": "q6_k [-1]", "v": "q6_k [0 3 6 9 11 12]",
			"down": "q6_k [0 3 6 9 11 12]"}},
		{"experts", "q4_k_m", moe, map[string]string{"head": "q6_k [-1]", "v": "q6_k [0 3 6 8 9]",
			"down": "q6_k [0 3 6 8 9]", "router": "f32 [0 1 2 3 4 5 6 7 8 9]"}},
		{"rows that are no whole blocks", "q4_k_m", odd, map[string]string{
			"embed": "q8_0 [-1]", "v": "q8_0 [0 3 6 7 8]", "down": "q8_0 [0 3 6 7 8]"}},
		{"experts alone", "mxfp4_moe", Small("gpt-oss"), map[string]string{"q": "q8_0 [0 1]", "k": "q8_0 [0 1]",
			"v": "q8_0 [0 1]", "o": "q8_0 [0 1]", "head": "q8_0 [-1]", "embed": "q8_0 [-1]", "router": "f32 [0 1]"}},
	} {
		f, err := ParseFileType(c.mix)
		if err != nil {
			t.Fatal(err)
		}
		got := map[string]string{}
		layers := map[string][]int{}
		for _, s := range modelshape.Tensors(c.config) {
			typ := f.of(s, c.config)
			if s.Role == "" || s.Role != "router" && typ == s.TypeFor(f.base) {
				continue
			}
			layers[s.Role] = append(layers[s.Role], s.Layer)
			got[s.Role] = fmt.Sprint(typ, " ", layers[s.Role])
		}
		if fmt.Sprint(got) != fmt.Sprint(c.want) {
			t.Errorf("%s %s:\n%v, want\n%v", c.name, c.mix, got, c.want)
		}
	}
}

// TestMixShape checks that a mix has the shape of the file that Write writes for it, so that plans
// can be made without a file.
func TestMixShape(t *testing.T) {
	for _, mix := range mixes {
		c := Small("llama")
		c.Hidden, c.FFN = 256, 512
		var buf bytes.Buffer
		if err := Write(context.Background(), gguf.NewWriter(&buf), c, mix, 1, nil); err != nil {
			t.Fatal(err)
		}
		f, err := gguf.Parse(buf.Bytes())
		if err != nil {
			t.Fatal(err)
		}
		got, err := modelshape.Of(f)
		if err != nil {
			t.Fatal(err)
		}
		want, err := Shape(c, mix)
		if err != nil {
			t.Fatal(err)
		}
		if got.Digest() != want.Digest() {
			t.Errorf("%s:\n%+v, want\n%+v", mix, got, want)
		}
	}
}

func TestParseFileType(t *testing.T) {
	for _, name := range []string{"q4_K_M", "q5_K_M", "q8_0", "f32"} {
		f, err := ParseFileType(strings.ToUpper(name))
		if err != nil || f.String() != name {
			t.Errorf("%s: %v, %v", name, f, err)
		}
	}
	if _, err := ParseFileType("q4_K_X"); err == nil || !strings.Contains(err.Error(), "q4_K_M") {
		t.Errorf("q4_K_X: %v", err)
	}
	numbers := []uint32{}
	for _, m := range mixes {
		numbers = append(numbers, m.number)
	}
	if !slices.Equal(numbers, []uint32{15, 17, 38}) {
		t.Errorf("file types %v", numbers)
	}
}
