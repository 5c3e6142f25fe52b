package mem

import "unsafe"

// flushLines cleans and invalidates n lines of line bytes, starting at p, to the point of
// coherency. n must be at least 1.
//
//go:noescape
func flushLines(p unsafe.Pointer, line, n uintptr)

// cacheType returns register CTR_EL0, which Linux lets user space read.
func cacheType() uint64

// flushLine is the shortest line length of the data caches, in bytes.
var flushLine = uintptr(4) << (cacheType() >> 16 & 0xF)

func flush(b []byte) {
	p := unsafe.Pointer(unsafe.SliceData(b))
	skew := uintptr(p) % flushLine
	flushLines(unsafe.Add(p, -int(skew)), flushLine, (uintptr(len(b))+skew+flushLine-1)/flushLine)
}
