package candidates

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"sandwich/profiles"
	"sandwich/roofline"
	"sandwich/topotree"
)

// Assumed figures of a machine whose profile has none.
const (
	assumedRead   = 10e9 // bytes per second of one PU
	assumedKnee   = 8    // PUs that saturate the memory of a node
	assumedRemote = 0.5  // fraction of the local bandwidth, from another node, without a table of distances
)

// assumedPeaks is the assumed float32 rate of one core in FLOP/s by instruction set: two vector
// multiply-adds per cycle at 2.5 GHz.
var assumedPeaks = map[string]float64{"avx512": 160e9, "avx2": 80e9, "neon": 40e9, "go": 2.5e9}

// gainOf is the assumed speed of an arithmetic relative to float32.
var gainOf = map[string]float64{"int8": 2, "bf16": 1, "f16": 1}

// Complete returns a copy of the profile with every figure that a prediction for these arithmetics
// of an instruction set needs. It also returns one sentence for each figure that was not measured
// on this machine: assumed by Complete, or assumed or quoted in the profile.
func Complete(p *profiles.Profile, isa string, types []string) (*profiles.Profile, []string) {
	c := &completion{p: *p, isa: isa}
	c.p.Ceilings, c.p.Matrices, c.p.Sets = slices.Clone(p.Ceilings), slices.Clone(p.Matrices), slices.Clone(p.Sets)
	c.stated()
	c.contradictions()
	for _, typ := range types {
		c.peak(typ)
		c.slower(typ)
	}
	c.sizes()
	c.memory()
	c.shares()
	c.remote()
	c.waits()
	return &c.p, c.notes
}

type completion struct {
	p     profiles.Profile
	isa   string
	notes []string
}

func (c *completion) note(format string, args ...any) {
	if text := fmt.Sprintf(format, args...); !slices.Contains(c.notes, text) {
		c.notes = append(c.notes, text)
	}
}

// stated adds the figures that the profile itself assumes or quotes.
func (c *completion) stated() {
	for _, f := range c.p.Ceilings {
		if f.Device != "" || f.Kind == profiles.Compute && f.ISA != c.isa {
			continue
		}
		if !f.Measured() && f.Median > 0 {
			c.note("%s with %d PUs: %.4g %s, %s in the profile", f.Name(), f.PUs, f.Median, f.Unit,
				provenance(f.Figure))
		}
	}
	for _, m := range c.p.Matrices {
		if m.N == 0 {
			c.note("%s: %s in the profile", m.Name, provenance(profiles.Figure{Source: m.Source, Assumed: m.Assumed}))
		}
	}
}

func provenance(f profiles.Figure) string {
	if f.Source != "" {
		return "quoted from " + f.Source
	}
	return "assumed"
}

// contradictions adds figures that are impossible on any machine, and how they are interpreted.
func (c *completion) contradictions() {
	best := map[string]profiles.Ceiling{}
	list := slices.Clone(c.p.Ceilings)
	slices.SortStableFunc(list, func(a, b profiles.Ceiling) int { return a.PUs - b.PUs })
	for _, f := range list {
		if f.Kind != profiles.Compute || f.Device != "" || f.Median <= 0 {
			continue
		}
		if less, ok := best[f.Name()]; ok && f.PUs > less.PUs && f.Median < less.Median {
			c.note("%s: %d PUs are slower than %d in the profile; taken as no slower", f.Name(), f.PUs, less.PUs)
			continue
		}
		best[f.Name()] = f
	}
}

// peak adds the multiply-add rate of an arithmetic.
func (c *completion) peak(typ string) {
	cores := c.p.CorePUs()
	ask := func(isa, typ string) float64 {
		return roofline.NewMachine(&c.p).Peak(cores, roofline.Path{ISA: isa, Type: typ}).Value
	}
	if ask(c.isa, typ) > 0 {
		return
	}
	var points []profiles.Ceiling
	from := ""
	if typ != "f32" && ask(c.isa, "f32") > 0 {
		gain := gainOf[typ]
		for _, f := range c.p.Ceilings {
			if f.Kind == profiles.Compute && f.Device == "" && f.ISA == c.isa && f.Type == "f32" {
				f.Type, f.Figure = typ, assumed(gain*f.Median, "OP/s")
				points = append(points, f)
			}
		}
		from = fmt.Sprintf("%g times the rate of f32", gain)
	}
	if len(points) == 0 {
		gain := 1.0
		if typ != "f32" {
			gain = gainOf[typ]
		}
		core := gain * math.Max(assumedPeaks[c.isa], assumedPeaks["go"])
		for _, n := range slices.Compact([]int{1, max(1, cores.Count())}) {
			points = append(points, profiles.Ceiling{Kind: profiles.Compute, ISA: c.isa, Type: typ, PUs: n,
				Figure: assumed(core*float64(n), "FLOP/s")})
		}
		from = fmt.Sprintf("%.3g per core", core)
	}
	c.p.Ceilings = append(c.p.Ceilings, points...)
	c.note("the profile has no peak of %s/%s; assumed %s", c.isa, typ, from)
}

// slower adds the rate of one core of each slower type if the profile has none and the system
// states the relative speeds of the types.
func (c *completion) slower(typ string) {
	types := c.p.Machine.CoreTypes
	if len(types) < 2 {
		return
	}
	allowed := c.p.Allowed()
	first := func(t topotree.CoreType) topotree.CPUSet {
		return topotree.NewCPUSet(t.CPUs.Intersect(allowed).Slice()[:1]...)
	}
	path := roofline.Path{ISA: c.isa, Type: typ}
	for i, t := range types {
		if t.CPUs.Intersect(allowed).IsEmpty() || c.single(path, t.CPUs) {
			continue
		}
		share, by := relative(t, types[0])
		if share == 0 {
			continue
		}
		fast := roofline.NewMachine(&c.p).Peak(topotree.NewCPUSet(c.p.CorePUs().First()), path).Value
		if i == 0 { // the rates of the others are relative to it
			share = 1
		}
		c.p.Ceilings = append(c.p.Ceilings, profiles.Ceiling{Kind: profiles.Compute, ISA: c.isa, Type: typ, PUs: 1,
			CPUs: first(t), Figure: assumed(fast*share, "FLOP/s")})
		if i > 0 {
			c.note("the profile has no %s of the cores %s; assumed %.2g of the fastest, by %s", path, t.Name, share, by)
		}
	}
}

// single reports whether the profile has a figure of one core of a set.
func (c *completion) single(path roofline.Path, of topotree.CPUSet) bool {
	for _, f := range c.p.Ceilings {
		if f.Kind == profiles.Compute && f.Device == "" && f.ISA == path.ISA && f.Type == path.Type && f.PUs == 1 &&
			!f.CPUs.IsEmpty() && f.CPUs.In(of) {
			return true
		}
	}
	return false
}

// relative returns the speed of cores of a type relative to the fastest, by what the system states
// of both.
func relative(t, fastest topotree.CoreType) (share float64, by string) {
	for _, v := range []struct {
		of, max int
		by      string
	}{{t.Capacity, fastest.Capacity, "cpu_capacity"}, {t.BaseMHz, fastest.BaseMHz, "base clock"},
		{t.MaxMHz, fastest.MaxMHz, "maximum clock"}} {
		if v.of > 0 && v.max > 0 {
			return math.Min(1, float64(v.of)/float64(v.max)), v.by
		}
	}
	return 0, ""
}

func assumed(v float64, unit string) profiles.Figure {
	return profiles.Figure{Median: v, Unit: unit, Assumed: true}
}

// sizes adds the nodes whose memory size is unknown.
func (c *completion) sizes() {
	for _, n := range c.nodes() {
		if n.Bytes > 0 {
			return // a node of size 0 has no memory if others have some
		}
	}
	c.note("the profile has no size of memory; assumed large enough")
}

// memory adds the bandwidth by number of PUs.
func (c *completion) memory() {
	all := c.p.UsablePUs()
	if roofline.NewMachine(&c.p).Bandwidth(all, roofline.Local).Value > 0 {
		return
	}
	cores := max(1, c.p.CorePUs().Count())
	knee := min(assumedKnee*max(1, len(c.nodes())), cores)
	for _, n := range slices.Compact([]int{1, knee, cores}) {
		c.p.Ceilings = append(c.p.Ceilings, profiles.Ceiling{Kind: profiles.Bandwidth, Level: "memory", PUs: n,
			Figure: assumed(assumedRead*float64(min(n, knee)), "B/s")})
	}
	c.note("the profile has no bandwidth of memory; assumed %.3g B/s of a PU up to %d PUs a node", assumedRead,
		assumedKnee)
}

// nodes returns the memory nodes with usable PUs, one for nodes with the same PUs.
func (c *completion) nodes() []topotree.MemoryNode {
	return slices.DeleteFunc(c.p.Machine.Localities(), func(n topotree.MemoryNode) bool {
		return !n.CPUs.Intersects(c.p.Allowed())
	})
}

// shares gives every node its share, by cores, of the bandwidth of the whole machine, if the
// profile has only figures by number of PUs. The same number of PUs reads less from one node than
// from all.
func (c *completion) shares() {
	nodes, cores := c.nodes(), c.p.CorePUs()
	if len(nodes) < 2 {
		return
	}
	for _, n := range nodes {
		for _, f := range c.p.Ceilings {
			if f.Kind == profiles.Bandwidth && !f.CPUs.IsEmpty() && f.CPUs.In(n.CPUs) {
				return
			}
		}
		for _, f := range c.p.Sets {
			if f.Name == profiles.Saturation && f.CPUs.In(n.CPUs) {
				return
			}
		}
	}
	m := roofline.NewMachine(&c.p)
	one := m.Bandwidth(topotree.NewCPUSet(cores.First()), roofline.Local).Value
	all := m.Bandwidth(cores, roofline.Local).Value
	for _, n := range nodes {
		part := n.CPUs.Intersect(cores)
		if part.IsEmpty() {
			continue
		}
		add := func(set topotree.CPUSet, v float64) {
			c.p.Sets = append(c.p.Sets, profiles.SetFigure{Name: profiles.Saturation, Domain: profiles.NodeDomain(n.ID),
				CPUs: set, Figure: assumed(v, "B/s")})
		}
		share := all * float64(part.Count()) / float64(cores.Count())
		if part.Count() > 1 {
			add(topotree.NewCPUSet(part.First()), math.Min(one, share))
		}
		add(part, share)
	}
	c.note("the profile has no bandwidth of single nodes; assumed the share of each, by cores, of the machine's")
}

// remote adds the bandwidth between nodes: by the firmware's table of distances, or half of the
// local bandwidth without one.
func (c *completion) remote() {
	nodes := c.nodes()
	if len(nodes) < 2 || c.p.Matrix(profiles.NodeMatrix) != nil {
		return
	}
	m := roofline.NewMachine(&c.p)
	out := profiles.Matrix{Name: profiles.NodeMatrix, Unit: "B/s", Assumed: true}
	from := fmt.Sprintf("%g of the local bandwidth", assumedRemote)
	for _, a := range nodes {
		out.Items = append(out.Items, a.ID)
		local := m.Bandwidth(a.CPUs.Intersect(c.p.Allowed()), roofline.Local).Value
		var row profiles.MatrixRow
		for _, b := range nodes {
			share := 1.0
			if a.ID != b.ID {
				share = assumedRemote
				if d := distance(c.p.Machine.Distances, a.ID, b.ID); d > 10 {
					share, from = 10/float64(d), "by the table of distances of the firmware"
				}
			}
			row = append(row, local*share)
		}
		out.Rows = append(out.Rows, row)
	}
	c.p.Matrices = append(c.p.Matrices, out)
	c.note("the profile has no bandwidth between nodes; assumed %s", from)
}

// distance returns the distance that firmware states, or 0.
func distance(d *topotree.Distances, a, b int) int {
	if d == nil {
		return 0
	}
	i, j := slices.Index(d.Nodes, a), slices.Index(d.Nodes, b)
	if i < 0 || j < 0 {
		return 0
	}
	return d.Matrix[i][j]
}

// waits adds what is assumed about barriers and all-reduces.
func (c *completion) waits() {
	var have []string
	for _, f := range c.p.Sets {
		have = append(have, f.Name)
	}
	all := c.p.CorePUs()
	m := roofline.NewMachine(&c.p)
	if all.Count() > 1 && !slices.Contains(have, profiles.Barrier) {
		c.note("the profile has no barriers; assumed %.3g s of any PUs", m.Barrier(all).Value)
	}
	if all.Count() > 1 && !slices.Contains(have, profiles.AllReduce) {
		a := m.AllReduce(1<<14, 2)
		c.note("the profile has no all-reduces; assumed %s", strings.TrimPrefix(a.From, "assumed "))
	}
}
