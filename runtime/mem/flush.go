package mem

// flushCall is the largest number of bytes that one call of assembly flushes. Go cannot preempt
// such a call, and CLFLUSH waits for each line.
const flushCall = 64 << 10

// CanFlush reports whether Flush works on this machine.
func CanFlush() bool { return flushLine > 0 }

// Flush writes the cache lines of b back to memory and removes them from all caches of the machine,
// so that the next read comes from memory. If the CPU has no instruction for this, it does nothing
// and returns false.
func Flush(b []byte) bool {
	if !CanFlush() {
		return false
	}
	for len(b) > 0 {
		n := min(flushCall, len(b))
		flush(b[:n])
		b = b[n:]
	}
	return true
}
