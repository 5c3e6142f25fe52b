//go:build !linux

package mem

// Available returns -1: the available memory is unknown on this system.
func Available() int64 { return -1 }

// LimitNote returns "": resource limits are not read on this system.
func LimitNote() string { return "" }

// CheckLimit returns nil: resource limits are not read on this system.
func CheckLimit(int64) error { return nil }

// BindingLimit returns "": resource limits are not read on this system.
func BindingLimit() string { return "" }

// AvailableOn returns -1: the free memory of nodes is unknown on this system.
func AvailableOn(int) int64 { return -1 }
