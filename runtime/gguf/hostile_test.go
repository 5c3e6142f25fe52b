package gguf

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
)

// raw builds headers that Writer refuses to write.
type raw struct{ b []byte }

func preamble(version uint32, tensors, keys uint64) *raw {
	r := &raw{b: []byte(magic)}
	return r.u32(version).u64(tensors).u64(keys)
}
func (r *raw) u32(v uint32) *raw         { r.b = binary.LittleEndian.AppendUint32(r.b, v); return r }
func (r *raw) u64(v uint64) *raw         { r.b = binary.LittleEndian.AppendUint64(r.b, v); return r }
func (r *raw) str(s string) *raw         { r.b = appendString(r.b, s); return r }
func (r *raw) zeros(n int) *raw          { r.b = append(r.b, make([]byte, n)...); return r }
func (r *raw) key(s string, k kind) *raw { return r.str(s).u32(uint32(k)) }
func (r *raw) tensor(name string, t Type, offset uint64, dims ...uint64) *raw {
	r.str(name).u32(uint32(len(dims)))
	for _, d := range dims {
		r.u64(d)
	}
	return r.u32(uint32(t)).u64(offset)
}

// nested returns a file with an array in depth arrays.
func nested(depth int) *raw {
	r := preamble(3, 0, 1).key("deep", kindArray)
	for range depth {
		r.u32(uint32(kindArray)).u64(1)
	}
	return r.u32(uint32(kindU32)).u64(1).u32(7)
}

// odd are files that are valid though unusual, with the sizes in bytes of their tensors.
var odd = map[string]struct {
	file *raw
	want []int
}{
	"nested array": {nested(15).zeros(64), nil},
	"nested arrays": {preamble(3, 0, 2).key("a", kindArray).u32(uint32(kindArray)).u64(2).
		u32(uint32(kindString)).u64(1).str("x").u32(uint32(kindU32)).u64(0).key("b", kindU32).u32(1), nil},
	"tensor without elements": {preamble(3, 3, 0).tensor("a", F32, 0, 4).tensor("none", F32, 0, 0).
		tensor("b", F32, 32, 4).zeros(256), []int{16, 0, 16}},
	"rows without elements": {preamble(3, 1, 0).tensor("t", F32, 0, 4, 0).zeros(64), []int{0}},
}

// TestOdd checks that unusual but valid files are read.
func TestOdd(t *testing.T) {
	for name, c := range odd {
		f, err := Parse(c.file.b)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		for i, tensor := range f.Tensors() {
			if len(tensor.Data) != c.want[i] {
				t.Errorf("%s: tensor %s has %d bytes, want %d", name, tensor.Name, len(tensor.Data), c.want[i])
			}
		}
	}
}

// TestOuterDimensions checks that outer dimensions of 1 are dropped.
func TestOuterDimensions(t *testing.T) {
	for _, dims := range [][]uint64{{4, 2}, {4, 2, 1}, {4, 2, 1, 1}} {
		f, err := Parse(preamble(3, 1, 0).tensor("t", F32, 0, dims...).zeros(128).b)
		if err != nil {
			t.Fatal(err)
		}
		if got := f.Tensors()[0].Dims; !slices.Equal(got, []int{4, 2}) {
			t.Errorf("%v is read as %v", dims, got)
		}
	}
}

// hostile are files that must be refused, with a part of the sentence that must come back.
var hostile = map[string]struct {
	file *raw
	want string
}{
	"no magic": {&raw{b: []byte("PK\x03\x04 a zip file")}, `begins with "GGUF"`},
	"JSON":     {&raw{b: []byte(`{"model_type":"bert"}`)}, "this is JSON, and models are GGUF files"},
	"safetensors": {&raw{b: []byte("\x11\x00\x00\x00\x00\x00\x00\x00" + `{"a":{"shape":[]}}`)},
		"this is a safetensors file"},
	"three bytes":       {&raw{b: []byte("GGU")}, "begins with"},
	"only magic":        {&raw{b: []byte("GGUF")}, "the version needs 4 bytes"},
	"version 1":         {preamble(1, 0, 0), "version 1"},
	"version 99":        {preamble(99, 0, 0), "version 99"},
	"big-endian":        {preamble(3<<24, 0, 0), "big-endian (version 3)"},
	"no counts":         {(&raw{b: []byte("GGUF")}).u32(3), "the tensor count needs 8 bytes"},
	"2^60 keys":         {preamble(3, 0, 1<<60).zeros(64), "the number of metadata entries is 1152921504606846976"},
	"2^60 tensors":      {preamble(3, 1<<60, 0).zeros(64), "1152921504606846976 tensors"},
	"key length 2^63":   {preamble(3, 0, 1).u64(1 << 63).zeros(16), "9223372036854775808 bytes long"},
	"key length 2^64-1": {preamble(3, 0, 1).u64(math.MaxUint64).zeros(16), "bytes long"},
	"string length 2^63": {preamble(3, 0, 1).key("general.name", kindString).u64(1 << 63).zeros(16),
		`"general.name" says it is 9223372036854775808 bytes long`},
	"array of 2^60": {preamble(3, 0, 1).key("a.b", kindArray).u32(uint32(kindU32)).u64(1 << 60).zeros(16),
		`"a.b" is 1152921504606846976`},
	"array of 2^60 strings": {preamble(3, 0, 1).key("tokenizer.ggml.tokens",
		kindArray).u32(uint32(kindString)).u64(1 << 60).zeros(99),
		`"tokenizer.ggml.tokens" is 1152921504606846976`},
	"array whose bytes overflow": {preamble(3, 0, 1).key("a.b", kindArray).u32(uint32(kindU64)).u64(1<<61 +
		1).zeros(16), "more than the 16 bytes left"},
	"string in array too long": {preamble(3, 0, 1).key("a",
		kindArray).u32(uint32(kindString)).u64(2).str("x").u64(1 << 40).zeros(8), "element 1 of key"},
	"array ends early": {preamble(3, 0, 1).key("a",
		kindArray).u32(uint32(kindString)).u64(2).str("0123456789abcdef"), "ends in element 1 of 2"},
	"nested array ends": {preamble(3, 0, 1).key("deep", kindArray).u32(uint32(kindArray)).u64(2).zeros(16),
		`"deep" is 2`},
	"nested array of unknown": {preamble(3, 0, 1).key("deep", kindArray).u32(uint32(kindArray)).u64(1).
		u32(77).zeros(16),
		"array of the unknown value type 77"},
	"arrays nested deep": {nested(17), "nests arrays more than 16 levels deep"},
	"unknown value type": {preamble(3, 0, 1).key("k", 13).zeros(16), `"k" has the unknown value type 13`},
	"array of unknown": {preamble(3, 0, 1).key("k", kindArray).u32(77).u64(1).zeros(16),
		"array of the unknown value type 77"},
	"key twice": {preamble(3, 0, 2).key("k", kindU32).u32(1).key("k", kindU32).u32(2),
		`"k" appears twice`},
	"alignment 0":        {preamble(3, 0, 1).key(keyAlignment, kindU32).u32(0), "must be a power of two"},
	"alignment 24":       {preamble(3, 0, 1).key(keyAlignment, kindU32).u32(24), "must be a power of two"},
	"alignment a string": {preamble(3, 0, 1).key(keyAlignment, kindString).str("32"), "must be a uint32"},
	"alignment 2^31": {preamble(3, 1, 1).key(keyAlignment, kindU32).u32(1<<31).tensor("t", F32, 0,
		1).zeros(64), "the file ends at byte"},
	"no dimensions":   {preamble(3, 1, 0).tensor("t", F32, 0).zeros(64), "has 0 dimensions"},
	"2^31 dimensions": {preamble(3, 1, 0).str("t").u32(1 << 31).zeros(64), "has 2147483648 dimensions"},
	"five dimensions": {preamble(3, 1, 0).tensor("t", F32, 0, 1, 1, 1, 1, 1).zeros(64), "has 5 dimensions"},
	"zero dimension and overflow": {preamble(3, 1, 0).tensor("t", F32, 0, 0, 1<<40, 1<<40).zeros(64),
		"impossible dimensions [0 1099511627776 1099511627776]"},
	"2^60 rows": {preamble(3, 1, 0).tensor("blk.0.x", F32, 0, 1, 1<<60).zeros(64),
		`"blk.0.x" has impossible dimensions`},
	"product overflows to small": {preamble(3, 1, 0).tensor("t", F32, 0, 1<<32, 1<<32, 1).zeros(64),
		"impossible dimensions"},
	"bytes would overflow": {preamble(3, 1, 0).tensor("t", F32, 0, 1<<62).zeros(64), "impossible dimensions"},
	"part of a block": {preamble(3, 1, 0).tensor("t", Q4_K, 0, 128).zeros(999),
		"rows of 128 elements, which are no whole blocks of 256"},
	"part of a codebook block": {preamble(3, 1, 0).tensor("t", 17, 0, 288, 2).zeros(999),
		`"t" has rows of 288 elements, which are no whole blocks of 256 (type iq2_xs)`},
	"type not supported": {preamble(3, 1, 0).tensor("t", 24, 0, 256).zeros(999),
		`"t" is of type i8, which is not supported; those that are: bf16, f16`},
	"type unknown": {preamble(3, 1, 0).tensor("t", 4711, 0, 256).zeros(999), "of type 4711"},
	"outside":      {preamble(3, 1, 0).tensor("t", F32, 0, 64).zeros(64), `"t" needs 256 bytes`},
	"far outside":  {preamble(3, 1, 0).tensor("t", F32, 1<<40, 1).zeros(64), "at offset 1099511627776"},
	"offset wraps into header": {preamble(3, 1, 0).tensor("t", F32, 1<<64-64, 8).zeros(64),
		"at offset 18446744073709551552"},
	"misaligned": {preamble(3, 1, 0).tensor("t", F32, 4, 1).zeros(64), "not a multiple of the alignment 32"},
	"tensor twice": {preamble(3, 2, 0).tensor("t", F32, 0, 1).tensor("t", F32, 32, 1).zeros(99),
		`"t" appears twice`},
	"tensors overlap": {preamble(3, 2, 0).tensor("a", F32, 32, 1).tensor("b", F32, 0, 16).zeros(128),
		`"a" overlaps tensor "b"`},
	"header ends in tensors": {preamble(3, 2, 0).tensor("a", F32, 0, 1).zeros(60), "tensor"},
}

// TestHostile checks that each crafted file is refused in one sentence with a position or a name.
func TestHostile(t *testing.T) {
	for name, c := range hostile {
		t.Run(name, func(t *testing.T) {
			_, err := Parse(c.file.b)
			if err == nil {
				t.Fatal("accepted")
			}
			if !errors.Is(err, ErrDamaged) && !errors.Is(err, ErrUnsupported) {
				t.Errorf("%v is of neither kind", err)
			}
			if !strings.Contains(err.Error(), c.want) {
				t.Errorf("%q does not say %q", err, c.want)
			}
			if strings.Contains(err.Error(), "\n") || !strings.Contains(err.Error(), "at byte") {
				t.Errorf("%q is not one sentence with a position", err)
			}
		})
	}
}

// TestTruncated cuts a sound file at every length. Only cuts inside the padding after the last
// tensor are accepted.
func TestTruncated(t *testing.T) {
	whole := written(t, fillSample)
	f, err := Parse(whole)
	must(t, err)
	last, _ := f.Tensor("c")
	need := bytes.Index(whole, last.Data) + len(last.Data)
	for n := range whole {
		_, err := Parse(whole[:n:n])
		if (err == nil) != (n >= need) {
			t.Fatalf("cut at %d of %d (the last tensor ends at %d): %v", n, len(whole), need, err)
		}
	}
}

// TestHostileMemory checks that refusing a file of a megabyte of lies costs memory in proportion to
// it.
func TestHostileMemory(t *testing.T) {
	file := preamble(3, 1<<14, 1<<16).zeros(1 << 20).b
	many := preamble(3, 0, 1<<15)
	for i := range 1 << 15 {
		many.key(fmt.Sprintf("key %d", i), kindArray).u32(uint32(kindString)).u64(0)
	}
	for name, b := range map[string][]byte{"zeros": file, "many keys": many.b} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, err := Parse(b)
		runtime.ReadMemStats(&after)
		if got := after.TotalAlloc - before.TotalAlloc; got > 32*uint64(len(b)) {
			t.Errorf("%s: %d bytes allocated for a file of %d (%v)", name, got, len(b), err)
		}
	}
}

// FuzzParse checks that no input panics, and that accepted tensors are within the input.
func FuzzParse(f *testing.F) {
	f.Add(written(f, fillSample))
	f.Add(partBytes(f, 0, 3))
	for _, c := range hostile {
		f.Add(c.file.b)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		file, err := Parse(data)
		if err != nil {
			if !errors.Is(err, ErrDamaged) && !errors.Is(err, ErrUnsupported) {
				t.Fatalf("%v is of neither kind", err)
			}
			return
		}
		for _, k := range file.Keys() {
			file.Text(k)
			file.Uint(k)
			file.Int(k)
			file.Float(k)
			file.Bool(k)
			file.String(k)
			file.Strings(k)
			file.Floats(k)
			file.Ints(k)
		}
		total := 0
		for _, ten := range file.Tensors() {
			if len(ten.Data) != ten.Type.RowBytes(ten.Elems()) {
				t.Fatalf("%+v has %d bytes", ten, len(ten.Data))
			}
			total += len(ten.Data)
			if err := Dequantize(make([]float32, ten.Elems()), ten.Type, ten.Data); err != nil {
				t.Fatal(err)
			}
		}
		if total > len(data) {
			t.Fatalf("tensors of %d bytes in a file of %d", total, len(data))
		}
		must(t, file.Close())
	})
}

// BenchmarkOpenLargeVocabulary opens a header with the vocabulary and merges of a 152,000-token
// model and reads them.
func BenchmarkOpenLargeVocabulary(b *testing.B) {
	tokens, merges := make([]string, 151936), make([]string, 151387)
	for i := range tokens {
		tokens[i] = fmt.Sprintf("tok%d", i)
	}
	for i := range merges {
		merges[i] = fmt.Sprintf("to k%d", i)
	}
	path := filepath.Join(b.TempDir(), "vocab.gguf")
	out, err := os.Create(path)
	must(b, err)
	w := NewWriter(out)
	w.SetStrings("tokenizer.ggml.tokens", tokens)
	w.SetStrings("tokenizer.ggml.merges", merges)
	w.SetInts("tokenizer.ggml.token_type", make([]int32, len(tokens)))
	must(b, errors.Join(w.Close(), out.Close()))
	for b.Loop() {
		f, err := Open(path)
		must(b, err)
		if s, _ := f.Strings("tokenizer.ggml.tokens"); s[1] != "tok1" {
			b.Fatal(s[1])
		}
		f.Strings("tokenizer.ggml.merges")
		must(b, f.Close())
	}
}
