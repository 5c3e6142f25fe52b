// Package raw has pointer arithmetic for memory off the Go heap.
package raw

import "unsafe"

// CacheLine is the size of a cache line in bytes.
const CacheLine = 64

// Lines returns a size in bytes rounded up to entire cache lines.
func Lines(bytes int) int { return (bytes + CacheLine - 1) / CacheLine * CacheLine }

// Add returns the address of element n after p.
func Add(p *float32, n int) *float32 { return (*float32)(unsafe.Add(unsafe.Pointer(p), 4*n)) }

// Slice returns n elements that begin at element `at` after p.
func Slice(p *float32, at, n int) []float32 { return unsafe.Slice(Add(p, at), n) }

// At returns the address of a float32 element of a matrix whose rows are stride bytes apart.
func At(base unsafe.Pointer, stride, row, col int) unsafe.Pointer {
	return unsafe.Add(base, row*stride+4*col)
}

// CopyRows copies n elements of each of some rows. Strides are elements.
func CopyRows(to *float32, toStride int, from *float32, stride, rows, n int) {
	for r := range rows {
		copy(Slice(to, r*toStride, n), Slice(from, r*stride, n))
	}
}
