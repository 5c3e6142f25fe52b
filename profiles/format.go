package profiles

import "fmt"

// FormatRate formats a figure with a decimal prefix: 187 GFLOP/s, 16.9 GB/s, 85 ns.
func FormatRate(v float64, unit string) string {
	if unit == "s" {
		return FormatSeconds(v)
	}
	for _, p := range []struct {
		scale  float64
		prefix string
	}{{1e12, "T"}, {1e9, "G"}, {1e6, "M"}, {1e3, "k"}} {
		if v >= p.scale {
			return fmt.Sprintf("%.3g %s%s", v/p.scale, p.prefix, unit)
		}
	}
	return fmt.Sprintf("%.3g %s", v, unit)
}

// FormatSeconds formats a duration in seconds: 85 ns, 1.2 ms, 3 days.
func FormatSeconds(v float64) string {
	switch {
	case v >= 48*3600:
		return fmt.Sprintf("%.0f days", v/86400)
	case v >= 2*3600:
		return fmt.Sprintf("%.3g h", v/3600)
	case v >= 1:
		return fmt.Sprintf("%.3g s", v)
	case v >= 1e-3:
		return fmt.Sprintf("%.3g ms", v*1e3)
	case v >= 1e-6:
		return fmt.Sprintf("%.3g us", v*1e6)
	}
	return fmt.Sprintf("%.3g ns", v*1e9)
}
