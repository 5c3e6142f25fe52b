package mem

import "unsafe"

// flushLines cleans and invalidates n lines of so many bytes from p on, to the point of coherency.
//
//go:noescape
func flushLines(p unsafe.Pointer, line, n uintptr)

// cacheType returns CTR_EL0, which Linux lets programs read.
func cacheType() uint64

// flushLine is the length in bytes of the shortest line of any data cache.
var flushLine = uintptr(4) << (cacheType() >> 16 & 0xF)

func flush(b []byte) {
	p := unsafe.Pointer(unsafe.SliceData(b))
	skew := uintptr(p) % flushLine
	flushLines(unsafe.Add(p, -int(skew)), flushLine, (uintptr(len(b))+skew+flushLine-1)/flushLine)
}
