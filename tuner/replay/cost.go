package replay

import "time"

// Cost estimates the duration of forwards.
type Cost interface {
	// Prefill returns the time of n rows of one sequence after pos earlier ones. If head is set,
	// the logits of the last row are computed.
	Prefill(pos, n int, head bool) time.Duration
	// Decode returns the time of one row of each of several sequences. context has the positions
	// before each.
	Decode(context []int) time.Duration
	// Ops returns the number of boundaries in a forward at which a prefill can stop.
	Ops() int
}
