// Package counters reads what the processor counts while threads run: instructions, cache and TLB
// misses, remote and bus accesses. It makes the figures of Sandwich section 2.1 of them. What this
// machine does not count, or does not let this process see, has its reason instead of a value.
package counters

import "errors"

// Event is something that a processor or the kernel counts.
type Event uint8

// The events that figures are made of. The first ones are counted per thread, the last two by the
// memory controllers of the machine.
const (
	Instructions Event = iota
	Cycles
	BusCycles
	CacheLoads  // of the last level
	CacheMisses // loads that missed the last level
	TLBLoads    // of the data TLB
	TLBMisses
	NodeLoads  // loads from memory
	NodeMisses // of them, those from another node
	ContextSwitches
	PageFaults
	MemoryReads      // cache lines, all controllers
	MemoryReadSpread // the same, the busiest controller less the idlest
	events
)

// Value is a count, or why there is none.
type Value struct {
	Count   float64 // scaled up where the counter was there only a part of the time
	Missing error   // nil where Count holds
}

// Counts are the values of a stretch of time, by Event.
type Counts [events]Value

// missing are counts that have one reason throughout.
func missing(err error) (c Counts) {
	for i := range c {
		c[i].Missing = err
	}
	return c
}

// Sub is what was counted since an earlier reading.
func (c Counts) Sub(before Counts) Counts {
	for i := range c {
		if c[i].Missing == nil {
			c[i] = Value{c[i].Count - before[i].Count, before[i].Missing}
		}
	}
	return c
}

// Add puts two stretches, or two threads, together. What one of them lacks is missing.
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
	// Open begins to count for the given threads (the system's numbers). What cannot be counted is
	// missing in the Counts, never an error.
	Open(threads []int) Set
}

// Set are counters under way.
type Set interface {
	Read() Counts // since Open, all threads together
	Close()
}

// errNothing is why a ratio has no value where nothing was counted below its bar.
var errNothing = errors.New("nothing was counted")
