package kerneltest

import (
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// Guarded returns n bytes that end exactly where an inaccessible page begins.
func Guarded(t *testing.T, n int) []byte {
	t.Helper()
	page := unix.Getpagesize()
	size := (n + page - 1) / page * page
	m, err := unix.Mmap(-1, 0, size+page, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON)
	if err != nil {
		t.Fatal(err)
	}
	if err := unix.Mprotect(m[size:], unix.PROT_NONE); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { unix.Munmap(m) })
	return m[size-n : size : size]
}

// Map maps memory for benchmarks, in huge pages where the system allows it.
func Map(b *testing.B, n int) []byte {
	b.Helper()
	m, err := unix.Mmap(-1, 0, n, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON)
	if err != nil {
		b.Fatal(err)
	}
	_ = unix.Madvise(m, unix.MADV_HUGEPAGE) // advice: without it the benchmark is only slower
	b.Cleanup(func() { _ = unix.Munmap(m) })
	return m
}

// ThreadTime returns the processor time of the calling thread: what other processes take away does
// not count.
func ThreadTime() time.Duration {
	var t unix.Timespec
	if unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &t) != nil {
		return 0
	}
	return time.Duration(t.Nano())
}
