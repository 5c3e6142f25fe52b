package grammar

import (
	"context"

	"sandwich/runtime/grammar/internal/automaton"
)

// Limits limit the compilation of one grammar. A zero field means its default.
type Limits struct {
	Bytes int64 // memory in use at any time
	Work  int64 // elementary steps of 10 to 20 ns each
	// Memory limits what is cached for answers under the grammar; nil means a separate Memory.
	Memory *Memory
}

// Meter counts the memory and the work of compiling a grammar. It ends the compilation if a limit
// is exceeded or its context ends. A Meter may compile several grammars one after another: each has
// the whole memory, and all share the work. It must not be used concurrently.
type Meter struct {
	*automaton.Meter
	memory *Memory
}

// NewMeter returns a Meter for compilations that end when ctx ends.
func NewMeter(ctx context.Context, l Limits) *Meter {
	if l.Memory == nil {
		l.Memory = NewMemory()
	}
	return &Meter{automaton.NewMeter(ctx, l.Bytes, l.Work), l.Memory}
}
