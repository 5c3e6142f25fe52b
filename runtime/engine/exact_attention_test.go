package engine

import (
	"fmt"
	"testing"

	"sandwich/microkernel"
	"sandwich/plans/heuristic"
	"sandwich/runtime/gguf"
)

// attentionDots returns the dot products of attention on this CPU, without float32.
func attentionDots() (dots []microkernel.AttentionDot) {
	host := microkernel.Host()
	for _, d := range microkernel.AttentionDots() {
		if d != microkernel.AttendF32 && d.On(host.Best(), host) {
			dots = append(dots, d)
		}
	}
	return dots
}

// TestBitEqualAttention is TestBitEqual for attention by other dot products, which are not equal
// across vector widths: it compares threads, chunks, batches, and prefill with decode.
func TestBitEqualAttention(t *testing.T) {
	skipUnderRace(t)
	dots := attentionDots()
	if len(dots) == 0 {
		t.Skipf("this CPU (%s) has no dot product for attention but float32; use one with avx512_vnni or avx512_bf16",
			microkernel.Host())
	}
	long(t)
	file := smallModel(t, "qwen3", gguf.Q8_0)
	for _, dot := range dots {
		for _, kv := range []string{"f16", "q8_0", "f32"} {
			if typ, err := microkernel.ParseKVType(kv); err != nil || dot.Reads(typ) != nil {
				continue
			}
			t.Run(fmt.Sprintf("%s/%s", dot, kv), func(t *testing.T) {
				o := heuristic.Options{KV: kv, Attend: dot.String(), Threads: 1}
				want := logitsAlone(t, file, o, 512)
				for _, chunk := range []int{1, 7, 64} {
					same(t, fmt.Sprintf("chunk %d", chunk), want, logitsAlone(t, file, o, chunk))
				}
				near(t, want, logitsAlone(t, file, heuristic.Options{KV: kv, Attend: "f32", Threads: 1}, 512))
				o.Threads = 2
				same(t, "two threads", want, logitsAlone(t, file, o, 512))
				same(t, "batch of 8", want, logitsInBatch(t, file, o, 8))
			})
		}
	}
}
