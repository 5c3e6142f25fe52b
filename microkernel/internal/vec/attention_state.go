package vec

import (
	"unsafe"

	"sandwich/microkernel/internal/kernel"
)

// AttentionStates is memory for the blocks of a job that several callers compute: with fewer KV
// heads than workers, the context of a sequence is cut into ranges of blocks. The first range
// continues in one state, as Run does; every later block has a state of its own, and MergeRanges
// merges them in ascending order. The bits are those of Run wherever the context is cut.
type AttentionStates struct {
	Memory unsafe.Pointer // StateBytes for the first range, then for each block after it; aligned to 64 bytes
	First  int            // the first block after the first range
}

// stateFields returns the running outputs, maxima and sums of a state.
func stateFields(state unsafe.Pointer) (out, maxima, sums *float32) {
	return (*float32)(unsafe.Add(state, kernel.StateOut)), (*float32)(unsafe.Add(state, kernel.StateMax)),
		(*float32)(unsafe.Add(state, kernel.StateSum))
}
