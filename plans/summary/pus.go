package summary

import (
	"fmt"
	"strings"

	"sandwich/internal/message"
	"sandwich/plans/bundle"
	"sandwich/profiles"
	"sandwich/topotree"
)

// describePUs describes a set of PUs by the parts of the machine, so that readers need not know
// their numbers: "all 8 cores", "one core of each cluster", "node 0", "3 of 8 cores". It mentions
// SMT siblings if cores have all of theirs in the set.
func describePUs(host *profiles.Profile, pus topotree.CPUSet) string {
	m := host.Machine
	if m == nil || pus.IsEmpty() {
		return message.Plural(pus.Count(), "PU")
	}
	if !pus.In(m.Tree.Root().CPUs) {
		return message.Plural(pus.Count(), "PU") + ", some of which this machine lacks"
	}
	cores := units(m, topotree.KindCore, pus.Union(m.Tree.Root().CPUs))
	threads, touched, wide := 1, 0, 0
	for _, c := range cores {
		threads = max(threads, c.Count())
		if n := c.Intersect(pus).Count(); n > 0 {
			touched++
			if n == c.Count() && n > 1 {
				wide++
			}
		}
	}
	if touched == 0 {
		return message.Plural(pus.Count(), "PU")
	}
	smt := ""
	switch {
	case threads > 1 && wide == touched:
		smt = " with their SMT siblings"
	case wide > 0:
		smt = fmt.Sprintf(", %d of them with SMT siblings", wide)
	}
	return coresDescribePUs(host, pus, cores, touched) + smt
}

func coresDescribePUs(host *profiles.Profile, set topotree.CPUSet, cores []topotree.CPUSet, touched int) string {
	if touched == len(cores) {
		if touched == 1 {
			return "the only core"
		}
		return fmt.Sprintf("all %d cores", touched)
	}
	best, smallest := "", 0
	for _, level := range levels(host) {
		full, even := level.spread(set, cores)
		if full != "" {
			return full
		}
		if even > 0 && (smallest == 0 || even <= smallest) { // prefer the innermost level with the fewest cores
			best, smallest = fmt.Sprintf("%s of each %s", message.Plural(even, "core"), level.name), even
		}
	}
	if best != "" {
		return strings.Replace(best, "1 core ", "one core ", 1)
	}
	return fmt.Sprintf("%d of %d cores", touched, len(cores))
}

// level is a kind of part that a machine has several of, such as packages.
type level struct {
	name  string
	names []string // of the parts; "" if a part has none
	parts []topotree.CPUSet
}

// levels returns the kinds of parts by which a set is described, outermost first, and measured
// clusters last.
func levels(host *profiles.Profile) (out []level) {
	m := host.Machine
	add := func(name string, parts []topotree.CPUSet, names []string) {
		if len(parts) > 1 {
			out = append(out, level{name, names, parts})
		}
	}
	for _, k := range []struct {
		kind topotree.Kind
		name string
	}{{topotree.KindPackage, "package"}, {topotree.KindNUMA, "node"}, {topotree.KindDie, "die"}, {topotree.KindL3,
		"L3"},
		{topotree.KindCluster, "cluster"}, {topotree.KindL2, "L2"}} {
		var names []string
		parts := units(m, k.kind, m.Tree.Root().CPUs)
		if k.kind == topotree.KindNUMA {
			parts = nil
			for _, n := range m.Localities() {
				parts, names = append(parts, n.CPUs), append(names, fmt.Sprintf("node %d", n.ID))
			}
		}
		for i := len(names); i < len(parts); i++ {
			names = append(names, fmt.Sprintf("%s %d", k.name, i))
		}
		if k.kind != topotree.KindL2 || !privateCaches(m, parts) {
			add(k.name, parts, names)
		}
	}
	for _, l := range host.Latent {
		if l.Known == "" {
			add("measured cluster", l.Sets, make([]string, len(l.Sets)))
		}
	}
	return out
}

// privateCaches reports whether each part belongs to one core.
func privateCaches(m *topotree.Machine, parts []topotree.CPUSet) bool {
	for _, p := range parts {
		if len(units(m, topotree.KindCore, p)) > 1 {
			return false
		}
	}
	return true
}

// spread compares a set with the parts of a level. full names the parts if the set consists of at
// most two whole ones. Otherwise even is the number of cores that the set has in each part, or 0 if
// the numbers differ or the parts are whole.
func (l level) spread(set topotree.CPUSet, cores []topotree.CPUSet) (full string, even int) {
	var whole []string
	uniform, larger := -1, false
	for i, p := range l.parts {
		all, has := 0, 0
		for _, c := range cores {
			if !c.Intersects(p) {
				continue
			}
			all++
			if c.Intersects(set) {
				has++
			}
		}
		if has == all && l.names[i] != "" {
			whole = append(whole, l.names[i])
		} else if has > 0 {
			whole = append(whole, "")
		}
		larger = larger || has < all
		switch {
		case uniform == -1:
			uniform = has
		case uniform != has:
			uniform = 0
		}
	}
	named := len(whole) > 0 && len(whole) <= 2
	for _, n := range whole {
		named = named && n != ""
	}
	if named {
		return strings.Join(whole, " and "), 0
	}
	if larger && uniform > 0 {
		return "", uniform
	}
	return "", 0
}

// units returns the sets of the objects of a kind that intersect a set.
func units(m *topotree.Machine, kind topotree.Kind, among topotree.CPUSet) (out []topotree.CPUSet) {
	for _, o := range m.Objects {
		if o.Kind == kind && o.CPUs.Intersects(among) {
			out = append(out, o.CPUs)
		}
	}
	return out
}

// DescribePUs returns the text form of a set of PUs with its description on the bundle's host.
func DescribePUs(b *bundle.Bundle, pus topotree.CPUSet) string {
	return pus.String() + " (" + describePUs(&b.Host, pus) + ")"
}
