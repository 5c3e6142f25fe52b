package hostkey

import (
	"fmt"
	"slices"
	"strings"

	"sandwich/internal/message"
)

// Difference is a field in which a plan's key and that of a process differ.
type Difference struct {
	Field string `json:"field"`
	Plan  string `json:"plan"`
	Here  string `json:"here"`
}

// String describes the difference in words.
func (d Difference) String() string {
	return fmt.Sprintf("%s: %s in the plan, %s here", d.Field, d.Plan, d.Here)
}

// field compares one field. show returns its value for messages; nil shows the value itself.
type field struct {
	name  string
	value func(Key) string
	show  func(plan, here Key) (string, string)
}

// fields lists the fields in the order of selection.
var fields = []field{
	{"architecture", func(k Key) string { return k.Arch }, nil},
	{"CPU model", func(k Key) string { return k.CPUModel }, nil},
	{"features", func(k Key) string { return k.Features }, showFeatures},
	{"topology", func(k Key) string { return k.Topology }, showTopology},
	{"model", func(k Key) string { return k.Model }, showModel},
	{"available CPUs", func(k Key) string { return k.Subtree }, showSubtree},
	{"CPU quota", func(k Key) string { return fmt.Sprint(k.Quota) }, showQuota},
}

// Differences returns the fields in which the key of a plan differs from that of a process, in the
// order of selection. If there are none, the plan fits: its PUs can be renumbered.
func Differences(plan, here Key) (out []Difference) {
	for _, f := range fields {
		if f.value(plan) == f.value(here) {
			continue
		}
		was, is := f.value(plan), f.value(here)
		if f.show != nil {
			was, is = f.show(plan, here)
		}
		was, is = message.OrNone(message.Clip(was, 80)), message.OrNone(message.Clip(is, 80))
		out = append(out, Difference{f.name, was, is})
	}
	return out
}

// rankOf returns the number of fields, in the order of selection, up to the first one that differs.
// Plans with a higher rank are nearer.
func rankOf(plan, here Key) int {
	at := slices.IndexFunc(fields, func(f field) bool { return f.value(plan) != f.value(here) })
	if at < 0 {
		return len(fields)
	}
	return at
}

// showFeatures returns the features that only one of the two has.
func showFeatures(plan, here Key) (string, string) {
	only := func(a, b string) string {
		have := strings.Fields(b)
		return strings.Join(slices.DeleteFunc(strings.Fields(a), func(s string) bool {
			return slices.Contains(have, s)
		}), " ")
	}
	return only(plan.Features, here.Features), only(here.Features, plan.Features)
}

func showTopology(plan, here Key) (string, string) {
	show := func(k Key) string { return fmt.Sprintf("%s (tree %.8s)", message.Plural(k.PUs, "PU"), k.Topology) }
	return show(plan), show(here)
}

func showModel(plan, here Key) (string, string) {
	show := func(k Key) string { return fmt.Sprintf("%q (shape %.8s)", message.Clip(k.Name, 50), short(k.Model)) }
	return show(plan), show(here)
}

func showSubtree(plan, here Key) (string, string) {
	show := func(k Key) string { return fmt.Sprintf("%s (subtree %.8s)", message.OrNone(k.Allowed), k.Subtree) }
	return show(plan), show(here)
}

func showQuota(plan, here Key) (string, string) {
	show := func(k Key) string {
		if k.Quota == 0 {
			return "none"
		}
		return message.Plural(k.Quota, "PU")
	}
	return show(plan), show(here)
}
