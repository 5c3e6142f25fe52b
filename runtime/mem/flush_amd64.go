package mem

import "unsafe"

// cpuid returns registers EAX, EBX and EDX of a CPUID leaf, subleaf 0. Every amd64 CPU has leaf 1.
func cpuid(leaf uint32) (eax, ebx, edx uint32)

// flushLines flushes n lines of line bytes, starting at p, with CLFLUSHOPT if optimized and else
// with CLFLUSH, which waits for each line. n must be at least 1.
//
//go:noescape
func flushLines(p unsafe.Pointer, line, n uintptr, optimized bool)

// flushLine is the length in bytes of the lines that the CPU flushes, 0 if it cannot. hasOptimized
// reports whether it has CLFLUSHOPT.
var flushLine, hasOptimized = flushFeatures()

func flushFeatures() (line uintptr, optimized bool) {
	const clflush, clflushopt = 1 << 19, 1 << 23
	_, ebx, edx := cpuid(1)
	if edx&clflush == 0 {
		return 0, false
	}
	line = uintptr(ebx>>8&0xFF) * 8
	if highest, _, _ := cpuid(0); highest >= 7 {
		_, ebx, _ = cpuid(7)
		optimized = ebx&clflushopt != 0
	}
	return line, optimized
}

func flush(b []byte) {
	p := unsafe.Pointer(unsafe.SliceData(b))
	skew := uintptr(p) % flushLine
	flushLines(unsafe.Add(p, -int(skew)), flushLine, (uintptr(len(b))+skew+flushLine-1)/flushLine, hasOptimized)
}
