// Package mem allocates page-aligned buffers outside the Go heap.
//
// Each [Buffer] is a separate mapping. On Linux it can be placed on a NUMA node (mbind) and backed
// by transparent huge pages, and [Buffer.Residency] returns the nodes that its pages are on.
// [Available] returns how much memory this process may still use, including cgroup limits, so that
// a plan or a context that does not fit is rejected before anything is loaded.
//
// The garbage collector does not scan this memory. Therefore it must not contain Go pointers, and
// Free may be called only when no goroutine and no generated code can access the memory (in the
// runtime: after a barrier). Under the race detector, which does not track mapped memory, and on
// systems without mmap, buffers come from the Go heap and placement has no effect.
package mem
