package jit

import "unsafe"

// trapByte fills the gaps between functions: int3.
const trapByte = 0xCC

// call runs the code at entry with args in RDI.
//
//go:noescape
func call(entry uintptr, args unsafe.Pointer)

// syncCode does nothing: instruction caches of amd64 are coherent.
func syncCode([]byte) {}
