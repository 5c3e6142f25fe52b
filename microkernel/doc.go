// Package microkernel builds register-tile kernels at run time from a comparable Spec; RunRef is
// the plain-Go oracle.
//
// It owns the packed weight layouts and their packers, and every other kernel of the runtime that
// is generated code. All kernels keep rule 6 of the design: the bits of a result depend on the
// arithmetic that was chosen for a weight and on nothing else, neither on the instruction set nor
// on the shape of the tile.
//
// Rules of generated code. A function takes one pointer, in RDI on amd64 and R0 on arm64, to a
// struct of arguments. It may use every register but RSP and RBP (R18, R28 and SP on arm64), pushes
// at most 64 bytes, leaves the direction flag and MXCSR alone and ends with VZEROUPPER. Its
// operands live off the Go heap or are kept alive by the caller. A call lasts at most about 200
// microseconds, because Go cannot preempt it.
package microkernel
