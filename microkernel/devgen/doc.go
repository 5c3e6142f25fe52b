// Package devgen defines a small typed representation (IR) of kernels that run on devices, and a
// builder for it. Package interp runs the IR in Go and is the oracle; packages spirv and ptx
// translate it. Package kernels has the kernels.
//
// # Execution
//
// A dispatch runs a grid of workgroups. The invocations of a workgroup share memory and meet at
// barriers. There are no subgroup operations except MMA, which the 32 invocations of an aligned
// group execute together and which only some targets have. Control flow is structured: If and For.
// A Barrier, MMA or WaitAsync must be reached by all invocations of its workgroup.
//
// # Memory
//
// Buffers and shared arrays are arrays of 32-bit words, indexed by word. A binding has at most
// 2^31 words. Reads of other widths are shifts and masks of words.
//
// # Arithmetic
//
// Every operation has one exact result, the one of the same operation of Go: float32 operations
// round to nearest even, FMA rounds once, division and square root are correctly rounded, subnormal
// numbers are kept. A translator must not contract, reorder or approximate. Where a device computes
// an operation inexactly, Lower and the translators replace it by an exact sequence.
package devgen
