package main

import (
	"os"
	"runtime"
	"runtime/debug"
)

// firstCollection is the heap at which garbage is collected for the first time, in hundredths of
// the four megabytes that Go begins with: verbs that read a plan and print a page end below it, and
// save the 3 to 4 % of their time that a collection takes. From then on it is done as Go does it.
const firstCollection = 400

// calmCollector puts the first collection off, unless GOGC says otherwise.
func calmCollector() {
	if os.Getenv("GOGC") != "" {
		return
	}
	usual := debug.SetGCPercent(firstCollection)
	runtime.SetFinalizer(new([16]byte), func(*[16]byte) { debug.SetGCPercent(usual) })
}
