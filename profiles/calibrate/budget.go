package calibrate

import (
	"sandwich/runtime/mem"
)

// maxMemory is the maximum of bytes that all buffers of a measurement take together.
const maxMemory = 256 << 20

// memoryBudget returns the bytes that the buffers of a measurement may take: a quarter of free, the
// available memory, but at most maxMemory. A negative free means unknown.
func memoryBudget(free int64) int {
	if free < 0 {
		return maxMemory
	}
	return int(min(maxMemory, free/4))
}

// alloc maps a buffer, which free releases, and subtracts its size from the budget.
func (b *bench) alloc(size int, huge bool) (*mem.Buffer, error) {
	buf, err := mem.Alloc(size, mem.Options{Node: mem.AnyNode, Huge: huge})
	if err != nil {
		return nil, err
	}
	b.left = max(0, b.left-buf.Len())
	b.buffers = append(b.buffers, buf)
	return buf, nil
}

// leavesCaches reports whether last-level caches of caches bytes keep nothing of a region between
// two passes over it.
func leavesCaches(bytes, caches int) bool { return bytes >= 2*caches }

// minSample is the minimum number of bytes that a worker reads per sample if the caches are
// flushed before each pass.
const minSample = 8 << 20

// passes returns the number of passes per sample if each pass reads the given number of bytes.
func passes(bytes int) int {
	if bytes <= 0 {
		return 1
	}
	return max(1, minSample/bytes)
}

// stretch walks through a memory region in calls of generated code.
type stretch struct {
	region []byte // a multiple of call
	call   int    // bytes per call
	max    int    // bytes per pass
	flush  bool   // flush caches before each pass; else a pass continues where the previous one ended
}

// newStretch divides memory into calls of at most callBytes, and passes into whole calls. With
// flush a pass reads the region at most once.
func newStretch(memory []byte, limit int, flush bool) stretch {
	const calls, block = 4, 1024 // readers read whole blocks
	call := max(block, min(callBytes, len(memory)/calls)&^(block-1))
	s := stretch{region: memory[:len(memory)/call*call], call: call, max: max(call, limit/call*call), flush: flush}
	if flush {
		s.max = min(s.max, len(s.region))
	}
	return s
}

// prepare removes the memory of the next pass from all caches if flush is set.
func (s *stretch) prepare(at *int) {
	if s.flush {
		*at = 0
		mem.Flush(s.region[:s.max])
	}
}

// pass calls read for the memory of one pass and returns the number of bytes.
func (s *stretch) pass(at *int, read func([]byte)) float64 {
	for done := 0; done < s.max; done += s.call {
		if *at+s.call > len(s.region) {
			*at = 0
		}
		read(s.region[*at:][:s.call])
		*at += s.call
	}
	return float64(s.max)
}

// cacheNote returns the note for memory figures that caches may have falsified.
func cacheNote(what string, bytes int) string {
	return what + " was read from " + mem.FormatBytes(int64(bytes)) +
		", which the last-level caches partly hold: the figure is an upper bound"
}

// share returns the number of bytes of a buffer for each of n workers.
func share(buffer *mem.Buffer, n int) int { return buffer.Len() / n &^ (1<<12 - 1) }

// callBytes limits one call of generated code to well below 200 microseconds.
const callBytes = 1 << 20
