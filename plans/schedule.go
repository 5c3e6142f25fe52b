package plans

import (
	"fmt"
	"strconv"
	"strings"

	"sandwich/microkernel"
	"sandwich/profiles"
)

// Schedule specifies how one product C[M,N] = A[M,K] W[N,K]^T runs (Sandwich section 4): the
// micro-kernel, the slice that a thread computes at a time, and the assignment of slices to
// threads.
type Schedule struct {
	Kernel microkernel.Spec `json:"kernel"` // register tile MR x NR with its ISA, compute path and weight type
	BM     int              `json:"bm"`     // slice rows, a multiple of MR; the last slice may be shorter
	BN     int              `json:"bn"`     // slice columns, a multiple of NR
	// slice depth, a multiple of 16 and of the quantization block; 0: all of K
	BK int `json:"bk"`
	// polymerization scheme: ways over M and N, whose product is the number of active threads
	WaysM int `json:"ways_m"`
	WaysN int `json:"ways_n"` // both 0: threads take slices dynamically
	// copy the A slice to contiguous rows, once for its BN columns
	Pack bool `json:"pack"`
	// dequantize the B slice into a float32 panel once; Kernel.B is then f32
	Widen bool `json:"widen"`
}

// wholeK is the text for BK = 0.
const wholeK = "all"

// ScheduleText is the one-line form of a schedule in plan.yaml.
type ScheduleText struct {
	Kernel string `yaml:"kernel"`
	Slice  string `yaml:"slice"`          // BMxBNxBK, with "all" for the whole of K
	Ways   string `yaml:"ways,omitempty"` // WaysM x WaysN, and x1 for k; absent: dynamic
	Pack   bool   `yaml:"pack,omitempty"`
}

// Text returns the one-line form of s. It does not contain Widen.
func (s Schedule) Text() ScheduleText {
	depth := wholeK
	if s.BK != 0 {
		depth = strconv.Itoa(s.BK)
	}
	y := ScheduleText{Kernel: s.Kernel.String(), Slice: fmt.Sprintf("%dx%dx%s", s.BM, s.BN, depth), Pack: s.Pack}
	if s.WaysM != 0 || s.WaysN != 0 {
		y.Ways = fmt.Sprintf("%dx%d", s.WaysM, s.WaysN)
	}
	return y
}

// Schedule parses y. It does not set Widen, and does not check the schedule.
func (y ScheduleText) Schedule() (Schedule, error) {
	spec, err := microkernel.ParseSpec(y.Kernel)
	if err != nil {
		return Schedule{}, err
	}
	depth := 0
	text, whole := strings.CutSuffix(y.Slice, "x"+wholeK)
	n := 3
	if whole {
		n = 2
	}
	slice, err := dims("slice", text, n)
	if err != nil {
		return Schedule{}, err
	}
	if !whole {
		if depth = slice[2]; depth == 0 {
			return Schedule{}, fmt.Errorf("slice %.40q has bk 0; the whole of K is written %q", y.Slice, wholeK)
		}
	}
	ways := []int{0, 0}
	if y.Ways != "" {
		if ways, err = parseWays(y.Ways); err != nil {
			return Schedule{}, err
		}
	}
	return Schedule{Kernel: spec, BM: slice[0], BN: slice[1], BK: depth, WaysM: ways[0], WaysN: ways[1], Pack: y.Pack},
		nil
}

// parseWays parses the ways over M and N, and over k if given.
func parseWays(text string) ([]int, error) {
	if strings.Count(text, "x") < 2 {
		return dims("ways", text, 2)
	}
	ways, err := dims("ways", text, 3)
	if err != nil {
		return nil, err
	}
	return ways[:2], checkWaysK(text, ways[2])
}

// String returns the schedule as tables and the evidence show it.
func (s Schedule) String() string {
	y := s.Text()
	text := y.Kernel + " slice " + y.Slice
	if y.Ways != "" {
		text += " ways " + y.Ways
	}
	if y.Pack {
		text += " packed"
	}
	if s.Widen {
		text += " widened"
	}
	return text
}

// ParseSchedule parses the result of String, for journals of trials. It does not check whether the
// schedule is legal for a matrix.
func ParseSchedule(text string) (Schedule, error) {
	words := strings.Fields(text)
	if len(words) < 3 || words[1] != "slice" {
		return Schedule{}, fmt.Errorf("schedule %.80q does not have the form KERNEL slice BMxBNxBK", text)
	}
	y, widen := ScheduleText{Kernel: words[0], Slice: words[2]}, false
	for rest := words[3:]; len(rest) > 0; rest = rest[1:] {
		switch {
		case rest[0] == "ways" && len(rest) > 1:
			y.Ways, rest = rest[1], rest[1:]
		case rest[0] == "packed":
			y.Pack = true
		case rest[0] == "widened":
			widen = true
		default:
			return Schedule{}, fmt.Errorf("schedule %.80q: unknown word %.20q; use ways, packed or widened", text,
				rest[0])
		}
	}
	s, err := y.Schedule()
	s.Widen = widen
	return s, err
}

// Rule applies a schedule to the rows MLo <= M <= MHi. MHi 0 means no upper limit.
type Rule struct {
	MLo      int      `json:"m_lo"`
	MHi      int      `json:"m_hi"`
	Schedule Schedule `json:"schedule"`
}

// RuleText is the one-line form of a rule in plan.yaml.
type RuleText struct {
	M            string `yaml:"m"` // "5", "1-4", "512-"
	ScheduleText `yaml:",inline"`
}

// MarshalYAML writes a rule on one line.
func (r Rule) MarshalYAML() (any, error) {
	return profiles.FlowYAML(RuleText{M: r.Span(), ScheduleText: r.Schedule.Text()})
}

// UnmarshalYAML reads what MarshalYAML writes.
func (r *Rule) UnmarshalYAML(unmarshal func(any) error) error {
	var y RuleText
	err := unmarshal(&y)
	if err != nil {
		return err
	}
	*r, err = y.Rule()
	return err
}

// Rule parses y; see ScheduleText.Schedule.
func (y RuleText) Rule() (r Rule, err error) {
	if r.Schedule, err = y.Schedule(); err != nil {
		return r, fmt.Errorf("rule for m %.20q: %w", y.M, err)
	}
	lo, hi, isRange := strings.Cut(y.M, "-")
	if r.MLo, err = strconv.Atoi(lo); err != nil {
		return r, fmt.Errorf("rule for m %.20q: %.20q is not a number", y.M, lo)
	}
	switch {
	case !isRange:
		r.MHi = r.MLo
	case hi == "":
		r.MHi = 0
	default:
		if r.MHi, err = strconv.Atoi(hi); err != nil {
			return r, fmt.Errorf("rule for m %.20q: %.20q is not a number", y.M, hi)
		}
	}
	return r, nil
}

// Span returns the range of M as text: "5", "1-4", or "512-".
func (r Rule) Span() string {
	switch r.MHi {
	case r.MLo:
		return strconv.Itoa(r.MLo)
	case 0:
		return fmt.Sprintf("%d-", r.MLo)
	}
	return fmt.Sprintf("%d-%d", r.MLo, r.MHi)
}

// Table holds the rules of one weight shape for one class of workers in ascending M.
type Table struct {
	WeightKey
	Class string `json:"class,omitempty"` // "": the main class
	Rules []Rule `json:"rules"`
}

type tableDoc struct {
	Weight KeyText `yaml:"weight"`
	Class  *string `yaml:"class,omitempty"` // absent: the main class
	Rules  []Rule  `yaml:"rules"`
}

// MarshalYAML writes one rule per line.
func (t Table) MarshalYAML() (any, error) {
	d := tableDoc{Weight: KeyText(t.WeightKey), Rules: t.Rules}
	if t.Class != "" {
		d.Class = &t.Class
	}
	return d, nil
}

// UnmarshalYAML reads what MarshalYAML writes.
func (t *Table) UnmarshalYAML(unmarshal func(any) error) error {
	var d tableDoc
	if err := unmarshal(&d); err != nil {
		return err
	}
	*t = Table{WeightKey: WeightKey(d.Weight), Rules: d.Rules}
	if d.Class != nil {
		if err := checkClass(*d.Class); err != nil {
			return fmt.Errorf("table %s: %w", t.WeightKey, err)
		}
		t.Class = *d.Class
	}
	for i := range t.Rules {
		s := &t.Rules[i].Schedule
		s.Widen = s.widens(t.WeightKey)
	}
	return nil
}

// widens reports whether the kernel reads float32 and the weight has another type. The file does
// not store it.
func (s Schedule) widens(k WeightKey) bool {
	return s.Kernel.B == microkernel.F32 && k.Type != microkernel.F32.String()
}

// Lookup returns the schedule for m rows: that of the rule that covers m, else of the nearest rule;
// false without rules.
func (t *Table) Lookup(m int) (Schedule, bool) {
	if len(t.Rules) == 0 {
		return Schedule{}, false
	}
	best, dist := 0, distance(&t.Rules[0], m)
	for i := 1; i < len(t.Rules) && dist > 0; i++ {
		if d := distance(&t.Rules[i], m); d < dist {
			best, dist = i, d
		}
	}
	return t.Rules[best].Schedule, true
}

// distance returns how far m is outside the rule, 0 if inside.
func distance(r *Rule, m int) int {
	switch {
	case m < r.MLo:
		return r.MLo - m
	case r.MHi != 0 && m > r.MHi:
		return m - r.MHi
	}
	return 0
}

// Unpackings returns how often a product of m rows unpacks each weight: once per row tile, or once
// per row slice if the slice is widened.
func (s Schedule) Unpackings(m int) int {
	high := s.Kernel.MR
	if s.Widen {
		high = s.BM
	}
	return (m + high - 1) / max(1, high)
}
