package roofline

import (
	"fmt"
	"math"

	"sandwich/microkernel"
	"sandwich/topotree"
)

// Work is the work of an operator: floating-point or integer operations, and bytes between memory
// and cores (Agent.xpu appendix B).
type Work struct {
	FLOP  float64
	Bytes float64
}

// Intensity returns FLOP per byte, infinite if no bytes move.
func (w Work) Intensity() float64 {
	if w.Bytes == 0 {
		return math.Inf(1)
	}
	return w.FLOP / w.Bytes
}

// Add returns the work of two operators that run one after another.
func (w Work) Add(o Work) Work { return Work{w.FLOP + o.FLOP, w.Bytes + o.Bytes} }

// MatMul returns the work of C[m,n] = A[m,k] B[n,k]^T with A and C in float32 and weights of bits
// per value (32 for f32, 16 for f16 and bf16, 8.5 for q8_0, 4.5 for q4_0). Each operand moves once,
// as with a good schedule and large caches.
func MatMul(m, n, k int, bits float64) Work {
	fm, fn, fk := float64(m), float64(n), float64(k)
	return Work{FLOP: 2 * fm * fn * fk, Bytes: fn*fk*bits/8 + 4*fm*fk + 4*fm*fn}
}

// Attention returns the work of attention for the last rows of a context. Each row attends to
// itself and to preceding positions, at most window of them (0: all). heads query heads of dim
// values share kvHeads key and value heads, which are cached with kvBits per value. Bytes counts
// each visible key and value once.
func Attention(rows, context, window, heads, kvHeads, dim int, kvBits float64) Work {
	if window == 0 {
		window = context
	}
	pairs := float64(rows) * float64(window)
	if short := window - (context - rows + 1); short > 0 { // positions that the first row lacks of a full window
		n := min(short, rows)
		pairs -= float64(n) * float64(2*short-n+1) / 2
	}
	seen := min(context, window+rows-1)
	return Work{FLOP: 4 * pairs * float64(heads) * float64(dim),
		Bytes: 2 * float64(seen) * float64(kvHeads) * float64(dim) * kvBits / 8}
}

// Target is a compute ceiling under the shared memory ceiling.
type Target struct {
	Name  string
	Peak  float64 // FLOP/s of all its workers
	Read  float64 // B/s that it reaches alone, if less than the memory ceiling; 0: equal
	Units int     // number of matrix units or devices, each driven by one core; 0: the target is cores
	Parts []Part  // classes of the cores, fastest first
}

// Part is the cores of one class.
type Part struct {
	Class string // "" if there is one class
	PUs   topotree.CPUSet
	Peak  float64 // FLOP/s; only the ratio to the other classes matters
	Read  float64 // B/s; only the ratio to the other classes matters
}

// Ceiling is one memory ceiling with several compute ceilings (SMEPilot section 3.2).
type Ceiling struct {
	Bandwidth float64  // B/s, shared by all targets
	Targets   []Target // the cores first
	Mixed     float64  // FLOP/s of all targets together, measured or quoted; 0: unknown
}

// Ridge returns the intensity in FLOP per byte above which target t is compute-bound.
func (r Ceiling) Ridge(t Target) float64 { return t.Peak / r.Bandwidth }

// Seconds returns the predicted duration of w on target t: the maximum of compute and memory time.
func (r Ceiling) Seconds(t Target, w Work) float64 {
	read := r.Bandwidth
	if t.Read > 0 {
		read = math.Min(read, t.Read)
	}
	return math.Max(w.FLOP/t.Peak, w.Bytes/read)
}

// Regime is the regime of an operator.
type Regime uint8

const (
	// MemoryBound operators are below the ridges of all targets.
	MemoryBound Regime = iota
	// RidgeCrossing operators are compute-bound on the slowest target and memory-bound on the
	// fastest.
	RidgeCrossing
	// ComputeBound operators are above the ridges of all targets.
	ComputeBound
)

// String returns memory-bound, ridge-crossing or compute-bound.
func (g Regime) String() string {
	switch g {
	case MemoryBound:
		return "memory-bound"
	case RidgeCrossing:
		return "ridge-crossing"
	case ComputeBound:
		return "compute-bound"
	}
	return fmt.Sprintf("regime %d", uint8(g))
}

// Regime compares the intensity of w with the ridges of the targets. A point on a ridge counts as
// compute-bound.
func (r Ceiling) Regime(w Work) Regime {
	i := w.Intensity()
	below, above := 0, 0
	for _, t := range r.Targets {
		if i < r.Ridge(t) {
			below++
		} else {
			above++
		}
	}
	switch {
	case above == 0:
		return MemoryBound
	case below == 0:
		return ComputeBound
	}
	return RidgeCrossing
}

// Bits returns the bits per value of a weight type in a file, including scales: 32 for f32, 8.5 for
// q8_0. For a type without kernels it returns 32.
func Bits(weightType string) float64 {
	t, err := microkernel.ParseWeightType(weightType)
	if err != nil {
		return 32
	}
	return 8 * float64(t.RowBytes(t.Block())) / float64(t.Block())
}
