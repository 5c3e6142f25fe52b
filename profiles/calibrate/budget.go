package calibrate

import (
	"sandwich/runtime/mem"
)

// mostMemory is the number of bytes that the buffers of a measurement have together at most, over
// all workers.
const mostMemory = 256 << 20

// memoryBudget returns the bytes that the buffers of a measurement may have together: at most
// mostMemory, and at most a quarter of the memory that free says is available; less than 0 means
// that it is not known.
func memoryBudget(free int64) int {
	if free < 0 {
		return mostMemory
	}
	return int(min(mostMemory, free/4))
}

// alloc maps a buffer that free returns to the system, and takes its size from the budget.
func (b *bench) alloc(size int, huge bool) (*mem.Buffer, error) {
	buf, err := mem.Alloc(size, mem.Options{Node: mem.AnyNode, Huge: huge})
	if err != nil {
		return nil, err
	}
	b.left = max(0, b.left-buf.Len())
	b.buffers = append(b.buffers, buf)
	return buf, nil
}

// leavesCaches reports whether the last-level caches, of so many bytes, keep nothing of a region
// between two passes over it.
func leavesCaches(bytes, caches int) bool { return bytes >= 2*caches }

// leastSample is the number of bytes that a worker reads for one sample at least where the caches
// are flushed before each pass.
const leastSample = 8 << 20

// passes returns the number of passes of a sample whose passes read so many bytes each.
func passes(bytes int) int {
	if bytes <= 0 {
		return 1
	}
	return max(1, leastSample/bytes)
}

// stretch is how a worker walks through its memory: in calls that generated code makes at once.
type stretch struct {
	region []byte // a whole number of calls
	call   int    // bytes
	most   int    // bytes of one pass
	flush  bool   // before each pass; else a pass continues where the one before ended
}

// newStretch divides memory into calls of at most callBytes, and passes into whole calls. A pass
// over memory that is flushed ends with it.
func newStretch(memory []byte, most int, flush bool) stretch {
	const calls, block = 4, 1024 // a reader reads whole blocks
	call := max(block, min(callBytes, len(memory)/calls)&^(block-1))
	s := stretch{region: memory[:len(memory)/call*call], call: call, most: max(call, most/call*call), flush: flush}
	if flush {
		s.most = min(s.most, len(s.region))
	}
	return s
}

// prepare removes the memory of the next pass from all caches if the stretch asks for that.
func (s *stretch) prepare(at *int) {
	if s.flush {
		*at = 0
		mem.Flush(s.region[:s.most])
	}
}

// pass calls read for the memory of one pass and returns the number of bytes.
func (s *stretch) pass(at *int, read func([]byte)) float64 {
	for done := 0; done < s.most; done += s.call {
		if *at+s.call > len(s.region) {
			*at = 0
		}
		read(s.region[*at:][:s.call])
		*at += s.call
	}
	return float64(s.most)
}

// cacheNote says what a figure of memory is where the caches hold part of it and cannot be flushed.
func cacheNote(what string, bytes int) string {
	return what + " was read from " + mem.FormatBytes(int64(bytes)) +
		", which the last-level caches partly hold: the figure is an upper bound"
}

// share returns the number of bytes of a buffer that each of n workers has to itself.
func share(buffer *mem.Buffer, n int) int { return buffer.Len() / n &^ (1<<12 - 1) }
