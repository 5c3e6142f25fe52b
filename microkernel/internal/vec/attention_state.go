package vec

import (
	"unsafe"

	"sandwich/microkernel/internal/kernel"
)

// AttentionStates is memory for the blocks of a job that several callers compute: where there are
// fewer KV heads than workers, one sequence's context is cut into ranges of blocks. The first range
// goes on into one state, as Run does; every block behind it leaves a state of its own, and
// MergeRanges folds them in ascending order, so that the bits are those of Run wherever the context
// is cut.
type AttentionStates struct {
	Memory unsafe.Pointer // StateBytes for the first range, then for each block behind it; aligned to 64 bytes
	First  int            // the first block behind the first range
}

// stateFields returns the running outputs, maxima and sums of a state.
func stateFields(state unsafe.Pointer) (out, maxima, sums *float32) {
	return (*float32)(unsafe.Add(state, kernel.StateOut)), (*float32)(unsafe.Add(state, kernel.StateMax)),
		(*float32)(unsafe.Add(state, kernel.StateSum))
}
