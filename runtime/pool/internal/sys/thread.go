// Package sys has the system calls of worker threads: affinity, waiting, clocks and accounts of
// lost CPU time.
package sys

import "runtime"

// OwnThread runs f on a thread of its own that is not the main one. The affinity of the main thread
// is taken for that of the process by /proc and other programs, and that thread could not end with
// a worker.
func OwnThread(f func()) {
	runtime.LockOSThread()
	if !onMainThread() {
		f()
		return
	}
	elsewhere := make(chan struct{})
	go func() {
		runtime.LockOSThread()
		close(elsewhere)
		f()
	}()
	<-elsewhere // the main thread is held here until the other goroutine has another
	runtime.UnlockOSThread()
}
