// Package thread runs functions on threads with properties of their own.
package thread

import "sandwich/runtime/pool/internal/sys"

// Low runs f on a thread of low priority and returns when f has ended. The thread gets about a
// tenth of a CPU that a worker uses, which is the share that the arbiter guarantees to background
// work. It is for work that cannot be divided into pieces.
func Low(f func()) {
	done := make(chan struct{})
	go sys.OwnThread(func() {
		defer close(done)
		sys.LowerPriority()
		f()
	})
	<-done
}
