package tokenizer

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sandwich/runtime/gguf"
	"sandwich/runtime/refdata"
)

// english is about a megabyte of ordinary text.
func english(b *testing.B) string {
	raw, err := os.ReadFile(filepath.Join("..", "demo", "testdata", "val.txt"))
	if err != nil {
		b.Fatal(err)
	}
	return strings.Repeat(string(raw), 1<<20/len(raw)+1)[:1<<20]
}

func benchmarkEncode(b *testing.B, text string) {
	for _, name := range vocabs {
		b.Run(name, func(b *testing.B) {
			tok := vocab(b, name)
			var ids []int32
			b.SetBytes(int64(len(text)))
			b.ReportAllocs()
			for b.Loop() {
				ids = tok.Encode(ids[:0], text, EncodeOptions{ParseSpecial: true})
			}
			b.ReportMetric(float64(len(ids)), "tokens")
		})
	}
}

func BenchmarkEncodeEnglish(b *testing.B) { benchmarkEncode(b, english(b)) }
func BenchmarkEncodeOneRun(b *testing.B)  { benchmarkEncode(b, strings.Repeat("a", 1<<20)) }
func BenchmarkEncodeChinese(b *testing.B) {
	benchmarkEncode(b, strings.Repeat("你好世界，今天天气很好。", 1<<20/36))
}
func BenchmarkEncodeBrackets(b *testing.B) { benchmarkEncode(b, strings.Repeat("<|", 1<<19)) }

func BenchmarkStream(b *testing.B) {
	tok := vocab(b, "llama-bpe")
	ids := tok.Encode(nil, english(b), EncodeOptions{})
	b.ReportAllocs()
	s := tok.NewStream()
	i := 0
	for b.Loop() {
		s.Push(ids[i%len(ids)])
		i++
	}
}

// BenchmarkNew measures reading a vocabulary.
func BenchmarkNew(b *testing.B) {
	for _, name := range vocabs {
		b.Run(name, func(b *testing.B) {
			file, err := gguf.Open(refdata.Path(b, "tokenizer/vocab/ggml-vocab-"+name+".gguf"))
			if err != nil {
				b.Fatal(err)
			}
			defer file.Close()
			for b.Loop() {
				if _, err := New(file); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
