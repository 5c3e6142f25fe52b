package gguf

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"math"
	"os"
	"strings"
	"testing"

	"sandwich/runtime/refdata"
)

// dequantized is a tensor of a reference model as llama.cpp dequantizes it.
type dequantized struct {
	Type   string
	SHA    string `json:"sha256_f32"`
	First8 []float32
}

// TestDequantizeReference compares every quantized tensor of the reference models with the bits of
// llama.cpp's dequantizer. In the hashes of the second set a zero has no sign.
func TestDequantizeReference(t *testing.T) {
	declared, seen := map[string]bool{}, map[Type]bool{}
	for _, set := range []string{"parity", "parity2"} {
		var models map[string]map[string]dequantized
		readReference(t, set+"/dequant.json", &models)
		for name, tensors := range models {
			for _, want := range tensors {
				declared[strings.ToLower(want.Type)] = true
			}
			t.Run(set+"/"+name, func(t *testing.T) {
				f, err := Open(refdata.Path(t, set+"/"+name))
				must(t, err)
				defer f.Close()
				checkDequantized(t, f, tensors, set == "parity2", seen)
			})
		}
	}
	for _, typ := range readable() {
		if typ != F32 && !declared[typ.String()] {
			t.Errorf("the reference has no tensor of type %s", typ)
		}
	}
	if len(seen) == 0 {
		t.Error("no model was dequantized")
	}
}

// readReference decodes a JSON file of the reference data.
func readReference(t *testing.T, name string, into any) {
	t.Helper()
	raw, err := os.ReadFile(refdata.Path(t, name))
	must(t, err)
	must(t, json.Unmarshal(raw, into))
}

// checkDequantized compares the tensors of a model and notes their types in seen.
func checkDequantized(t *testing.T, f *File, tensors map[string]dequantized, unsigned bool, seen map[Type]bool) {
	for name, want := range tensors {
		ten, ok := f.Tensor(name)
		if !ok || ten.Type.String() != strings.ToLower(want.Type) {
			t.Fatalf("tensor %s: %+v, want type %s", name, ten, want.Type)
		}
		x := make([]float32, ten.Elems())
		must(t, Dequantize(x, ten.Type, ten.Data))
		if hashOf(x, unsigned) != want.SHA {
			t.Errorf("%s (%s) differs: first values %v, want %v", name, ten.Type, x[:8], want.First8)
		}
		seen[ten.Type] = true
	}
}

// hashOf is the hash of the bits of x, with the sign of zeros or without.
func hashOf(x []float32, unsigned bool) string {
	buf := make([]byte, 4*len(x))
	for i, v := range x {
		if unsigned && v == 0 {
			v = 0
		}
		binary.LittleEndian.PutUint32(buf[4*i:], math.Float32bits(v))
	}
	sum := sha256.Sum256(buf)
	return hex.EncodeToString(sum[:])
}

// TestDequantizeBlocks compares blocks of random bytes, in which all words, signs and scales of a
// type occur, with the values that llama.cpp gave.
func TestDequantizeBlocks(t *testing.T) {
	var types map[string]struct {
		Type   uint32   `json:"ggml_type"`
		Elems  int      `json:"block_values"`
		Bytes  int      `json:"block_bytes"`
		Raw    string   `json:"raw"`
		First  string   `json:"first32_f32"`
		SHA    string   `json:"sha256_f32_all"`
		Groups []string `json:"sha256_f32_per_64_blocks"`
	}
	readReference(t, "parity2/blocks.json", &types)
	read := func(name string) []byte {
		b, err := os.ReadFile(refdata.Path(t, "parity2/"+name))
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	for name, want := range types {
		typ := Type(want.Type)
		if e, b := typ.Block(); typ.String() != strings.ToLower(name) || e != want.Elems || b != want.Bytes {
			t.Errorf("type %d is %s with blocks of %d in %d bytes, want %s, %d in %d", typ, typ, e, b, name, want.Elems,
				want.Bytes)
			continue
		}
		blocks := read(want.Raw)
		x := make([]float32, len(blocks)/want.Bytes*want.Elems)
		if err := Dequantize(x, typ, blocks); err != nil {
			t.Fatal(err)
		}
		for i, first := 0, read(want.First); i < len(first)/4; i++ {
			if w := math.Float32frombits(binary.LittleEndian.Uint32(first[4*i:])); x[i] != w {
				t.Fatalf("%s: element %d is %v, want %v", typ, i, x[i], w)
			}
		}
		for g, sha := range want.Groups {
			if n := 64 * want.Elems; hashOf(x[g*n:][:n], true) != sha {
				t.Errorf("%s: blocks %d to %d differ", typ, 64*g, 64*g+63)
			}
		}
		if hashOf(x, true) != want.SHA {
			t.Errorf("%s: some blocks differ", typ)
		}
	}
}

// readable lists all types that Block knows.
func readable() (all []Type) {
	for id := range Type(256) {
		if n, _ := id.Block(); n > 0 {
			all = append(all, id)
		}
	}
	return all
}

// TestF16Exhaustive sends every half through float32 and back, and checks rounding at and around
// every midpoint between two halves.
func TestF16Exhaustive(t *testing.T) {
	for h := range 1 << 16 {
		f := f16ToF32(uint16(h))
		if f != f {
			if back := f32ToF16(f); back&0x7fff <= 0x7c00 || back&0x8000 != uint16(h)&0x8000 {
				t.Fatalf("NaN %#04x became %#04x", h, back)
			}
			continue
		}
		if back := f32ToF16(f); back != uint16(h) {
			t.Fatalf("%#04x -> %g -> %#04x", h, f, back)
		}
	}
	for h := range 0x7c00 { // positive finite halves: midpoint to the next one up
		lo, hi := float64(f16ToF32(uint16(h))), float64(f16ToF32(uint16(h+1)))
		if h == 0x7bff {
			hi = 65536
		}
		mid := float32((lo + hi) / 2) // exact: one more bit than a half
		even := uint16(h + h&1)
		if got := f32ToF16(mid); got != even {
			t.Fatalf("midpoint above %#04x rounds to %#04x, want %#04x", h, got, even)
		}
		if got := f32ToF16(math.Nextafter32(mid, 0)); got != uint16(h) {
			t.Fatalf("just below the midpoint above %#04x: %#04x", h, got)
		}
		if got := f32ToF16(-math.Nextafter32(mid, 1e6)); got != uint16(h+1)|0x8000 {
			t.Fatalf("minus just above the midpoint above %#04x: %#04x", h, got)
		}
	}
}

// TestBF16 checks all bfloat16 values and the ties between adjacent values.
func TestBF16(t *testing.T) {
	for h := range 1 << 16 {
		f := bf16ToF32(uint16(h))
		if f != f {
			if b := f32ToBF16(f); b&0x7fff <= 0x7f80 {
				t.Fatalf("NaN %#04x became %#04x", h, b)
			}
			continue
		}
		if b := f32ToBF16(f); b != uint16(h) {
			t.Fatalf("%#04x -> %g -> %#04x", h, f, b)
		}
		if h&0x7f80 == 0x7f80 {
			continue
		}
		bits := uint32(h) << 16
		if b := f32ToBF16(math.Float32frombits(bits | 0x8000)); b != uint16(h+h&1) {
			t.Fatalf("tie above %#04x rounds to %#04x", h, b)
		}
		if b := f32ToBF16(math.Float32frombits(bits | 0x8001)); b != uint16(h+1) {
			t.Fatalf("above the tie over %#04x: %#04x", h, b)
		}
	}
	if b := f32ToBF16(math.Float32frombits(0x7f800001)); b&0x7f == 0 {
		t.Fatalf("a NaN with a low payload became infinity: %#04x", b)
	}
}

// TestDequantizeRefuses checks that sizes that do not match and an unsupported type are refused.
func TestDequantizeRefuses(t *testing.T) {
	for _, c := range []struct {
		typ      Type
		n, bytes int
	}{{Q8_0, 31, 34}, {Q8_0, 32, 33}, {Q8_0, 64, 34}, {Q4_K, 128, 72}, {24, 256, 256}, {Type(1000), 1, 1}} {
		if err := Dequantize(make([]float32, c.n), c.typ, make([]byte, c.bytes)); err == nil {
			t.Errorf("%s with %d elements in %d bytes was accepted", c.typ, c.n, c.bytes)
		}
	}
}
