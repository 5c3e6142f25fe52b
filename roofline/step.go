package roofline

import (
	"math"

	"sandwich/topotree"
)

// Step is one op of a forward as a machine sees it.
type Step struct {
	Work             // Bytes are those that come from memory: weights, cached keys and values
	Between  float64 // FLOP of softmax between two products, which vectors do
	Unpacked float64 // values of weights that are unpacked, again for each tile of rows that reads them
	Moved    float64 // bytes of activations that it reads and writes, which lie in caches where they fit
	Touched  float64 // bytes of the buffers that these lie in
}

// Add is two steps that run after each other on the same activations.
func (s Step) Add(o Step) Step {
	return Step{Work: s.Work.Add(o.Work), Between: s.Between + o.Between, Unpacked: s.Unpacked + o.Unpacked,
		Moved: s.Moved + o.Moved, Touched: math.Max(s.Touched, o.Touched)}
}

// SoftmaxFLOP is about what softmax does to a score: scale, running maximum, exponential of a
// polynomial of degree six with the reduction of its range, and the sum. Counted, not measured.
const SoftmaxFLOP = 20

// Near is how much of its ceilings a kind of op reaches: what Reach makes of three measured ones.
type Near struct {
	Peak   float64 // share of the multiply-adds
	Read   float64 // share of the bandwidth of memory
	Unpack float64 // operations at the peak in whose time a value of the weights is unpacked
	// share of the bandwidth that each PU has alone, which none is above in company; 0: not known
	Alone float64
}

// Pace is what bounds the steps of a set of PUs.
type Pace struct {
	Peak   float64 // FLOP/s
	Read   float64 // B/s from memory
	Alone  float64 // B/s from memory of each PU when it is alone, added up; 0: not known
	Caches []Cache // from the smallest; without any activations cost nothing
}

// Cache is a level that activations may lie in, all parts of it that a set of PUs has together.
type Cache struct {
	Bytes float64 // of memory +Inf
	Read  float64 // B/s
}

// Pace is that of a set of PUs on a path.
func (m *Machine) Pace(set topotree.CPUSet, path Path) Pace {
	p := Pace{Peak: m.Peak(set, path).Value, Read: m.Bandwidth(set, Local).Value}
	for _, level := range []topotree.Kind{topotree.KindL2, topotree.KindL3} {
		bytes, read := m.cacheBytes(set, level), m.Read(set, levelNames[level])
		if bytes > 0 && read.Value > 0 {
			p.Caches = append(p.Caches, Cache{bytes, read.Value})
		}
	}
	if p.Read > 0 && len(p.Caches) > 0 { // where nothing is known of caches, they hold everything
		p.Caches = append(p.Caches, Cache{math.Inf(1), p.Read})
	}
	return p
}

// levelNames are the levels as profiles name them.
var levelNames = map[topotree.Kind]string{topotree.KindL2: "l2", topotree.KindL3: "l3"}

// cacheBytes adds up the caches of a kind that a set touches.
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

// times are the parts of a step: reading memory, multiplying and unpacking, moving activations.
func (p Pace) times(s Step, n Near) (read, work, move float64) {
	if s.Bytes > 0 {
		read = s.Bytes / p.rate(n)
	}
	if s.FLOP > 0 {
		work = (s.FLOP/n.Peak + s.Unpacked*n.Unpack) / p.Peak
	}
	return read, work, s.Moved * p.perByte(s.Touched)
}

// rate is what is read of memory in a second. Few PUs are bound by what a kernel asks of memory at
// a time, many by what memory gives: predicted by the share of all PUs, single rows of q8_0 on one
// of two PUs of a Zen 4 came out a third too fast.
func (p Pace) rate(n Near) float64 {
	rate := p.Read * n.Read
	if alone := p.Alone * n.Alone; alone > 0 {
		rate = math.Min(rate, alone)
	}
	return rate
}

// perByte is how long a byte of activations takes that lies in buffers of so many: each level has
// the share of them that it holds beside the smaller ones. Taken from the smallest level that holds
// them all, norms of 256 and 1,024 rows came out up to 56 % too long on a Zen 4.
func (p Pace) perByte(touched float64) (seconds float64) {
	held := 0.0
	for _, c := range p.Caches {
		share := math.Max(held, math.Min(1, c.Bytes/math.Max(1, touched)))
		seconds += (share - held) / c.Read
		held = share
	}
	return seconds
}

// Seconds is how long a step takes. Reading and multiplying overlap, but for what is left where
// both take about as long.
func (p Pace) Seconds(s Step, n Near) float64 {
	read, work, move := p.times(s, n)
	return overlap(read, work) + move
}

// overlap is how long two things take that run at the same time on one core: the third root of the
// sum of their cubes, which is the longer one where they differ much. Products of cold weights were
// within 5 % of it (plans/heuristic, overlap).
func overlap(a, b float64) float64 { return math.Cbrt(a*a*a + b*b*b) }

// beside is b of an overlap that takes as long as whole with a in it; a third of the whole at
// least, since what is far below shows in no measurement.
func beside(whole, a float64) float64 {
	return math.Max(whole/3, math.Cbrt(math.Max(0, whole*whole*whole-a*a*a)))
}
