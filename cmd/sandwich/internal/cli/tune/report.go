package tune

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"sandwich/cmd/sandwich/internal/planreport"
	"sandwich/cmd/sandwich/internal/show"
	"sandwich/internal/message"
	"sandwich/plans/bundle"
	"sandwich/plans/evidence"
	"sandwich/plans/gate"
	"sandwich/plans/summary"
	"sandwich/tuner/finals"
)

// report prints the plan that was written to path, and the rerun.
func (f *Flags) report(ctx context.Context, w io.Writer, b *bundle.Bundle, path string) error {
	if f.svg != "" {
		if err := planreport.WritePhases(ctx, f.svg, b); err != nil {
			return err
		}
	}
	tale, err := planreport.NewStory(b)
	if err != nil {
		return err
	}
	if f.format == "json" {
		return show.JSON(w, struct {
			Path string `json:"path"`
			summary.Summary
			Story    *planreport.Story   `json:"story"`
			Rejected []evidence.Rejected `json:"rejected_candidates"`
			Rerun    *finals.Rerun       `json:"rerun,omitempty"`
		}{path, planreport.Summarize(b), tale, b.Evidence.Rejected, f.again})
	}
	if !f.explain {
		fmt.Fprintf(w, "%s: %s\n", path, summary.Headline(&b.Plan, b.State()))
		return errors.Join(planreport.Races(w, b), f.printRerun(w))
	}
	fmt.Fprintf(w, "%s: ", path)
	if err := tale.Print(w, b); err != nil {
		return err
	}
	if tale.Rejected > 0 {
		fmt.Fprintf(w, "\n`sandwich plan explain %s --rejected` lists the %d rejected candidates with reasons.\n",
			path, tale.Rejected)
	}
	return f.printRerun(w)
}

// rerunFindings maps the findings of a rerun to the words of its table.
var rerunFindings = map[gate.Finding]string{gate.Regressed: "faster than the plan", gate.Improved: "slower"}

// printRerun prints each arm compared with the plan, if there was a rerun.
func (f *Flags) printRerun(w io.Writer) error {
	r := f.again
	if r == nil {
		return nil
	}
	if len(r.Rows)+len(r.Same) == 0 {
		return show.Sentence(w, "\nThere was no rerun: "+r.Why+".")
	}
	fmt.Fprintf(w, "\nrerun, %s, interleaved:\n", message.Plural(r.Rounds, "round"))
	var rows [][]string
	var apart []string
	for i, v := range slices.Concat(r.Rows, r.Same) {
		finding := rerunFindings[v.Finding]
		over := fmt.Sprintf("%+.1f %%", 100*(1/v.Ratio.Median-1))
		if same := i >= len(r.Rows); same {
			if finding != "" {
				apart = append(apart, fmt.Sprintf("%s by %s in %s", v.Name, over, v.Phase))
			}
			finding = "equal to the plan"
		} else if finding == "" {
			finding = "no significant difference"
		}
		rows = append(rows, []string{v.Phase, v.Name, over,
			fmt.Sprintf("%+.1f to %+.1f %%", 100*(1/v.Ratio.High-1), 100*(1/v.Ratio.Low-1)),
			fmt.Sprintf("%.3f", v.P), finding})
	}
	if err := show.Table(w, []string{"phase", "arm", "over the plan", "95 %", "p", ""}, rows, 2, 3, 4); err != nil {
		return err
	}
	if len(apart) > 0 {
		if err := show.Sentence(w, "Arms that are equal to the plan differ from it: "+
			strings.Join(apart, " and ")+". Differences of this size are not significant here."); err != nil {
			return err
		}
	}
	if need := gate.RoundsFor(len(r.Rows)); r.Rounds < need {
		if err := show.Sentence(w, fmt.Sprintf("%s cannot show a difference among %s, however large it is; %d can.",
			message.Plural(r.Rounds, "round"), message.Plural(len(r.Rows), "comparison"), need)); err != nil {
			return err
		}
	}
	if r.Why != "" {
		return show.Sentence(w, fmt.Sprintf("The rerun of %d rounds is incomplete: %s.", f.Options.Race.Rerun, r.Why))
	}
	return nil
}

// beaten returns an error if an arm was faster than the plan in the rerun, or if the rerun is
// incomplete.
func (f *Flags) beaten(path string) error {
	switch r := f.again; {
	case r == nil:
		return nil
	case len(r.Beaten()) > 0:
		v := r.Beaten()[0]
		return fmt.Errorf("in the rerun %s is faster than %s in %s by %.1f %% (p %.3f); tune with a larger --budget",
			v.Name, path,
			v.Phase, 100*(1/v.Ratio.Median-1), v.P)
	case r.Why != "":
		return fmt.Errorf("%s was written, but its rerun is incomplete: %s", path, r.Why)
	}
	return nil
}
