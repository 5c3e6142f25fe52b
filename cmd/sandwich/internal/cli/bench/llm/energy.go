package llm

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"sandwich/cmd/sandwich/internal/show"
	"sandwich/tuner/measure/llm"
)

// joules formats the energy per token, "" if it is not known.
func joules(r *llm.Row) string {
	if r.JoulesPerToken == 0 {
		return ""
	}
	return fmt.Sprintf("%.4g", r.JoulesPerToken)
}

// printEnergy prints the energy per token of each test, or why it is not known and that of the
// sources that are readable. Rows without a meter have neither.
func printEnergy(w io.Writer, rows []llm.Row) error {
	var known []string
	sources, missing := "", ""
	for i := range rows {
		r := &rows[i]
		if r.NoEnergy != "" {
			missing = r.NoEnergy
		}
		if r.JoulesPerToken > 0 {
			known = append(known, fmt.Sprintf("%s (%s) %s", testLabel(r), r.Plan, joules(r)))
			sources = r.JoulesOf
		}
	}
	if len(known) > 0 {
		line := fmt.Sprintf("joules per token: %s; counters of %s", strings.Join(known, ", "), sources)
		if err := show.Sentence(w, show.Printable(line)); err != nil {
			return err
		}
	}
	if missing == "" {
		return nil
	}
	for i := range rows {
		r := &rows[i]
		if r.NoEnergy == "" {
			continue
		}
		for _, name := range slices.Sorted(maps.Keys(r.BySource)) {
			line := fmt.Sprintf("joules per token of %s alone: %s (%s) %.4g", name, testLabel(r), r.Plan,
				r.BySource[name])
			if err := show.Sentence(w, show.Printable(line)); err != nil {
				return err
			}
		}
	}
	return show.Sentence(w, "energy: not readable: "+show.Printable(missing))
}
