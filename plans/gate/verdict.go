package gate

import "sandwich/internal/message"

// Exit codes of `sandwich plan check` (DESIGN: command line contract).
const (
	ExitFine      = 0
	ExitFailed    = 1 // regressed, or an invariant is violated
	ExitUnusable  = 2
	ExitUndecided = 3 // too few samples or too much noise
	ExitForeign   = 4 // --measure on a host that the plan is not for
)

// Check is the result of one structural check of the candidate.
type Check struct {
	Name string `json:"check"`
	OK   bool   `json:"ok"`
	Text string `json:"text,omitempty"`
}

// Verdict is the result of the gate.
type Verdict struct {
	Result string       `json:"result"` // fine, regressed, failed, undecidable
	Exit   int          `json:"exit"`
	Text   string       `json:"text"`
	Checks []Check      `json:"checks"`
	Rows   []RowVerdict `json:"rows"`
}

// Decide combines checks and rows into a verdict. A failed check or a significant regression fails.
// Otherwise a row that is unmeasurable or undecided without a waiver makes the verdict undecidable,
// and so does a comparison without rows unless the plans are equal.
func Decide(checks []Check, rows []RowVerdict, equal bool) Verdict {
	v := Verdict{Checks: checks, Rows: rows}
	broken, slower, open := 0, 0, 0
	for _, c := range checks {
		if !c.OK {
			broken++
		}
	}
	for _, r := range rows {
		switch {
		case r.Finding == Regressed:
			slower++
		case (r.Finding == Unmeasurable || r.Finding == Undecided) && r.Waived == "":
			open++
		}
	}
	switch {
	case broken > 0:
		v.Result, v.Exit, v.Text = "failed", ExitFailed, message.Plural(broken, "structural check")+" failed"
		if slower > 0 {
			v.Text += ", and " + message.Plural(slower, "row") + " regressed"
		}
	case slower > 0:
		v.Result, v.Exit, v.Text = "regressed", ExitFailed, message.Plural(slower, "row")+" regressed"
	case open > 0:
		v.Result, v.Exit, v.Text = "undecidable", ExitUndecided, message.Plural(open,
			"row")+" could not be decided on this runner"
	case len(rows) == 0 && !equal:
		v.Result, v.Exit, v.Text = "undecidable", ExitUndecided,
			"the plans differ and have no common samples; use --measure on the plans' host"
	case len(rows) == 0:
		v.Result, v.Text = "fine", "the plans are equal"
	default:
		v.Result, v.Text = "fine", "no row regressed"
	}
	return v
}
