package jit

import "unsafe"

// trapByte fills what lies between functions: int3.
const trapByte = 0xCC

// call runs the code at entry with args in RDI.
//
//go:noescape
func call(entry uintptr, args unsafe.Pointer)

// syncCode has nothing to do: instruction caches of amd64 follow writes by themselves.
func syncCode([]byte) {}
