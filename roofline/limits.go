package roofline

import (
	"math"

	"sandwich/topotree"
)

// Step is one operator of a forward in terms of the machine's resources.
type Step struct {
	Work             // Bytes are read from memory: weights, cached keys and values
	Between  float64 // FLOP of softmax between two products, computed on vectors
	Unpacked float64 // weights to unpack, once per row tile
	Moved    float64 // bytes of activations read and written, cached if they fit
	Touched  float64 // bytes of the buffers of these activations
}

// Add returns the sum of two steps that run one after another on the same activations.
func (s Step) Add(o Step) Step {
	return Step{Work: s.Work.Add(o.Work), Between: s.Between + o.Between, Unpacked: s.Unpacked + o.Unpacked,
		Moved: s.Moved + o.Moved, Touched: math.Max(s.Touched, o.Touched)}
}

// SoftmaxFLOP is the approximate number of operations of softmax per score: scale, running maximum,
// exponential by a polynomial of degree six with range reduction, and sum.
const SoftmaxFLOP = 20

// Efficiency holds the fractions of its ceilings that a kind of operator reaches; see
// FitEfficiency.
type Efficiency struct {
	Peak   float64 // fraction of the multiply-add peak
	Read   float64 // fraction of the memory bandwidth
	Unpack float64 // cost of unpacking a weight, in operations at the peak
	// fraction of the single-PU bandwidth, which limits each PU; 0: unknown
	Alone float64
}

// Limits holds the rates that limit the steps of a set of PUs.
type Limits struct {
	Peak   float64 // FLOP/s
	Read   float64 // B/s from memory
	Alone  float64 // sum of the B/s that each PU reads when it is the only one; 0: unknown
	Caches []Cache // from the smallest; if empty, activations cost nothing
}

// Cache is a cache level or memory that may hold activations, all parts that a set of PUs has
// together.
type Cache struct {
	Bytes float64 // +Inf for memory
	Read  float64 // B/s
}

// Limits returns the limits of a set of PUs on a path.
func (m *Machine) Limits(set topotree.CPUSet, path Path) Limits {
	p := Limits{Peak: m.Peak(set, path).Value, Read: m.Bandwidth(set, Local).Value}
	for _, level := range []topotree.Kind{topotree.KindL2, topotree.KindL3} {
		bytes, read := m.cacheBytes(set, level), m.Read(set, levelNames[level])
		if bytes > 0 && read.Value > 0 {
			p.Caches = append(p.Caches, Cache{bytes, read.Value})
		}
	}
	if p.Read > 0 && len(p.Caches) > 0 { // without figures of caches, activations cost nothing
		p.Caches = append(p.Caches, Cache{math.Inf(1), p.Read})
	}
	return p
}

// levelNames maps cache levels to their names in profiles.
var levelNames = map[topotree.Kind]string{topotree.KindL2: "l2", topotree.KindL3: "l3"}

// cacheBytes returns the total size of the caches of a kind that a set uses.
func (m *Machine) cacheBytes(set topotree.CPUSet, kind topotree.Kind) (sum float64) {
	if m.profile.Machine == nil {
		return 0
	}
	for _, o := range m.profile.Machine.Objects {
		if o.Kind == kind && o.CPUs.Intersects(set) {
			sum += float64(o.Bytes)
		}
	}
	return sum
}

// times returns the parts of a step's duration: reading memory, arithmetic with unpacking, and
// moving activations.
func (p Limits) times(s Step, n Efficiency) (read, work, move float64) {
	if s.Bytes > 0 {
		read = s.Bytes / p.rate(n)
	}
	if s.FLOP > 0 {
		work = (s.FLOP/n.Peak + s.Unpacked*n.Unpack) / p.Peak
	}
	return read, work, s.Moved * p.perByte(s.Touched)
}

// rate returns the bytes per second that are read from memory: limited by each PU's requests for
// few PUs, and by the memory for many.
func (p Limits) rate(n Efficiency) float64 {
	rate := p.Read * n.Read
	if alone := p.Alone * n.Alone; alone > 0 {
		rate = math.Min(rate, alone)
	}
	return rate
}

// perByte returns the seconds per byte of activations in buffers of some size: each level serves
// the fraction of them that it holds in addition to the smaller levels.
func (p Limits) perByte(touched float64) (seconds float64) {
	held := 0.0
	for _, c := range p.Caches {
		share := math.Max(held, math.Min(1, c.Bytes/math.Max(1, touched)))
		seconds += (share - held) / c.Read
		held = share
	}
	return seconds
}

// Seconds returns the duration of a step. Reading and arithmetic overlap, except for a part if both
// take similarly long.
func (p Limits) Seconds(s Step, n Efficiency) float64 {
	read, work, move := p.times(s, n)
	return overlap(read, work) + move
}

// overlap returns the duration of two overlapping activities of one core: the cube root of the sum
// of their cubes, close to the longer one if they differ much.
func overlap(a, b float64) float64 { return math.Cbrt(a*a*a + b*b*b) }

// remainder is the inverse of overlap: the duration of one activity given the whole and the other
// one. It is at least a third of the whole, since shorter ones cannot be measured.
func remainder(whole, a float64) float64 {
	return math.Max(whole/3, math.Cbrt(math.Max(0, whole*whole*whole-a*a*a)))
}
