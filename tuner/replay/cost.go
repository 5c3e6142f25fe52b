package replay

import "time"

// Cost says how long forwards take.
type Cost interface {
	// Prefill is the time of n rows of one sequence that follow pos earlier ones; head says that
	// the logits of the last row are computed.
	Prefill(pos, n int, head bool) time.Duration
	// Decode is the time of one row of each of several sequences, each with as many positions
	// before it.
	Decode(context []int) time.Duration
	// Ops is how many boundaries a forward has at which a prefill can be stopped.
	Ops() int
}
