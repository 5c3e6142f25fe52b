package plan

import (
	"encoding/csv"
	"encoding/xml"
	"fmt"
	"io"
	"strconv"
	"strings"

	"sandwich/cmd/sandwich/internal/show"
	"sandwich/internal/message"
	"sandwich/plans/gate"
	"sandwich/tuner/measure/spread"
)

func (r *CheckReport) print(w io.Writer, format string) error {
	switch format {
	case "json":
		return show.JSON(w, r)
	case "junit":
		return r.printJUnit(w)
	case "markdown":
		return r.printMarkdown(w)
	case "csv":
		return r.printCSV(w)
	}
	return r.printText(w)
}

func (r *CheckReport) title() string {
	how := "samples recorded when each was tuned"
	if r.Mode == "measured" {
		how = fmt.Sprintf("measured interleaved in %s", message.Plural(r.Rounds, "round"))
	}
	if r.SelfTest {
		return fmt.Sprintf("self-test of %s against itself, slowed: %s", r.Baseline.Path, how)
	}
	return fmt.Sprintf("%s against %s: %s", r.Candidate.Path, r.Baseline.Path, how)
}

var checkColumns = []string{"row", "baseline", "candidate", "ratio", "95 %", "spread", "of ceiling", "finding"}

// checkCells returns the cells of a row of the table.
func checkCells(v *gate.RowVerdict) []string {
	ceiling := "-"
	base, candidate := spread.Summarize(v.Row.Baseline), spread.Summarize(v.Row.Candidate)
	if len(v.Row.Baseline) == 0 || len(v.Row.Candidate) == 0 {
		return []string{v.Name, "-", "-", "-", "-", "-", "-", string(v.Finding)}
	}
	if v.CandidateCeiling > 0 {
		ceiling = fmt.Sprintf("%.0f %%", 100*candidate.Median/v.CandidateCeiling)
	}
	return []string{v.Name, fmt.Sprintf("%.1f", base.Median), fmt.Sprintf("%.1f", candidate.Median),
		fmt.Sprintf("%.3f", v.Ratio.Median), fmt.Sprintf("%.3f..%.3f", v.Ratio.Low, v.Ratio.High), show.Share(v.Share),
		ceiling,
		string(v.Finding)}
}

func (r *CheckReport) printText(w io.Writer) error {
	if err := show.Sentence(w, r.title()); err != nil {
		return err
	}
	if len(r.Rows) > 0 {
		var rows [][]string
		for i := range r.Rows {
			rows = append(rows, checkCells(&r.Rows[i]))
		}
		fmt.Fprintln(w)
		if err := show.Table(w, checkColumns, rows, 1, 2, 3, 4, 5, 6); err != nil {
			return err
		}
	}
	fmt.Fprintln(w)
	for _, line := range r.remarks() {
		if err := show.Sentence(w, line); err != nil {
			return err
		}
	}
	return show.Sentence(w, strings.ToUpper(r.Result)+": "+r.Text)
}

// remarks returns the lines printed below the table.
func (r *CheckReport) remarks() (out []string) {
	for _, c := range r.Checks {
		if !c.OK {
			out = append(out, fmt.Sprintf("broken: %s: %s", c.Name, c.Text))
		}
	}
	for _, v := range r.Rows {
		if v.Text != "" {
			out = append(out, fmt.Sprintf("%s: %s: %s", v.Name, v.Finding, v.Text))
		}
	}
	for _, n := range r.Notes {
		out = append(out, "note: "+n)
	}
	return out
}

func (r *CheckReport) printMarkdown(w io.Writer) error {
	mark := map[int]string{gate.ExitFine: "passed", gate.ExitFailed: "FAILED", gate.ExitUndecided: "undecided"}[r.Exit]
	fmt.Fprintf(w, "### Plan check %s: %s\n\n%s\n\n", mark, show.Markdown(r.Text), show.Markdown(r.title()))
	if len(r.Rows) > 0 {
		fmt.Fprintf(w, "%s\n|%s\n", show.MarkdownRow(checkColumns), "---|---:|---:|---:|---:|---:|---:|---|")
		for i := range r.Rows {
			fmt.Fprintln(w, show.MarkdownRow(checkCells(&r.Rows[i])))
		}
		fmt.Fprintln(w)
	}
	for _, c := range r.Checks {
		box := "x"
		if !c.OK {
			box = " "
		}
		fmt.Fprintf(w, "- [%s] %s\n", box, show.Markdown(show.Join(": ", c.Name, c.Text)))
	}
	for _, line := range r.remarks() {
		if !strings.HasPrefix(line, "broken: ") {
			fmt.Fprintf(w, "- %s\n", show.Markdown(line))
		}
	}
	return nil
}

// The elements of JUnit's XML that CI systems read.
type (
	junitSuite struct {
		XMLName  xml.Name    `xml:"testsuite"`
		Name     string      `xml:"name,attr"`
		Tests    int         `xml:"tests,attr"`
		Failures int         `xml:"failures,attr"`
		Skipped  int         `xml:"skipped,attr"`
		Time     string      `xml:"time,attr"`
		Cases    []junitCase `xml:"testcase"`
	}
	junitCase struct {
		Class   string    `xml:"classname,attr"`
		Name    string    `xml:"name,attr"`
		Failure *junitWhy `xml:"failure"`
		Skipped *junitWhy `xml:"skipped"`
		Out     string    `xml:"system-out,omitempty"`
	}
	junitWhy struct {
		Message string `xml:"message,attr"`
	}
)

// printJUnit writes a case for each check and each row; an undecidable row is skipped.
func (r *CheckReport) printJUnit(w io.Writer) error {
	s := junitSuite{Name: "sandwich plan check", Time: strconv.FormatFloat(r.Seconds, 'f', 3, 64)}
	for _, c := range r.Checks {
		one := junitCase{Class: "structure", Name: c.Name}
		if !c.OK {
			one.Failure = &junitWhy{c.Text}
			s.Failures++
		}
		s.Cases = append(s.Cases, one)
	}
	for i := range r.Rows {
		v := &r.Rows[i]
		one := junitCase{Class: r.Mode + "." + v.Phase, Name: v.Name, Out: strings.Join(checkCells(v), "  ")}
		switch v.Finding {
		case gate.Regressed:
			if r.SelfTest {
				break
			}
			one.Failure = &junitWhy{v.Text}
			s.Failures++
		case gate.Unmeasurable, gate.Undecided:
			one.Skipped = &junitWhy{v.Text}
			s.Skipped++
		}
		s.Cases = append(s.Cases, one)
	}
	s.Tests = len(s.Cases)
	fmt.Fprint(w, xml.Header)
	enc := xml.NewEncoder(w)
	enc.Indent("", "  ")
	if err := enc.Encode(s); err != nil {
		return err
	}
	_, err := fmt.Fprintln(w)
	return err
}

// printCSV writes one line per row, for programs that detect changes over many runs.
func (r *CheckReport) printCSV(w io.Writer) error {
	out := csv.NewWriter(w)
	number := func(x float64) string { return strconv.FormatFloat(x, 'g', 6, 64) }
	lines := [][]string{{"baseline", "candidate", "mode", "row", "phase", "baseline_median", "candidate_median",
		"ratio",
		"low", "high", "p", "aa_noise", "baseline_ceiling", "candidate_ceiling", "rounds", "finding"}}
	for _, v := range r.Rows {
		base, candidate := spread.Summarize(v.Row.Baseline), spread.Summarize(v.Row.Candidate)
		if len(v.Row.Baseline) == 0 || len(v.Row.Candidate) == 0 {
			continue
		}
		lines = append(lines, []string{r.Baseline.Content, r.Candidate.Content, r.Mode, v.Name, v.Phase,
			number(base.Median), number(candidate.Median), number(v.Ratio.Median), number(v.Ratio.Low),
			number(v.Ratio.High), number(v.P), number(v.Share), number(v.BaselineCeiling), number(v.CandidateCeiling),
			strconv.Itoa(len(v.Row.Candidate)), string(v.Finding)})
	}
	return out.WriteAll(lines)
}
