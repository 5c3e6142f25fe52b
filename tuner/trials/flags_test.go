package trials

import (
	"testing"
	"time"
)

// TestFlags checks the spelling of flags that existing journals have in their keys.
func TestFlags(t *testing.T) {
	f := Flags{Threads: 4, TP: 2, ISA: "avx2", Compute: "int8", KV: "f16", Attention: "auto", SeqMax: 512, BatchMax: 8,
		Budget: 90 * time.Second, Effort: "quick", Strategy: "sandwich", TopK: 10, AllowTP: true, Load: "fixed",
		Objective: "latency"}
	const want = `threads=4 tp=2 isa=avx2 compute=int8 kv=f16 attention=auto seq-max=512 batch-max=8 budget=1m30s ` +
		`effort=quick strategy=sandwich top-k=10 allow-tp=true load="fixed" objective=latency`
	if got := f.String(); got != want {
		t.Errorf("flags are %s, want %s", got, want)
	}
}
