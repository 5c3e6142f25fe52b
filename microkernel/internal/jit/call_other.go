//go:build !amd64 && !arm64

package jit

import "unsafe"

const trapByte = 0

func call(uintptr, unsafe.Pointer) { panic("jit: no generated code on this architecture") }
func syncCode([]byte)              {}
