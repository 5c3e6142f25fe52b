// Package describe formats a host profile: the machine as a tree or as tables, and its
// measurements. probe and run print it.
package describe

import (
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"sandwich/cmd/sandwich/internal/show"
	"sandwich/internal/message"
	"sandwich/profiles"
	"sandwich/runtime/mem"
	"sandwich/topotree"
	"sandwich/topotree/draw"
)

// drawingWidth is the width of text drawings in columns.
func drawingWidth() int {
	const limit = 110
	if n := show.Width(); n > 0 {
		return min(n, limit)
	}
	return limit
}

// Print writes the default output of probe: the machine, its tree with equal siblings folded into
// one line, and a summary of the measurements.
func Print(w io.Writer, p *profiles.Profile) error {
	Head(w, p)
	fmt.Fprintln(w)
	if err := draw.Text(w, p.Machine.Tree); err != nil {
		return err
	}
	printRemarks(w, p)
	ceilings := slices.DeleteFunc(slices.Clone(p.Ceilings), func(c profiles.Ceiling) bool { return c.PortMix() != nil })
	few := fewCounts(ceilings)
	if err := printCeilings(w, few); err != nil {
		return err
	}
	var more []string
	if left := len(ceilings) - len(few); left > 0 {
		more = append(more, fmt.Sprintf("%d with other numbers of PUs", left))
	}
	if left := len(p.Ceilings) - len(ceilings); left > 0 {
		more = append(more, fmt.Sprintf("%d of instructions by class", left))
	}
	if len(more) > 0 {
		fmt.Fprintf(w, " ... and %s; --format table shows all\n", strings.Join(more, ", "))
	}
	return printStructure(w, p)
}

// Head writes the name of the machine, its parts, and the PUs that may be used.
func Head(w io.Writer, p *profiles.Profile) {
	m, s := p.Machine, p.Machine.Summary()
	fmt.Fprintf(w, "%s (%s)\n", show.OrUnknown(p.Host.CPUModel), show.OrUnknown(p.Host.Arch))
	fmt.Fprintf(w, "  %s, %s, %s, %s\n", message.Plural(s.Packages, "package"),
		message.Plural(s.NUMANodes, "NUMA node"), message.Plural(s.Cores, "core"), message.Plural(s.PUs, "PU"))
	cores := p.CorePUs()
	line := fmt.Sprintf("  allowed PUs %s", message.OrNone(m.Allowed.Brief()))
	if q := p.QuotaPUs(); q > 0 {
		line += fmt.Sprintf(", CPU quota %.4g", m.QuotaCPUs)
	}
	if !m.Offline.IsEmpty() {
		line += ", offline " + m.Offline.String()
	}
	where := "(" + message.OrNone(cores.Brief()) + ")"
	if p.LeavesChoice(0) {
		where = "that other processes use least when it starts"
	}
	fmt.Fprintf(w, "%s; an untuned plan runs on %s %s\n", line, message.Plural(cores.Count(), "PU"), where)
	if len(p.Host.ISA) > 0 {
		fmt.Fprintf(w, "  instruction sets: %s\n", strings.Join(p.Host.ISA, " "))
	}
	if settings := hostSettings(p.Host); settings != "" {
		fmt.Fprintf(w, "  %s\n", settings)
	}
}

func hostSettings(id profiles.Identity) string {
	var out []string
	for _, s := range []struct{ name, value string }{
		{"kernel", id.Kernel}, {"huge pages", id.THP}, {"governor", id.Governor}, {"NUMA balancing", id.NUMABalancing},
	} {
		if s.value != "" {
			out = append(out, s.name+" "+s.value)
		}
	}
	if id.Hypervisor {
		out = append(out, "virtual machine")
	}
	return strings.Join(out, ", ")
}

// printRemarks lists what the tree does not show: crossings, splits of colors, memory without PUs
// and assumptions.
func printRemarks(w io.Writer, p *profiles.Profile) {
	var lines []string
	for _, n := range p.Machine.Memory {
		if n.Device {
			lines = append(lines, fmt.Sprintf("NUMA node %d: %s, memory of a device", n.ID, mem.FormatBytes(n.Bytes)))
		}
	}
	for _, o := range p.Machine.MemoryOnly() {
		lines = append(lines, fmt.Sprintf("NUMA node %d: %s, memory without PUs%s", o.Node, mem.FormatBytes(o.Bytes),
			nearestText(o)))
	}
	for _, c := range p.Machine.Crossings {
		lines = append(lines, "crossing: "+c.Text)
	}
	lines = append(lines, p.Machine.Tree.Splits()...)
	if palette := p.Machine.Tree.Palette(); len(palette) > 1 {
		for i, c := range palette {
			lines = append(lines, fmt.Sprintf("color %d: %s, cpus %s", i, c.Name, c.CPUs))
		}
	}
	lines = append(append(lines, p.Machine.Notes...), p.Notes...)
	if len(lines) > 0 {
		fmt.Fprintln(w)
	}
	for _, l := range lines {
		fmt.Fprintf(w, "note: %s\n", l)
	}
}

// nearestText names the nodes nearest to a memory-only node.
func nearestText(o topotree.MemoryOnly) string {
	if len(o.Nearest) == 0 {
		return ""
	}
	nodes := make([]string, len(o.Nearest))
	for i, id := range o.Nearest {
		nodes[i] = strconv.Itoa(id)
	}
	return fmt.Sprintf(", nearest to node %s (distance %d)", strings.Join(nodes, ", "), o.Distance)
}

// fewCounts reduces the figures of each ceiling to those of one, two and the most PUs.
func fewCounts(ceilings []profiles.Ceiling) []profiles.Ceiling {
	largest := map[string]int{}
	for _, c := range ceilings {
		largest[c.Kind+c.Name()] = max(largest[c.Kind+c.Name()], c.PUs)
	}
	var out []profiles.Ceiling
	for _, c := range ceilings {
		if c.PUs <= 2 || c.PUs == largest[c.Kind+c.Name()] {
			out = append(out, c)
		}
	}
	return out
}

// printCeilings prints the ceilings of a profile; nothing if it has none.
func printCeilings(w io.Writer, ceilings []profiles.Ceiling) error {
	if len(ceilings) == 0 {
		return nil
	}
	fmt.Fprintln(w)
	var rows [][]string
	for _, c := range ceilings {
		what := strings.TrimSpace(strings.Join([]string{c.ISA, c.Type, c.Level}, " "))
		if c.Device != "" {
			what = c.Device + " " + what
		}
		rows = append(rows, []string{c.Kind, strings.Join(strings.Fields(what), " "), strconv.Itoa(c.PUs),
			profiles.FormatRate(c.Median, c.Unit),
			formatRange(c.Figure), c.Provenance()})
	}
	return show.Table(w, []string{"ceiling", "of", "PUs", "median", "min to max", "source"}, rows, 2, 3, 4)
}

func formatRange(f profiles.Figure) string {
	if f.N < 2 {
		return ""
	}
	return profiles.FormatRate(f.Min, f.Unit) + " to " + profiles.FormatRate(f.Max, f.Unit)
}

// Tables writes every object of the machine with its PUs, one per row.
func Tables(w io.Writer, p *profiles.Profile) error {
	Head(w, p)
	fmt.Fprintln(w)
	var rows [][]string
	near := map[int]string{}
	for _, o := range p.Machine.MemoryOnly() {
		near[o.Node] = nearestText(o)
	}
	for _, n := range p.Machine.Memory {
		rows = append(rows, []string{"numa", strconv.Itoa(n.ID), show.Size(n.Bytes),
			message.OrNone(n.CPUs.String()) + near[n.ID]})
	}
	for _, o := range p.Machine.Objects {
		rows = append(rows, []string{o.Kind.String(), objectID(o.ID), show.Size(o.Bytes), o.CPUs.String()})
	}
	slices.SortStableFunc(rows, func(a, b []string) int { return kindOrder(a[0]) - kindOrder(b[0]) })
	if err := show.Table(w, []string{"object", "id", "size", "cpus"}, rows, 1, 2); err != nil {
		return err
	}
	printRemarks(w, p)
	if err := printCeilings(w, p.Ceilings); err != nil {
		return err
	}
	return printStructure(w, p)
}

func kindOrder(name string) int {
	k, err := topotree.ParseKind(name)
	if err != nil {
		return -1
	}
	return int(k)
}

func objectID(id int) string {
	if id < 0 {
		return ""
	}
	return strconv.Itoa(id)
}
