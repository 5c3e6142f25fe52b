// Package review describes the differences of two plans for the reviewer of a change: plan
// diff prints it.
package review

import (
	"fmt"
	"slices"
	"strings"

	"sandwich/internal/num"
	"sandwich/plans"
	"sandwich/plans/bundle"
	"sandwich/plans/check"
	"sandwich/plans/diff"
	"sandwich/plans/gate"
	"sandwich/plans/summary"
)

// Review is a diff for readers; Changes has all changes of the plan. Its JSON form is stable.
type Review struct {
	Changes   []diff.Change `json:"changes"`
	Groups    []Group       `json:"groups"`
	Unchanged []string      `json:"unchanged"`
}

// Group holds the changes of one part of the plan.
type Group struct {
	Name  string `json:"group"`
	Lines []Line `json:"lines"`
}

// Line is one change. A side is empty if its plan lacks the item.
type Line struct {
	Item string `json:"item"`
	Old  string `json:"old"`
	New  string `json:"new"`
}

// Count returns the number of lines, 0 for equal plans.
func (r *Review) Count() (n int) {
	for _, g := range r.Groups {
		n += len(g.Lines)
	}
	return n
}

func (r *Review) add(name string, lines ...Line) {
	if len(lines) > 0 {
		r.Groups = append(r.Groups, Group{name, lines})
	}
}

// UnchangedText lists what did not change, with counts.
func (r *Review) UnchangedText() string { return "unchanged: " + strings.Join(r.Unchanged, ", ") }

// same records the number of unchanged items.
func (r *Review) same(unchanged, all int, what string) {
	switch {
	case all == 0 || unchanged == 0:
	case unchanged == all:
		r.Unchanged = append(r.Unchanged, "all "+what)
	default:
		r.Unchanged = append(r.Unchanged, fmt.Sprintf("%d of %d %s", unchanged, all, what))
	}
}

// Of compares two bundles; all includes every change of a schedule.
func Of(a, b *bundle.Bundle, all bool) *Review {
	r := &Review{Changes: diff.Plans(&a.Plan, &b.Plan), Groups: []Group{}, Unchanged: []string{}}
	if r.Changes == nil {
		r.Changes = []diff.Change{}
	}
	by := map[string][]diff.Change{}
	kernels := [2][]diff.Change{}
	tables := map[string]bool{}
	for _, c := range r.Changes {
		switch {
		case strings.HasPrefix(c.Group, "prefill "):
			kernels[0], tables[c.Group] = append(kernels[0], c), true
		case strings.HasPrefix(c.Group, "decode "):
			kernels[1], tables[c.Group] = append(kernels[1], c), true
		default:
			by[c.Group] = append(by[c.Group], c)
		}
	}
	r.service(a, b, by)
	r.add("kernels, prefill", kernelLines(kernels[0], all)...)
	r.add("kernels, decode", kernelLines(kernels[1], all)...)
	n := tablesOf(&a.Plan.Prefill, &b.Plan.Prefill) + tablesOf(&a.Plan.Decode, &b.Plan.Decode)
	r.same(n-len(tables), n, "kernel tables")
	r.expectations(a, b)
	r.add("model", plainLines(by["model"])...)
	if len(by["model"]) == 0 {
		r.Unchanged = append(r.Unchanged, "the model")
	}
	r.host(a, b)
	return r
}

// tablesOf returns the number of distinct tables of both sides.
func tablesOf(a, b *plans.Phase) int {
	n := len(a.Tables)
	for _, t := range b.Tables {
		if _, ok := a.TableOf(t.Class, t.WeightKey); !ok {
			n++
		}
	}
	return n
}

// planSettings is the number of settings of a plan that are compared in addition to its service
// configuration: those in the group "plan" of package diff, without the fingerprint.
const planSettings = 8

func (r *Review) service(a, b *bundle.Bundle, by map[string][]diff.Change) {
	var lines []Line
	for _, c := range by["service"] {
		l := Line{strings.ReplaceAll(c.Item, "_pus", " PUs"), c.Old, c.New}
		switch c.Item {
		case "prefill_pus":
			l.Old, l.New = summary.DescribePUs(a, a.Plan.Prefill.PUs), summary.DescribePUs(b, b.Plan.Prefill.PUs)
		case "decode_pus":
			l.Old, l.New = summary.DescribePUs(a, a.Plan.Decode.PUs), summary.DescribePUs(b, b.Plan.Decode.PUs)
		case "tp":
			l.Item = "ranks"
		}
		lines = append(lines, l)
	}
	r.add("service configuration", lines...)
	if len(lines) == 0 {
		r.Unchanged = append(r.Unchanged, "the service configuration")
	}
	var settings []Line
	for _, c := range by["plan"] {
		if c.Item != "fingerprint" { // which the host's lines explain
			settings = append(settings, Line{strings.ReplaceAll(c.Item, "_", " "), c.Old, c.New})
		}
	}
	r.add("settings", settings...)
	r.same(planSettings-len(settings), planSettings, "settings")
	r.add("devices", plainLines(by["placement"])...)
	r.add("classes of workers", plainLines(by["classes"])...)
	r.add("arithmetic of weights", plainLines(by["weights"])...)
}

func plainLines(changes []diff.Change) (out []Line) {
	for _, c := range changes {
		out = append(out, Line{c.Item, c.Old, c.New})
	}
	return out
}

// maxRanges is the number of ranges of M of one table that are listed individually, unless all are
// requested.
const maxRanges = 3

// kernelLines returns one line per distinct change: rows that changed alike share a line, and so do
// weights, which are named by the first of them. A table with changes in many ranges is described
// by its kernels, and a table of only one plan takes one line.
func kernelLines(changes []diff.Change, all bool) (out []Line) {
	var names []string
	lines := map[string][]Line{} // by weight
	for len(changes) > 0 {
		n := 1
		for n < len(changes) && changes[n].Group == changes[0].Group {
			n++
		}
		_, weight, _ := strings.Cut(changes[0].Group, " ")
		names = append(names, weight)
		lines[weight] = tableLines(changes[:n], all)
		changes = changes[n:]
	}
	for len(names) > 0 {
		name, first := names[0], lines[names[0]]
		alike := 0
		names = slices.DeleteFunc(names[1:], func(other string) bool {
			same := slices.Equal(lines[other], first)
			if same {
				alike++
			}
			return same
		})
		weight := name
		if alike > 0 {
			weight += fmt.Sprintf(" +%d", alike)
		}
		for _, l := range first {
			out = append(out, Line{weightItem(weight, l.Item), l.Old, l.New})
		}
	}
	return out
}

// tableLines returns the changes of one table.
func tableLines(changes []diff.Change, all bool) (out []Line) {
	if c := changes[0]; c.Old == "" || c.New == "" {
		return []Line{{"", present(c.Old), present(c.New)}}
	}
	if len(changes) > maxRanges && !all {
		var old, now []string
		for _, c := range changes {
			x, y := scheduleFields(c.Old), scheduleFields(c.New)
			old, now = addKernel(old, x[0]), addKernel(now, y[0])
		}
		item := fmt.Sprintf("%d ranges of M", len(changes))
		if slices.Equal(old, now) {
			return []Line{{item, "other slices", "of the same kernels"}}
		}
		return []Line{{item, strings.Join(old, " "), strings.Join(now, " ")}}
	}
	for _, c := range changes {
		x, y := scheduleDifference(c.Old, c.New)
		out = append(out, Line{strings.Replace(c.Item, "m ", "M ", 1), x, y})
	}
	return out
}

// addKernel adds a micro-kernel's tile to a list that begins with the instruction set.
func addKernel(list []string, kernel string) []string {
	parts := strings.Split(kernel, "/")
	words := []string{parts[0]}
	if len(parts) > 3 {
		words = append(words, parts[3])
	}
	for _, w := range words {
		if !slices.Contains(list, w) {
			list = append(list, w)
		}
	}
	return list
}

func present(schedule string) string {
	if schedule == "" {
		return ""
	}
	return "a table"
}

// scheduleDifference removes the common parts of two schedule texts.
func scheduleDifference(a, b string) (string, string) {
	x, y := scheduleFields(a), scheduleFields(b)
	var left, right []string
	for k := range x {
		if x[k] != y[k] {
			left, right = append(left, x[k]), append(right, y[k])
		}
	}
	left[0], right[0] = lackingParts(left[0], right[0]), lackingParts(right[0], left[0])
	return strings.Join(left, ", "), strings.Join(right, ", ")
}

// lackingParts returns the parts of a kernel's name that another name lacks.
func lackingParts(a, b string) string {
	var out []string
	other := strings.Split(b, "/")
	for _, part := range strings.Split(a, "/") {
		if !slices.Contains(other, part) {
			out = append(out, part)
		}
	}
	if len(out) == 0 {
		return "plain"
	}
	return strings.Join(out, "/")
}

// scheduleFields returns the kernel, slice, ways and copies of a schedule text.
func scheduleFields(text string) [4]string {
	words := strings.Fields(text)
	out := [4]string{words[0], "", "dynamic", "not copied"}
	for i := 1; i < len(words); i++ {
		switch words[i] {
		case "slice", "ways":
			k := slices.Index([]string{"", "slice", "ways"}, words[i])
			out[k] = strings.TrimPrefix(strings.Join(words[i:min(i+2, len(words))], " "), "slice ")
			i++
		default:
			out[3] = strings.TrimPrefix(out[3]+" "+words[i], "not copied ")
		}
	}
	return out
}

// expectations compares the measured speeds of both plans; differences within noise are ignored.
func (r *Review) expectations(a, b *bundle.Bundle) {
	rows := gate.Judge(gate.Recorded(a, b), gate.Options{Ceiling: gate.DefaultCeiling})
	var lines []Line
	for _, v := range rows {
		switch v.Finding {
		case gate.Regressed, gate.Improved, gate.HostChanged:
			lines = append(lines, Line{v.Name, fmt.Sprintf("%.1f %s", num.Median(v.Row.Baseline),
				v.Unit),
				fmt.Sprintf("%.1f %s (%+.1f %%)", num.Median(v.Row.Candidate), v.Unit,
					100*(v.Ratio.Median-1))})
		}
	}
	r.add("expectations", lines...)
	r.same(len(rows)-len(lines), len(rows), "expectations within noise")
}

func (r *Review) host(a, b *bundle.Bundle) {
	var lines []Line
	for _, k := range check.KeyChanges(&a.Host, &b.Host) {
		lines = append(lines, Line{strings.ReplaceAll(k.Key, "_", " "), k.Made, k.Here})
	}
	r.add("host", lines...)
	if len(lines) == 0 {
		r.Unchanged = append(r.Unchanged, "the host")
	}
}

// weightItem returns the name of a change of a weight's table.
func weightItem(weight, item string) string {
	if item == "" {
		return weight
	}
	return weight + ", " + item
}
