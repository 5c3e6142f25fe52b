package pool

import (
	"fmt"
	"sync/atomic"
)

const cacheLine = 128 // two 64-byte lines: adjacent lines are fetched in pairs

// Split divides n items into contiguous ranges whose inner borders are multiples of align and
// returns range i of parts. Sizes differ by at most one align before the tail, and are equal on
// every call. Late ranges are empty if there are fewer blocks of align than parts. align below 1
// means 1.
func Split(n, parts, i, align int) (lo, hi int) {
	if align < 1 {
		align = 1
	}
	blocks := (n + align - 1) / align
	each, more := blocks/parts, blocks%parts
	lo = (i*each + min(i, more)) * align
	hi = lo + each*align
	if i < more {
		hi += align
	}
	return min(lo, n), min(hi, n)
}

const (
	chunkBits = 20
	chunkMask = 1<<chunkBits - 1
	maxChunks = 1 << (chunkBits - 1) // the rest is for one attempt of each worker past the end
	localBits = 12
	localMask = 1<<localBits - 1
)

const (
	placeShift = 61
	listBits   = 8
	listShift  = placeShift - listBits
	phaseBits  = listShift - chunkBits
	phaseMask  = 1<<phaseBits - 1
)

// nextGlobal returns the phase after a global barrier: equal for workers whose groups passed
// different numbers of local ones.
func nextGlobal(tag uint64) uint64 { return (tag>>localBits + 1) << localBits }

// nextLocal returns the phase after a local barrier.
func nextLocal(tag uint64) uint64 {
	if tag&localMask == localMask {
		panic(fmt.Sprintf("pool: more than %d local barriers without a global one", localMask))
	}
	return tag + 1
}

// MostLists is the number of loops that one phase may have in preemption-tolerant mode.
const MostLists = 1 << listBits

// Counter hands out the chunks of one op to the workers as they ask for them, so that a worker on a
// slow or disturbed core takes fewer. The zero value is ready, and it needs no reset: the word has
// the barrier phase of its last use and the number of chunks given out, and the first worker of a
// newer phase starts it over. The workers that share a Counter must therefore pass a barrier that
// they share between two uses of it; within one phase it serves one loop.
type Counter struct {
	List uint8 // number of the loop in the phase, below MostLists, if preemption-tolerant mode has several
	_    [cacheLine/2 - 8]byte
	word atomic.Uint64 // phase << chunkBits | chunks given out
	_    [cacheLine / 2]byte
}

// take returns the number of chunks given out before this call in phase tag. All other workers in
// the phase write only the same tag, so once the word has it an addition is enough.
func (c *Counter) take(tag uint64) uint64 {
	tag &= 1<<(64-chunkBits) - 1
	for {
		word := c.word.Load()
		if word>>chunkBits == tag {
			return c.word.Add(1)&chunkMask - 1
		}
		if c.word.CompareAndSwap(word, tag<<chunkBits|1) {
			return 0
		}
	}
}

// Assignment hands out the chunks of a worker's own part of an op. The worker takes them from the
// front, and workers that have finished theirs take them from the back, so that a part is computed
// in order unless its worker is late. The zero value is ready. Like a Counter it needs no reset and
// serves one loop of a barrier phase.
type Assignment struct {
	_    [cacheLine / 2]byte
	word atomic.Uint64 // phase << 2*assignedBits | chunks given out at the back << assignedBits | at the front
	_    [cacheLine / 2]byte
}

const (
	assignedBits = 10
	assignedMask = 1<<assignedBits - 1
)

// MaxAssigned is the largest number of chunks of an Assignment.
const MaxAssigned = assignedMask / 2
