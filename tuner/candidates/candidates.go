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
)

// Options narrow what Enumerate offers. The zero value narrows nothing.
type Options struct {
	TP      int  // only this tensor-parallel degree; 0: all
	Threads int  // at most so many PUs in a phase; 0: no such bound
	Alike   bool // decode's PUs are those of prefill: for a pooled model, which decodes nothing
	// Cache is the bytes of keys and values that there must be room for; 0: those of one sequence
	// of the model's context, at most 4096 positions, if all layers remember all of it.
	Cache int64
}

// Space is what a walk over trees and sections found.
type Space struct {
	Trees     int  // that the enumeration offered
	Truncated bool // there were more, which nobody looked at
	Sections  int  // of trees, that leave a cut unlike the others
	Configs   []*Config
	Refused   map[string]int // how many configurations were refused, by reason

	site     *site
	capacity *capacity
	alike    bool
}

// ErrNoFit says that a machine has no configuration for a model.
var ErrNoFit = errors.New("no service configuration fits")

// Walks end where the PUs that they looked at are so many, tree by tree and configuration by
// configuration: 260,000 trees of 192 PUs, 12,000 of 4,096.
const (
	maxTreePUs   = 5e7
	maxConfigPUs = 4e7
	maxDegree    = 512 // nodes of a section; no model is cut more finely
)

// Enumerate walks every enumerated tree (Sandwich 5.2) and every section of it (5.3), and offers
// each service configuration once: prefill on the full PUs of the ranks, on one PU of each of their
// cores, and on the PUs of decode. It leaves out what the model cannot be cut by, what a memory
// node has no room for, and PUs that may not be used or that the quota does not pay for. The
// configurations of always come first.
func Enumerate(p *profiles.Profile, shape plans.ModelShape, o Options) (*Space, error) {
	tree, err := p.Machine.Usable()
	if err != nil {
		return nil, fmt.Errorf("no PU to work on: %w", err)
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
		w.site.most = min(w.site.most, o.Threads)
	}
	w.space.site, w.space.capacity, w.space.alike = w.site, w.capacity, o.Alike
	w.always(p, tree)
	var stats topotree.Stats
	bounds := topotree.Bounds{First: p.Groups(), Stats: &stats, MaxTrees: max(1000, int(maxTreePUs)/tree.PUs())}
	for t := range topotree.Enumerate(tree, bounds) {
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

// walk is one enumeration under way.
type walk struct {
	site     *site
	capacity *capacity
	o        Options
	shape    plans.ModelShape
	tps      map[int]error // by degree, whether the model can be cut for it
	seen     map[string]bool
	cuts     map[*topotree.Tree][]cut // by the tree before removing
	met      map[meeting]bool
	space    *Space
}

// cut is a section of a tree that lost nothing yet.
type cut struct {
	name  string
	nodes []topotree.CPUSet
}

// meeting is a partition and the PUs that are kept: most trees of an enumeration bring none that
// was not there before.
type meeting struct{ cut, kept string }

// cutsOf are the sections of a full tree, each partition once.
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

// tree offers the configurations of one tree.
func (w *walk) tree(t *topotree.Tree) {
	decode, cuts := t.CPUs(), w.cutsOf(t.Full())
	kept := decode.Key()
	alive := make([][]topotree.CPUSet, len(cuts)) // by section, the nodes that kept a PU
	fills := make([]topotree.CPUSet, len(cuts))   // and all their PUs
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

// partitionKey tells partitions apart.
func partitionKey(nodes []topotree.CPUSet) string {
	h := fnv.New128a()
	for _, n := range nodes {
		_, _ = io.WriteString(h, n.Key())
		_, _ = h.Write([]byte{0xff, 0xfe})
	}
	return string(h.Sum(nil))
}

// variants offers a section with its choices of prefill PUs: all of its nodes first, then what the
// nodes of the sections below have, and decode's. What prefill runs on need not change with how
// often the model is cut.
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

// cuttable tells whether the model can be cut for so many ranks.
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

// offer adds a configuration that is new and that fits.
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
	if w.seen[key] && o.Always == "" { // what is always there may have several names
		return
	}
	w.seen[key] = true
	if err := w.capacity.fits(c); err != nil {
		w.space.Refused[err.Error()]++
		return
	}
	w.space.Configs = append(w.space.Configs, c)
}

// why is the commonest reason for which configurations were refused.
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
