package candidates

import (
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"slices"

	"sandwich/plans"
	"sandwich/profiles"
	"sandwich/topotree"
	"sandwich/topotree/enumerate"
)

// Options restrict the configurations that Enumerate offers. The zero value restricts nothing.
type Options struct {
	TP      int  // only this tensor-parallel degree; 0: all
	Threads int  // maximum number of PUs in a phase; 0: unlimited
	Alike   bool // decode uses the PUs of prefill; for a pooled model, which has no decode phase
	// Cache is the number of bytes of keys and values that must fit. 0 means one full sequence of
	// the model's context, at most 4096 positions.
	Cache int64
}

// Space is the result of walking trees and sections.
type Space struct {
	Trees     int  // offered by the enumeration
	Truncated bool // more trees exist than were walked
	Sections  int  // distinct sections of trees
	Configs   []*Config
	Refused   map[string]int // number of refused configurations by reason

	site     *site
	capacity *capacity
	alike    bool
}

// ErrNoFit is returned if no configuration of a machine fits a model.
var ErrNoFit = errors.New("no service configuration fits")

// Bounds of the work of a walk, in PUs visited by tree and by configuration.
const (
	maxTreePUs   = 5e7
	maxConfigPUs = 4e7
	maxDegree    = 512 // maximum number of nodes of a section
)

// Enumerate walks every enumerated tree (Sandwich 5.2) and every section of it (5.3), and offers
// each service configuration once. Prefill runs on all PUs of the ranks, on one PU of each of their
// cores, or on the PUs of decode. Enumerate omits degrees by which the model cannot be divided,
// configurations that do not fit in the memory of a node, and PUs that the process may not use or
// the quota does not cover. The configurations of always come first.
func Enumerate(p *profiles.Profile, shape plans.ModelShape, o Options) (*Space, error) {
	tree, err := p.Machine.Usable()
	if err != nil {
		return nil, fmt.Errorf("no usable PU: %w", err)
	}
	if o.TP > 1 {
		if err := shape.Partition(o.TP); err != nil {
			return nil, fmt.Errorf("%w: %w", ErrNoFit, err)
		}
	}
	w := &walk{site: newSite(p), capacity: newCapacity(p, shape, o), o: o, shape: shape, tps: map[int]error{},
		seen: map[string]bool{}, cuts: map[*topotree.Tree][]cut{}, met: map[meeting]bool{},
		space: &Space{Refused: map[string]int{}}}
	if o.Threads > 0 {
		w.site.max = min(w.site.max, o.Threads)
	}
	w.space.site, w.space.capacity, w.space.alike = w.site, w.capacity, o.Alike
	w.always(p, tree)
	var stats enumerate.Stats
	bounds := enumerate.Bounds{First: p.Groups(), Stats: &stats, MaxTrees: max(1000, int(maxTreePUs)/tree.PUs())}
	for t := range enumerate.Trees(tree, bounds) {
		w.tree(t)
		if len(w.space.Configs) >= max(2000, int(maxConfigPUs)/tree.PUs()) {
			stats.Truncated = true
			break
		}
	}
	w.space.Trees, w.space.Truncated, w.space.Sections = stats.Kept, stats.Truncated, len(w.met)
	if len(w.space.Configs) == 0 {
		return w.space, fmt.Errorf("%w: %s", ErrNoFit, w.space.why())
	}
	return w.space, nil
}

// walk is the state of one enumeration.
type walk struct {
	site     *site
	capacity *capacity
	o        Options
	shape    plans.ModelShape
	tps      map[int]error // result of dividing the model, by degree
	seen     map[string]bool
	cuts     map[*topotree.Tree][]cut // by the tree before removals
	met      map[meeting]bool
	space    *Space
}

// cut is a section of a tree from which nothing was removed.
type cut struct {
	name  string
	nodes []topotree.CPUSet
}

// meeting identifies a partition with the remaining PUs. Most trees repeat an earlier combination.
type meeting struct{ cut, kept string }

// cutsOf returns the sections of a full tree, each partition once.
func (w *walk) cutsOf(full *topotree.Tree) []cut {
	if cuts, ok := w.cuts[full]; ok {
		return cuts
	}
	var out []cut
	seen := 0
	for d := 0; d <= full.Depth(); d++ {
		level := full.Level(d)
		if len(level) == seen || len(level) > maxDegree {
			continue // it repeats the section above, or is too fine for any model
		}
		seen = len(level)
		c := cut{name: level[0].Kind.String()}
		if level[0].Kind == topotree.KindGroup {
			c.name = fmt.Sprintf("group at depth %d", d)
		}
		for _, n := range level {
			c.nodes = append(c.nodes, n.CPUs)
		}
		out = append(out, c)
	}
	w.cuts[full] = out
	return out
}

// tree passes the configurations of one tree to the visitor.
func (w *walk) tree(t *topotree.Tree) {
	decode, cuts := t.CPUs(), w.cutsOf(t.Full())
	kept := decode.Key()
	alive := make([][]topotree.CPUSet, len(cuts)) // nodes that kept a PU, by section
	fills := make([]topotree.CPUSet, len(cuts))   // all PUs of these nodes
	for i, c := range cuts {
		for _, n := range c.nodes {
			if n.Intersects(decode) {
				alive[i] = append(alive[i], n)
			}
		}
		fills[i] = topotree.UnionOf(alive[i])
	}
	for i, c := range cuts {
		if !w.cuttable(len(alive[i])) {
			continue
		}
		m := meeting{partitionKey(alive[i]), kept}
		if w.met[m] {
			continue
		}
		w.met[m] = true
		w.variants(alive[i], fills[i:], decode, Origin{Tree: t, Section: c.name})
	}
}

// partitionKey returns a key that is equal for equal partitions.
func partitionKey(nodes []topotree.CPUSet) string {
	h := fnv.New128a()
	for _, n := range nodes {
		_, _ = io.WriteString(h, n.Key())
		_, _ = h.Write([]byte{0xff, 0xfe})
	}
	return string(h.Sum(nil))
}

// variants offers a section with its choices of prefill PUs: all PUs of its nodes, those of the
// nodes of finer sections, and those of decode. The prefill PUs do not depend on the number of
// ranks.
func (w *walk) variants(ranks, fills []topotree.CPUSet, decode topotree.CPUSet, o Origin) {
	last := topotree.CPUSet{}
	for i, prefill := range append(slices.Clip(fills), decode) {
		if prefill.Equal(last) {
			continue
		}
		last = prefill
		switch {
		case i > 0 && prefill.Equal(decode):
			o.Variant = "prefill as decode"
		case i > 0:
			o.Variant = fmt.Sprintf("prefill on %d PUs", prefill.Count())
		}
		w.offer(ranks, prefill, decode, o)
		if cores := prefill.Intersect(w.site.cores); !cores.Equal(prefill) && !cores.Equal(decode) {
			o.Variant = "prefill on one PU of each core"
			w.offer(ranks, cores, decode, o)
		}
	}
}

// cuttable reports whether the model can be divided among the given number of ranks.
func (w *walk) cuttable(ranks int) bool {
	if w.o.TP > 0 && ranks != w.o.TP {
		w.space.Refused[fmt.Sprintf("no section has %d ranks", w.o.TP)]++
		return false
	}
	err, known := w.tps[ranks]
	if !known {
		err = w.shape.Partition(ranks)
		w.tps[ranks] = err
	}
	if err != nil {
		w.space.Refused["the model cannot be cut for their ranks"]++
	}
	return err == nil
}

// offer adds a configuration if it is new and fits.
func (w *walk) offer(ranks []topotree.CPUSet, prefill, decode topotree.CPUSet, o Origin) {
	if w.o.Alike {
		decode = prefill
	}
	if !w.site.fits(prefill, decode) {
		w.space.Refused["more PUs than may be used at once"]++
		return
	}
	c, ok := newConfig(w.site, ranks, prefill, decode, o)
	if !ok {
		w.space.Refused["a rank without PUs or without memory"]++
		return
	}
	key := c.key()
	if w.seen[key] && o.Always == "" { // a configuration that is always offered may have several names
		return
	}
	w.seen[key] = true
	if err := w.capacity.fits(c); err != nil {
		w.space.Refused[err.Error()]++
		return
	}
	w.space.Configs = append(w.space.Configs, c)
}

// why returns the most frequent reason for refused configurations.
func (s *Space) why() string {
	most := "the machine has no usable PU"
	n := 0
	for reason, times := range s.Refused {
		if times > n || times == n && reason < most {
			most, n = reason, times
		}
	}
	return most
}
