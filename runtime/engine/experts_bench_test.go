package engine

import (
	"bytes"
	"context"
	"fmt"
	"testing"

	"sandwich/plans/heuristic"
	"sandwich/runtime/gguf"
	"sandwich/runtime/model/synth"
	"sandwich/runtime/pool"
)

// BenchmarkExperts measures two layers of qwen3-30b-a3b with a quarter of its experts: a prefill of
// 512 tokens, which reaches all experts, and a decode step, which reads the weights of eight. The
// ceiling of decode is memory bandwidth; MB/s counts the weights that a step reads.
func BenchmarkExperts(b *testing.B) {
	c, err := synth.Preset("qwen3-30b-a3b")
	if err != nil {
		b.Fatal(err)
	}
	c.Layers, c.Vocab, c.Experts.Count = 2, 1024, 32
	var out bytes.Buffer
	if err := synth.Write(context.Background(), gguf.NewWriter(&out), c, synth.Uniform(gguf.Q8_0), 7,
		nil); err != nil {
		b.Fatal(err)
	}
	file, err := gguf.Parse(out.Bytes())
	if err != nil {
		b.Fatal(err)
	}
	perToken := int64(c.Layers) * int64(3*c.Experts.Used*c.Experts.FFN*c.Hidden+2*(c.Heads+c.KVHeads)*c.HeadDim*
		c.Hidden) * 34 / 32
	for _, threads := range []int{1, 2} {
		r := openTestRunner(b, file, heuristic.Options{Threads: threads}, 512)
		r.Lead(func(l *pool.Leader) {
			line := NewSequence(r, l)
			prompt := tinyPrompt(1, 512)
			b.Run(fmt.Sprintf("prefill512/threads%d", threads), func(b *testing.B) {
				for b.Loop() {
					line.Reset()
					if err := line.Feed(prompt, 512, NoLogits, nil); err != nil {
						b.Fatal(err)
					}
				}
				b.ReportMetric(512*float64(b.N)/b.Elapsed().Seconds(), "tokens/s")
			})
			b.Run(fmt.Sprintf("decode/threads%d", threads), func(b *testing.B) {
				b.SetBytes(perToken)
				for i := 0; b.Loop(); i++ {
					if line.Pos() > 570 {
						line.Reset()
					}
					if _, err := line.Step(int32(i % 1000)); err != nil {
						b.Fatal(err)
					}
				}
			})
		})
		r.Close()
	}
}
