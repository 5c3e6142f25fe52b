//go:build !linux

package counters

import (
	"errors"
	"runtime"
)

// System is a Source without counters: they are not supported on this operating system.
type System struct{}

// Open returns a set in which all counts are missing.
func (System) Open([]int) Set { return nothing{} }

// nothing is the set without counters.
type nothing struct{}

func (nothing) Read() Counts {
	return missing(errors.New("counters are not supported on " + runtime.GOOS))
}

func (nothing) Close() {}
