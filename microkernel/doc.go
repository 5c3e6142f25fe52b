// Package microkernel builds register-tile kernels at run time from a comparable Spec. It owns the
// packed weight layouts and their packers, and every other generated function of the runtime: row
// operations, attention and probes. RunRef is the plain-Go oracle.
//
// The bits of a result depend only on the arithmetic that was chosen for a weight, not on the
// instruction set or the shape of the tile (DESIGN.md, rule 6).
//
// Rules of generated code: a function takes one pointer, in RDI on amd64 and R0 on arm64, to a
// struct of arguments. It may use every register but RSP and RBP (R18, R28 and SP on arm64), pushes
// at most 64 bytes, preserves the direction flag and MXCSR, and ends with VZEROUPPER. Its operands
// are off the Go heap or kept alive by the caller. A call lasts at most about 200 microseconds,
// because Go cannot preempt it.
//
// Packages outside microkernel see only this package and qtype. It must not import the runtime.
package microkernel
