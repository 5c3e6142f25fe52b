package rig

import (
	"fmt"

	"sandwich/runtime/phase"
)

// Test is one kind of forward that arms are compared on: a prompt of N tokens, one decode step of N
// sequences or, if Depth is above 0, one decode step of N rows of one sequence after Depth
// positions, of which all rows but the first are a draft.
type Test struct {
	Phase   phase.Phase
	N       int
	Depth   int
	Times   int     // forwards per sample
	Seconds float64 // approximate duration of a forward
}

// Name returns the name of the test in evidence and journals.
func (x Test) Name() string {
	if x.Phase == phase.Prefill {
		return fmt.Sprintf("pp%d", x.N)
	}
	if x.Depth > 0 {
		return fmt.Sprintf("tg %d rows at %d", x.N, x.Depth)
	}
	return fmt.Sprintf("tg batch %d", x.N)
}

// sampleSeconds is the approximate duration of one sample of a finalist: long enough to average
// over the timer ticks of the system.
const sampleSeconds = 0.02

// evenShare is the minimum duration of samples of short forwards relative to the longest ones.
// Shorter samples are too noisy to decide between tables that differ by 5 %.
const evenShare = 1.0 / 12

// repeats returns the number of forwards of the given length in a sample of the given length.
func repeats(seconds, sample float64) int { return min(200, max(1, int(sample/seconds))) }

// Timed returns the test with its number of forwards per sample, from the duration of one forward.
func (x Test) Timed(seconds float64) Test { return x.TimedFor(seconds, sampleSeconds) }

// TimedFor is Timed for samples of at most so many seconds.
func (x Test) TimedFor(seconds, sample float64) Test {
	x.Seconds, x.Times = seconds, repeats(seconds, min(sample, sampleSeconds))
	return x
}

// Even lengthens the samples of short forwards when other tests take long: a round costs little
// more, and samples of 20 ms between prompts of a second are too noisy.
func Even(tests []Test) {
	longest := 0.0
	for _, x := range tests {
		longest = max(longest, x.Seconds*float64(x.Times))
	}
	for i := range tests {
		x := &tests[i]
		x.Times = repeats(x.Seconds, max(sampleSeconds, evenShare*longest))
	}
}
