// Package mem hands out page-aligned buffers off the Go heap.
package mem
