package main

import (
	"os"
	"runtime"
	"runtime/debug"
	"sync"
)

// freshHeap is how much a process takes before its first garbage collection, in percent of the four
// megabytes that Go begins with: 40 MiB, which no plan verb reaches. Collections of a heap that
// only grows find nothing, and cost a seventh of the time of `plan verify`.
const freshHeap = 1000

// collectLate puts off the first garbage collection of this process, and sets Go's usual pace again
// when it comes. The verbs of plans call it; a server's heap would be larger by what was put off.
// A GOGC in the environment stands.
var collectLate = sync.OnceFunc(func() {
	if os.Getenv("GOGC") != "" {
		return
	}
	usual := debug.SetGCPercent(freshHeap)
	first := new([16]byte) // found unused by the first collection
	runtime.AddCleanup(first, func(percent int) { debug.SetGCPercent(percent) }, usual)
})
