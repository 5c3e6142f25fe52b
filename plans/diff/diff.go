// Package diff compares plans and models by structure.
package diff

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"sandwich/plans"
	"sandwich/runtime/phase"
)

// Change is one difference between two plans. Plans are compared by structure, not as text.
type Change struct {
	Path  string `json:"path"`  // service.decode_pus, decode 768x768:q8_0 m 1-4
	Group string `json:"group"` // first part of Path: service, decode 768x768:q8_0
	Item  string `json:"item"`  // rest of Path: decode_pus, m 1-4
	Old   string `json:"old"`   // "" if only the new plan has the item
	New   string `json:"new"`   // "" if only the old plan has the item
}

// Plans returns the changes from plan a to plan b in the order of plan.yaml. The result is empty
// exactly if the digests are equal.
func Plans(a, b *plans.Plan) []Change {
	d := &differ{}
	d.plan(a, b)
	d.model(&a.Model, &b.Model)
	d.service(a.Service(), b.Service())
	d.placement(a, b)
	d.classes(a.Classes, b.Classes)
	d.weights(a.Weights, b.Weights)
	d.phase(phase.Prefill.String(), &a.Prefill, &b.Prefill)
	d.phase(phase.Decode.String(), &a.Decode, &b.Decode)
	if len(d.changes) == 0 && a.Digest() != b.Digest() {
		d.compare("plan", "content", a.Digest(), b.Digest())
	}
	return d.changes
}

// differ collects changes.
type differ struct{ changes []Change }

// compare adds a change if x and y differ.
func (d *differ) compare(group, item, x, y string) {
	if x == y {
		return
	}
	path := group + "." + item
	switch {
	case group == "plan":
		path = item
	case group == "weights" || strings.HasPrefix(item, "m "):
		path = group + " " + item
	}
	d.changes = append(d.changes, Change{path, group, item, x, y})
}

// plan compares the top-level fields.
func (d *differ) plan(a, b *plans.Plan) {
	d.compare("plan", "name", a.Name, b.Name)
	d.compare("plan", "fingerprint", a.Fingerprint, b.Fingerprint)
	d.compare("plan", "exact", strconv.FormatBool(a.Exact()), strconv.FormatBool(b.Exact()))
	d.compare("plan", "tuned", strconv.FormatBool(a.Tuned), strconv.FormatBool(b.Tuned))
	d.compare("plan", "kv", a.KV.String(), b.KV.String())
	d.compare("plan", "attention", a.Attention.String(), b.Attention.String())
	d.compare("plan", "seq_max", strconv.Itoa(a.SeqMax), strconv.Itoa(b.SeqMax))
	d.compare("plan", "batch_max", strconv.Itoa(a.BatchMax), strconv.Itoa(b.BatchMax))
	d.compare("plan", "chunk", strconv.Itoa(a.Chunk), strconv.Itoa(b.Chunk))
}

// model compares the model shapes.
func (d *differ) model(a, b *plans.ModelShape) {
	d.compare("model", "name", a.Name, b.Name)
	if a.Digest() == b.Digest() {
		return
	}
	for _, x := range modelDifferences(a, b) {
		d.compare("model", x.what, x.old, x.new)
	}
}

// service compares the service configurations.
func (d *differ) service(a, b plans.ServiceConfig) {
	d.compare("service", "tp", strconv.Itoa(a.TP()), strconv.Itoa(b.TP()))
	d.compare("service", "prefill_pus", a.PrefillPUs.String(), b.PrefillPUs.String())
	d.compare("service", "decode_pus", a.DecodePUs.String(), b.DecodePUs.String())
	for i := range max(len(a.Ranks), len(b.Ranks)) {
		d.compare("service", fmt.Sprintf("ranks[%d]", i), rankText(a.Ranks, i), rankText(b.Ranks, i))
	}
}

// placement compares the devices of the phases.
func (d *differ) placement(a, b *plans.Plan) {
	for _, p := range phase.All {
		d.compare("placement", p.String(), a.PlaceText(p), b.PlaceText(p))
	}
}

// rankText describes rank i, or returns "" if there is none.
func rankText(ranks []plans.Rank, i int) string {
	if i >= len(ranks) {
		return ""
	}
	return fmt.Sprintf("PUs %s on node %d", ranks[i].PUs, ranks[i].NUMANode)
}

// classes compares worker classes by name.
func (d *differ) classes(a, b []plans.Class) {
	text := func(list []plans.Class, name string) string {
		for _, c := range list {
			if c.Name == name {
				return c.String()
			}
		}
		return ""
	}
	var names []string
	for _, c := range slices.Concat(a, b) {
		if !slices.Contains(names, c.Name) {
			names = append(names, c.Name)
			d.compare("classes", c.Name, text(a, c.Name), text(b, c.Name))
		}
	}
}

// weights compares the compute paths of the weights.
func (d *differ) weights(a, b []plans.WeightPlan) {
	text := func(list []plans.WeightPlan, k plans.WeightKey) string {
		for _, w := range list {
			if w.WeightKey == k {
				return w.Compute.String() + "/" + plans.ChainOf(w.Compute).String()
			}
		}
		return ""
	}
	for _, k := range keysOf(a, b, func(w plans.WeightPlan) plans.WeightKey { return w.WeightKey }) {
		d.compare("weights", k.String(), text(a, k), text(b, k))
	}
}

// keysOf returns the sorted union of the keys of two lists.
func keysOf[T any](a, b []T, key func(T) plans.WeightKey) []plans.WeightKey {
	var keys []plans.WeightKey
	for _, x := range slices.Concat(a, b) {
		keys = append(keys, key(x))
	}
	slices.SortFunc(keys, plans.WeightKey.Compare)
	return slices.Compact(keys)
}

// phase compares the schedule tables of a phase; its PUs belong to the service configuration. It
// compares the schedules of all ranges of M of both plans, so splitting a rule in two is not a
// change.
func (d *differ) phase(name string, a, b *plans.Phase) {
	find := func(p *plans.Phase, class string, k plans.WeightKey) *plans.Table {
		if t, ok := p.TableOf(class, k); ok {
			return t
		}
		return &plans.Table{}
	}
	var classes []string
	for _, t := range slices.Concat(a.Tables, b.Tables) {
		if !slices.Contains(classes, t.Class) {
			classes = append(classes, t.Class)
		}
	}
	for _, class := range classes {
		of := name
		if class != "" {
			of += " (" + class + ")"
		}
		for _, k := range keysOf(a.Tables, b.Tables, func(t plans.Table) plans.WeightKey { return t.WeightKey }) {
			d.table(of+" "+k.String(), find(a, class, k), find(b, class, k))
		}
	}
}

// table compares two schedule tables of a weight.
func (d *differ) table(group string, a, b *plans.Table) {
	starts := []int{1}
	for _, r := range slices.Concat(a.Rules, b.Rules) {
		starts = append(starts, r.MLo)
	}
	slices.Sort(starts)
	starts = slices.Compact(starts)
	var open *Change // change of the previous range, extended while the schedules stay the same
	from := 0
	flush := func(to int) {
		if open != nil {
			r := plans.Rule{MLo: from, MHi: to}
			d.compare(group, "m "+r.Span(), open.Old, open.New)
			open = nil
		}
	}
	for _, m := range starts {
		x, y := scheduleText(a, m), scheduleText(b, m)
		if open != nil && open.Old == x && open.New == y {
			continue
		}
		flush(m - 1)
		if x != y {
			open, from = &Change{Old: x, New: y}, m
		}
	}
	flush(0)
}

// scheduleText returns the schedule of a table for m rows, or "".
func scheduleText(t *plans.Table, m int) string {
	if s, ok := t.Lookup(m); ok {
		return s.String()
	}
	return ""
}
