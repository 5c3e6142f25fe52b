package roofline

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"sandwich/topotree"
)

// Output describes how the output of an operator may be divided.
type Output struct {
	Rows, Columns         int // 0 columns: not divided
	TileRows, TileColumns int // largest tile of all targets that may share it; 0: 1
}

// larger returns the dimension that is divided: the larger one, so that regions stay compact
// (SMEPilot section 4.1).
func (o Output) larger() (name string, n, tile int) {
	if o.Rows > o.Columns {
		return "rows", o.Rows, max(1, o.TileRows)
	}
	return "columns", o.Columns, max(1, o.TileColumns)
}

// Piece is the part of an operator that one target or class of cores computes.
type Piece struct {
	Name    string          // target, or class of cores
	PUs     topotree.CPUSet // empty for a unit
	Drivers int             // cores that drive a unit and do nothing else; 0 for cores
	Outputs int             // number in the divided dimension
}

// Placement is where an operator should run, with its predicted duration.
type Placement struct {
	Regime  Regime
	Targets []Target // one, or all if they share the operator
	Divided string   // rows or columns; "" if not divided
	Split   []Piece  // by target, cores by class
	Seconds float64  // predicted, at the ceiling
	Ceiling string   // "memory" or "compute": which ceiling the placement hits
	Why     string   // reason in a few words
}

// Target returns the names of the targets.
func (p Placement) Target() string {
	var names []string
	for _, t := range p.Targets {
		names = append(names, t.Name)
	}
	return strings.Join(names, " + ")
}

// OffCores reports whether a matrix unit or a device takes part.
func (p Placement) OffCores() bool {
	return slices.ContainsFunc(p.Targets, func(t Target) bool { return t.Units > 0 })
}

// SplitText describes the split, or returns "" if the operator is not divided.
func (p Placement) SplitText() string {
	var parts []string
	for _, s := range p.Split {
		text := fmt.Sprintf("%s %d", s.Name, s.Outputs)
		if s.Drivers > 0 {
			text += fmt.Sprintf(" (%d drivers)", s.Drivers)
		}
		parts = append(parts, text)
	}
	if len(parts) < 2 {
		return ""
	}
	return strings.Join(parts, " + ") + " " + p.Divided
}

// Place chooses targets by the three regimes of SMEPilot section 3.2. Memory-bound work stays on
// the cores of all classes. Ridge-crossing work runs on the fastest target alone. Compute-bound
// work is spread over all targets if the measured mixed ceiling is above the fastest target's and
// each gets whole tiles. Ceilings are never added. It panics on a ceiling without targets.
func (r Ceiling) Place(w Work, o Output) Placement {
	cores, best := r.Targets[0], r.Targets[0]
	for _, t := range r.Targets[1:] {
		if t.Peak > best.Peak {
			best = t
		}
	}
	p := Placement{Regime: r.Regime(w), Targets: []Target{best}}
	switch {
	case w.FLOP == 0:
		p.Regime, p.Targets, p.Why = MemoryBound, []Target{cores}, "it only moves activations"
	case p.Regime == MemoryBound:
		p.Targets, p.Why = []Target{cores}, fmt.Sprintf("%s, below the ridge of %s", perByte(w.Intensity()),
			number(r.Ridge(cores)))
	case len(r.Targets) == 1:
		p.Why = fmt.Sprintf("%s, above the ridge of %s", perByte(w.Intensity()), number(r.Ridge(cores)))
	case p.Regime == RidgeCrossing && r.Seconds(best, w) > r.Seconds(cores, w):
		p.Targets, p.Why = []Target{cores}, best.Name+" has a higher peak but less bandwidth"
	case p.Regime == RidgeCrossing:
		p.Why = fmt.Sprintf("%s: memory bounds %s, so other targets add nothing", perByte(w.Intensity()), best.Name)
	case r.Mixed == 0:
		p.Why = "the mixed ceiling was not measured"
	case r.Mixed <= best.Peak:
		p.Why = "all targets together are not faster"
	default:
		p.Targets = r.Targets
		p.Why = fmt.Sprintf("%s, above the ridge of %s; all targets together reach %s of the fastest",
			perByte(w.Intensity()),
			number(r.Ridge(best)), number(r.Mixed/best.Peak))
	}
	p.divide(o)
	if len(p.Targets) > 1 && p.Split == nil {
		p.Targets, p.Why = []Target{best}, "there are too few tiles for all targets"
		p.divide(o)
	}
	p.estimate(r, w, o)
	return p
}

// estimate sets the predicted duration; a split takes as long as its last target.
func (p *Placement) estimate(r Ceiling, w Work, o Output) {
	all := p.Targets[0]
	if len(p.Targets) > 1 {
		_, n, tile := o.larger()
		later, sum := 0.0, 0.0
		for _, t := range p.Targets {
			sum += t.Peak
			later = math.Max(later, tiles(p.outputsOf(t), tile)/t.Peak)
		}
		waste := 1.0
		if n > 0 {
			waste = later * sum / float64(n)
		}
		all = Target{Peak: r.Mixed / waste}
	}
	p.Seconds, p.Ceiling = r.Seconds(all, w), "compute"
	if w.Bytes > 0 && w.FLOP/all.Peak < p.Seconds {
		p.Ceiling = "memory"
	}
}

// outputsOf returns the number of outputs of a target, with all its classes.
func (p *Placement) outputsOf(t Target) (n int) {
	for _, s := range p.Split {
		if (t.Units > 0) == (s.Drivers > 0) && (t.Units == 0 || s.Name == t.Name) {
			n += s.Outputs
		}
	}
	return n
}

// divide splits the output among the targets, and the part of the cores among their classes. Split
// stays empty if a target would get no whole tile.
func (p *Placement) divide(o Output) {
	p.Split, p.Divided = nil, ""
	name, n, tile := o.larger()
	if n == 0 {
		return
	}
	sides := make([]Side, len(p.Targets))
	for i, t := range p.Targets {
		sides[i] = Side{Rate: t.Peak, Tile: tile}
	}
	for i, own := range divide(n, sides) {
		t := p.Targets[i]
		switch {
		case own == 0:
			p.Split = nil
			return
		case t.Units > 0:
			p.Split = append(p.Split, Piece{Name: t.Name, Drivers: t.Units, Outputs: own})
		default:
			p.Split = append(p.Split, t.pieces(own, tile, p.Regime)...)
		}
	}
	if len(p.Split) > 1 {
		p.Divided = name
	}
}

// pieces divides the part of the cores among their classes: by compute peaks, or by bandwidth if
// memory-bound. A class without a whole tile is left out.
func (t Target) pieces(n, tile int, g Regime) (out []Piece) {
	sides := make([]Side, len(t.Parts))
	for i, c := range t.Parts {
		sides[i] = Side{Rate: c.Peak, Tile: tile}
		if g == MemoryBound {
			sides[i].Rate = c.Read
		}
	}
	if len(sides) < 2 {
		return []Piece{{Name: t.Name, Outputs: n}}
	}
	for i, own := range divide(n, sides) {
		if own > 0 {
			out = append(out, Piece{Name: t.Parts[i].Class, PUs: t.Parts[i].PUs, Outputs: own})
		}
	}
	return out
}

// divide is Split with a new slice.
func divide(n int, sides []Side) []int {
	out := make([]int, len(sides))
	Split(n, sides, out)
	return out
}

// perByte formats an intensity.
func perByte(intensity float64) string {
	if math.IsInf(intensity, 1) {
		return "no bytes move"
	}
	return number(intensity) + " FLOP/B"
}

func number(v float64) string { return strconv.FormatFloat(v, 'g', 3, 64) }

// Alone returns the ceiling without shared operators: only cores of the fastest class, and no mixed
// ceiling.
func (r Ceiling) Alone() Ceiling {
	r.Mixed, r.Targets = 0, slices.Clone(r.Targets)
	if cores := &r.Targets[0]; len(cores.Parts) > 1 {
		best := cores.Parts[0]
		for _, p := range cores.Parts[1:] {
			if p.Peak > best.Peak {
				best = p
			}
		}
		cores.Peak, cores.Parts = best.Peak, []Part{best}
		if best.Read > 0 {
			cores.Read = best.Read
		}
	}
	return r
}

// Stages predicts attention on a matrix unit: the unit computes the products, and the vectors of
// the cores, which reach vectors FLOP/s, compute softmax. If tiles pass through both stages in a
// pipeline, the longer stage is the duration; in sequence it is the sum (SMEPilot section 4.2).
// Placements without a unit are returned unchanged.
func (r Ceiling) Stages(p Placement, s Step, vectors float64, sequence bool) Placement {
	unit := slices.IndexFunc(p.Targets, func(t Target) bool { return t.Units > 0 })
	if unit < 0 || vectors <= 0 {
		return p
	}
	cores := r.Targets[0]
	p.Targets, p.Split, p.Divided = []Target{p.Targets[unit]}, nil, ""
	products, softmax := r.Seconds(p.Targets[0], s.Work), s.Between/vectors
	p.Seconds, p.Why = math.Max(products, softmax), "tiles pass through both stages in a pipeline"
	if sequence {
		p.Seconds, p.Why = products+softmax, "one stage after the other"
	}
	p.Why = fmt.Sprintf("products take %s of the time of softmax on %s: %s", number(products/softmax), cores.Name,
		p.Why)
	return p
}

// tiles rounds n up to whole tiles.
func tiles(n, tile int) float64 { return float64((n + tile - 1) / tile * tile) }
