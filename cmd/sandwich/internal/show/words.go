package show

import (
	"fmt"
	"math"
	"strings"

	"sandwich/runtime/mem"
)

// Clip shortens a value to one line of at most n runes.
func Clip(s string, n int) string {
	s = strings.Join(strings.Fields(s), " ")
	if r := []rune(s); len(r) > n {
		return string(r[:n-3]) + "..."
	}
	return s
}

// OrUnknown returns s, or "unknown" if s is empty.
func OrUnknown(s string) string {
	if s == "" {
		return "unknown"
	}
	return s
}

// OrDash returns s, or "-" if s is empty.
func OrDash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}

// Join joins the parts that are not empty.
func Join(sep string, parts ...string) string {
	var list []string
	for _, p := range parts {
		if p != "" {
			list = append(list, p)
		}
	}
	return strings.Join(list, sep)
}

// Percent formats a fraction as a percentage with a sign; a rounded 0 has none.
func Percent(x float64) string {
	if p := math.Round(100 * x); p != 0 {
		return fmt.Sprintf("%+.0f %%", p)
	}
	return "0 %"
}

// ColumnsFrom returns the column numbers from first to end, without end.
func ColumnsFrom(first, end int) (columns []int) {
	for i := first; i < end; i++ {
		columns = append(columns, i)
	}
	return columns
}

// Share formats a fraction as a percentage with one decimal.
func Share(x float64) string { return fmt.Sprintf("%.1f %%", 100*x) }

// Size formats a number of bytes; "" for 0.
func Size(bytes int64) string {
	if bytes == 0 {
		return ""
	}
	return mem.FormatBytes(bytes)
}
