// Package showtest checks the layout of tables in tests.
package showtest

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/olekukonko/tablewriter/pkg/twwidth"

	"sandwich/cmd/sandwich/internal/show"
	"sandwich/cmd/sandwich/internal/table"
)

// CheckFit fills each table with long values and checks that it fits a terminal of 80 columns, and
// that it has one line per row if stdout is not a terminal. It sets the environment of the test.
func CheckFit(t *testing.T, tables map[string]table.Table) {
	t.Helper()
	for name, tab := range tables {
		for i := range 3 {
			row := make([]string, len(tab.Header))
			for c := range row {
				row[c] = fmt.Sprintf("avx512/int8/q4_K/14x32/ku32/load/vnni/pf16384 slice 132x%dxall, PUs "+
					"0-23,48-71", i)
				if slices.Contains(tab.Numbers, c) {
					row[c] = fmt.Sprintf("1280%d ± 1%d60", i, c)
				}
			}
			tab.Rows = append(tab.Rows, row)
		}
		print := func(columns string) string {
			t.Setenv("COLUMNS", columns)
			var out bytes.Buffer
			if err := show.Table(&out, tab.Header, tab.Rows, tab.Numbers...); err != nil {
				t.Fatal(err)
			}
			return out.String()
		}
		if text := print("80"); widest(text) > 80 {
			t.Errorf("%s: %d columns\n%s", name, widest(text), text)
		}
		if text := print(""); strings.Count(text, "\n") != 4 {
			t.Errorf("%s: not a line a row where stdout is no terminal\n%s", name, text)
		}
	}
}

// widest returns the width of the longest line in columns.
func widest(text string) (largest int) {
	for line := range strings.Lines(text) {
		largest = max(largest, twwidth.Width(strings.TrimRight(line, "\n")))
	}
	return largest
}
