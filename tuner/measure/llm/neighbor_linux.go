package llm

import (
	"golang.org/x/sys/unix"
)

// bindThread pins the calling thread to a PU.
func bindThread(pu int) error {
	var set unix.CPUSet
	set.Set(pu)
	return unix.SchedSetaffinity(0, &set)
}
