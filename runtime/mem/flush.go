package mem

// flushCall is the number of bytes that one call of assembly flushes at most: Go cannot preempt it,
// and CLFLUSH waits for every line.
const flushCall = 64 << 10

// CanFlush reports whether Flush works on this machine.
func CanFlush() bool { return flushLine > 0 }

// Flush writes the cache lines of b back to memory and removes them from every cache of the
// machine, so that the next read of them comes from memory. Where the CPU has no instruction for
// that, it does nothing and returns false.
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
