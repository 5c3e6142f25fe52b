//go:build !linux

package sys

// LowerPriority does nothing on this system, where priorities are those of processes.
func LowerPriority() {}
