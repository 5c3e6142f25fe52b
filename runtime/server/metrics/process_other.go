//go:build !linux

package metrics

// systemMetrics returns nothing on this system.
func systemMetrics() []Metric { return nil }
