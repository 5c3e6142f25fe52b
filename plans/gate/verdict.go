package gate

import "strconv"

// Exit codes of `sandwich plan check` (DESIGN: command line contract).
const (
	ExitFine      = 0
	ExitFailed    = 1 // regressed, or an invariant is violated
	ExitUnusable  = 2
	ExitUndecided = 3 // or the runner is unfit
	ExitForeign   = 4 // --measure on another host
)

// Check is one thing about the structure of the candidate, and whether it holds.
type Check struct {
	Name string `json:"check"`
	OK   bool   `json:"ok"`
	Text string `json:"text,omitempty"`
}

// Verdict is the whole answer.
type Verdict struct {
	Result string       `json:"result"` // fine, regressed, failed, undecidable
	Exit   int          `json:"exit"`
	Text   string       `json:"text"`
	Checks []Check      `json:"checks"`
	Rows   []RowVerdict `json:"rows"`
}

// Decide sums up. A violated check and a proven regression fail, whatever else could not be
// measured; then a row that is unmeasurable or undecided and not waived leaves all undecided. Rows
// that are missing altogether leave it undecided too, unless the plans are equal.
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
		v.Result, v.Exit, v.Text = "failed", ExitFailed, count(broken, "check")+" of the structure failed"
		if slower > 0 {
			v.Text += ", and " + count(slower, "row") + " regressed"
		}
	case slower > 0:
		v.Result, v.Exit, v.Text = "regressed", ExitFailed, count(slower, "row")+" regressed"
	case open > 0:
		v.Result, v.Exit, v.Text = "undecidable", ExitUndecided, count(open,
			"row")+" could not be decided on this runner"
	case len(rows) == 0 && !equal:
		v.Result, v.Exit, v.Text = "undecidable", ExitUndecided,
			"the plans differ and share no samples to compare; use --measure on the host they are for"
	case len(rows) == 0:
		v.Result, v.Text = "fine", "the plans are equal"
	default:
		v.Result, v.Text = "fine", "no row regressed"
	}
	return v
}

func count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return strconv.Itoa(n) + " " + what + "s"
}
