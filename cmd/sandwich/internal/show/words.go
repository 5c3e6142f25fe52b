package show

import (
	"fmt"
	"math"
	"strconv"
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

// Plural is a number of things.
func Plural(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return strconv.Itoa(n) + " " + what + "s"
}

// OrUnknown names what is not known.
func OrUnknown(s string) string {
	if s == "" {
		return "unknown"
	}
	return s
}

// OrNone names what is empty.
func OrNone(s string) string {
	if s == "" {
		return "none"
	}
	return s
}

// OrDash marks what one of two plans does not have.
func OrDash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}

// Join joins what is not empty.
func Join(sep string, parts ...string) string {
	var list []string
	for _, p := range parts {
		if p != "" {
			list = append(list, p)
		}
	}
	return strings.Join(list, sep)
}

// Percent is a gain with its sign, which nothing has none of.
func Percent(x float64) string {
	if p := math.Round(100 * x); p != 0 {
		return fmt.Sprintf("%+.0f %%", p)
	}
	return "0 %"
}

// ColumnsFrom is the columns from first to before end.
func ColumnsFrom(first, end int) (columns []int) {
	for i := first; i < end; i++ {
		columns = append(columns, i)
	}
	return columns
}

// Share is a part of something as people read it.
func Share(x float64) string { return fmt.Sprintf("%.1f %%", 100*x) }

// Size is a number of bytes; nothing where there are none.
func Size(bytes int64) string {
	if bytes == 0 {
		return ""
	}
	return mem.FormatBytes(bytes)
}
