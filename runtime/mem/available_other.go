//go:build !linux

package mem

// Available cannot be told on this system.
func Available() int64 { return -1 }

// LimitNote cannot be told on this system.
func LimitNote() string { return "" }

// CheckLimit knows no limit on this system.
func CheckLimit(int64) error { return nil }

// BindingLimit cannot be told on this system.
func BindingLimit() string { return "" }

// AvailableOn cannot be told on this system.
func AvailableOn(int) int64 { return -1 }
