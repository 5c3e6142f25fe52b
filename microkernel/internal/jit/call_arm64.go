package jit

import "unsafe"

// trapByte fills the gaps between functions: a word of zeros is a permanently undefined
// instruction.
const trapByte = 0

// call runs the code at entry with args in R0.
//
//go:noescape
func call(entry uintptr, args unsafe.Pointer)

// cleanRange makes writes to [from, to) visible to instruction fetches: data cache cleaned,
// instruction cache invalidated.
//
//go:noescape
func cleanRange(from, to unsafe.Pointer)

func syncCode(pages []byte) {
	cleanRange(unsafe.Pointer(&pages[0]), unsafe.Add(unsafe.Pointer(&pages[0]), len(pages)))
}
