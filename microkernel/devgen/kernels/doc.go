// Package kernels has the device kernels of a decoder: embedding, norm and quantization, matrix
// products, rotation, attention, and small row operations.
//
// Each kernel is described by a struct of the properties that determine its code. Its method Kernel
// builds the code, its method Grid returns the workgroups of a dispatch. Sizes and strides are push
// words; strides count words. Results have the bits of the plain-Go definitions on the CPU
// (DESIGN.md, rule 6), and buffers have the CPU's layouts: weight panels, KV blocks and rows of
// quantized activations.
//
// The address of every binding is a multiple of 16 bytes.
package kernels

// b32 is the size of a word in bytes.
const b32 = 4

// ceil returns n/by, rounded up.
func ceil(n, by int) int { return (n + by - 1) / by }
