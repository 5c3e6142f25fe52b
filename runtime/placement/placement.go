package placement

import (
	"cmp"
	"math"
	"slices"
	"time"

	"sandwich/runtime/phase"
)

// Line predicts the duration of a forward as a linear function of its rows. The zero Line predicts
// no time.
type Line struct {
	Fixed time.Duration // of every forward, such as the time to read the weights or to start kernels
	Row   float64       // nanoseconds per row
}

// Through returns the Line through the durations of forwards of two numbers of rows (anchors). It
// is constant if the numbers are equal or if fewer rows take longer.
func Through(rowsA int, a time.Duration, rowsB int, b time.Duration) Line {
	if rowsA > rowsB {
		rowsA, a, rowsB, b = rowsB, b, rowsA, a
	}
	if rowsA == rowsB || b <= a {
		return Line{Fixed: max(a, b)}
	}
	row := float64(b-a) / float64(rowsB-rowsA)
	return Line{Fixed: max(0, a-time.Duration(row*float64(rowsA))), Row: row}
}

// Plus returns the Line of forwards that consist of l and a share of o.
func (l Line) Plus(o Line, share float64) Line {
	return Line{Fixed: l.Fixed + time.Duration(share*float64(o.Fixed)), Row: l.Row + share*o.Row}
}

// Of returns the predicted duration of a forward, at least one nanosecond.
func (l Line) Of(rows int) time.Duration {
	return max(1, l.Fixed+time.Duration(min(l.Row*float64(rows), math.MaxInt64/4)))
}

// Side predicts the forwards of the cores or of a device, by phase: of a chunk of one prompt, and
// of a decode batch. Anchors should enclose the rows of the load's forwards.
type Side [phase.Count]Line

// Rates predicts the forwards of both sides, and the copies of the keys and values of one position
// in all layers, in nanoseconds.
type Rates struct {
	Cores, Device Side
	// ToCores is paid with every forward of the device, for each of its rows. ToDevice is paid for
	// the last chunk of a prompt before its first decode batch on the device if the cores computed
	// the prompt; earlier chunks are copied meanwhile.
	ToCores, ToDevice float64
	// Shared reports whether the cores compute a part of the device's forwards, so that forwards of
	// both phases run one after the other.
	Shared bool
}

// Load describes the requests for which a placement is chosen: so many of one class arrive at once
// and have prompts and answers of equal length. Numbers below one count as one.
type Load struct {
	Requests int
	Prompt   int // tokens
	Output   int // tokens
	Chunk    int // most tokens of a prefill
}

// Estimate is a placement with its predicted result.
type Estimate struct {
	Device  []phase.Phase // phases that run on the device, in the order of phase.All; nil: none
	Latency time.Duration // mean time from the arrival of a request of the load to its last token
}

// Choose predicts every placement of the phases for a load and returns them, the best first. Of
// equal ones, that with fewer phases on the device precedes.
func Choose(l Load, r Rates) []Estimate {
	l.Requests, l.Prompt = max(1, l.Requests), max(1, l.Prompt)
	l.Output, l.Chunk = max(1, l.Output), max(1, l.Chunk)
	list := []Estimate{
		{},
		{Device: []phase.Phase{phase.Prefill}},
		{Device: []phase.Phase{phase.Decode}},
		{Device: phase.All[:]},
	}
	for i := range list {
		list[i].Latency = latency(l, r, list[i].Device)
	}
	slices.SortStableFunc(list, func(a, b Estimate) int { return cmp.Compare(a.Latency, b.Latency) })
	return list
}

// latency predicts the mean latency under a placement.
func latency(l Load, r Rates, device []phase.Phase) time.Duration {
	s := schedule{load: l, left: make([]int, l.Requests)}
	for _, p := range phase.All {
		s.forward[p] = r.Cores[p]
		if slices.Contains(device, p) {
			s.forward[p] = r.Device[p]
			s.forward[p].Row += r.ToCores
		}
	}
	decodes := slices.Contains(device, phase.Decode)
	together := slices.Contains(device, phase.Prefill) == decodes
	if decodes && !together {
		s.handover = time.Duration(r.ToDevice * float64(min(l.Prompt, l.Chunk)))
	}
	if together || r.Shared {
		s.alternate()
	} else {
		s.overlap()
	}
	return s.sum / time.Duration(l.Requests)
}
