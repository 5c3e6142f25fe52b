package llm

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"sandwich/cmd/sandwich/internal/show"
	"sandwich/tuner/measure/llm"
)

// printCounters prints a line for each figure and a column for each test. What is not available has
// its reason below the table.
func printCounters(w io.Writer, rows []llm.Row) error {
	if len(rows) == 0 || rows[0].Counters == nil {
		return nil
	}
	header := []string{"figure", "what it is"}
	var right []int
	for i := range rows {
		label := testLabel(&rows[i])
		if rows[i].Tuned {
			label += " (" + rows[i].Plan + ")"
		}
		header, right = append(header, label), append(right, i+2)
	}
	var table [][]string
	lacking := map[string][]string{} // figures by reason
	var reasons []string
	for i, f := range rows[0].Counters {
		line := []string{f.Name, f.What}
		for _, r := range rows {
			c := r.Counters[i]
			if c.Value != nil {
				line = append(line, fmt.Sprintf("%.4g", *c.Value))
				continue
			}
			line = append(line, "not available here")
			if lacking[c.Why] == nil {
				reasons = append(reasons, c.Why)
			}
			if !slices.Contains(lacking[c.Why], c.Name) {
				lacking[c.Why] = append(lacking[c.Why], c.Name)
			}
		}
		table = append(table, line)
	}
	fmt.Fprintln(w, "\ncounted on the workers' threads:")
	if err := show.Table(w, header, table, right...); err != nil {
		return err
	}
	for _, r := range reasons {
		fmt.Fprintf(w, "not available here: %s: %s\n", strings.Join(lacking[r], ", "), r)
	}
	return nil
}
