// Package mem hands out page-aligned buffers off the Go heap.
//
// A [Buffer] is a mapping of its own: on Linux it can be placed on a NUMA node (mbind) and backed
// by transparent huge pages, and where its pages really are is read back with [Buffer.Residency].
// [Available] says how much memory this process may still use, cgroup limits included, so that a
// plan or a context that does not fit is refused before anything is loaded.
//
// The garbage collector knows nothing of this memory. Two rules follow: nothing stored in it may be
// a Go pointer, and Free is called only when no goroutine and no generated code can reach the
// memory any more (in the runtime: after a barrier). Under the race detector, which cannot see
// mapped memory, and on systems without mmap, buffers come from the Go heap and placement does
// nothing.
package mem
