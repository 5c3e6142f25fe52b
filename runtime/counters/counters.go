// Package counters reads hardware and kernel event counters of threads: instructions, cache and TLB
// misses, remote accesses and bus cycles. It derives the figures of Sandwich section 2.1 from them.
// An event that is unsupported or not permitted has an error instead of a count.
package counters

import "errors"

// Event identifies an event that the processor or the kernel counts.
type Event uint8

// The events that figures are derived from. MemoryReads and MemoryReadSpread are counted by the
// memory controllers of the machine, all others per thread.
const (
	Instructions Event = iota
	Cycles
	BusCycles
	CacheLoads  // of the last level
	CacheMisses // loads that missed the last level
	TLBLoads    // of the data TLB
	TLBMisses
	NodeLoads  // loads from memory
	NodeMisses // loads from the memory of another node
	ContextSwitches
	PageFaults
	MemoryReads      // cache lines, sum of all controllers
	MemoryReadSpread // cache lines, difference between the busiest and the least busy controller
	events
)

// Value is a count, or the reason why there is none.
type Value struct {
	Count   float64 // extrapolated if the event was counted only part of the time
	Missing error   // nil if Count is valid
}

// Counts holds the values of an interval, indexed by Event.
type Counts [events]Value

// missing returns counts that are all missing for the same reason.
func missing(err error) (c Counts) {
	for i := range c {
		c[i].Missing = err
	}
	return c
}

// Sub returns the counts since an earlier reading. An event missing in either reading is missing.
func (c Counts) Sub(before Counts) Counts {
	for i := range c {
		if c[i].Missing == nil {
			c[i] = Value{c[i].Count - before[i].Count, before[i].Missing}
		}
	}
	return c
}

// Add returns the sum of the counts of two intervals or threads. An event missing in either is
// missing in the sum.
func (c Counts) Add(o Counts) Counts {
	for i := range c {
		if c[i].Missing == nil {
			c[i] = Value{c[i].Count + o[i].Count, o[i].Missing}
		}
	}
	return c
}

// Source opens counters for threads of this process.
type Source interface {
	// Open starts counting for the given operating system thread IDs. It cannot fail: events that
	// cannot be counted are missing in the Counts.
	Open(threads []int) Set
}

// Set is a set of running counters.
type Set interface {
	Read() Counts // returns the counts since Open, summed over all threads
	Close()       // stops counting and releases the counters
}

// errNothing is the reason for a missing ratio whose denominator is 0.
var errNothing = errors.New("the denominator event did not occur")
