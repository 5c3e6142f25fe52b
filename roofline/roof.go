package roofline

import (
	"fmt"
	"math"

	"sandwich/topotree"
)

// Work is what an operator does: W floating-point (or integer) operations and Q bytes between
// memory and cores (Agent.xpu appendix B).
type Work struct {
	FLOP  float64
	Bytes float64
}

// Intensity is I = W/Q in FLOP per byte; infinite when no byte moves.
func (w Work) Intensity() float64 {
	if w.Bytes == 0 {
		return math.Inf(1)
	}
	return w.FLOP / w.Bytes
}

// Add is the work of two operators that run after each other.
func (w Work) Add(o Work) Work { return Work{w.FLOP + o.FLOP, w.Bytes + o.Bytes} }

// MatMul is the work of C[m,n] = A[m,k] B[n,k]^T with A and C in float32 and weights of bits per
// value (32 f32, 16 f16 and bf16, 8.5 q8_0, 4.5 q4_0). Each operand moves once: caches are taken as
// large enough, which is what a good schedule reaches.
func MatMul(m, n, k int, bits float64) Work {
	fm, fn, fk := float64(m), float64(n), float64(k)
	return Work{FLOP: 2 * fm * fn * fk, Bytes: fn*fk*bits/8 + 4*fm*fk + 4*fm*fn}
}

// Attention is the work of the last rows of a context, each over the positions before and including
// it, of which a layer with a window sees that many (0: all); heads query heads of dim values share
// kvHeads key and value heads, cached with kvBits per value. Bytes are the cached keys and values
// that any of the rows sees, once.
func Attention(rows, context, window, heads, kvHeads, dim int, kvBits float64) Work {
	if window == 0 {
		window = context
	}
	pairs := float64(rows) * float64(window)
	if short := window - (context - rows + 1); short > 0 { // that the first row lacks of a full window
		n := min(short, rows)
		pairs -= float64(n) * float64(2*short-n+1) / 2
	}
	seen := min(context, window+rows-1)
	return Work{FLOP: 4 * pairs * float64(heads) * float64(dim),
		Bytes: 2 * float64(seen) * float64(kvHeads) * float64(dim) * kvBits / 8}
}

// Target is one way to execute: a compute ceiling under the shared memory ceiling.
type Target struct {
	Name  string
	Peak  float64 // FLOP/s of all its workers together
	Read  float64 // B/s that it reads alone, where that is less than the ceiling; 0: as the ceiling
	Units int     // of a matrix unit or a device, each with one core that drives it; 0: these are cores
	Parts []Part  // of cores: their classes, fastest first
}

// Part is the cores of one class.
type Part struct {
	Class string // "" where all are of one
	PUs   topotree.CPUSet
	Peak  float64 // FLOP/s; only the ratio to the other classes matters
	Read  float64 // B/s that they read alone; likewise
}

// Ceiling is one memory ceiling with several compute ceilings (SMEPilot section 3.2).
type Ceiling struct {
	Bandwidth float64  // B/s, shared by all targets
	Targets   []Target // the cores first
	Mixed     float64  // FLOP/s of all targets at once, as it was measured or quoted; 0: nobody knows
}

// Ridge is the intensity above which target t is bound by compute: R = P/B in FLOP per byte.
func (r Ceiling) Ridge(t Target) float64 { return t.Peak / r.Bandwidth }

// Seconds is the predicted time max(W/P, Q/B) of w on target t.
func (r Ceiling) Seconds(t Target, w Work) float64 {
	read := r.Bandwidth
	if t.Read > 0 {
		read = math.Min(read, t.Read)
	}
	return math.Max(w.FLOP/t.Peak, w.Bytes/read)
}

// Regime says what bounds an operator.
type Regime uint8

const (
	// MemoryBound operators lie below every ridge: no target is faster than the memory.
	MemoryBound Regime = iota
	// RidgeCrossing operators are compute-bound on the slowest target and memory-bound on the
	// fastest.
	RidgeCrossing
	// ComputeBound operators lie above every ridge.
	ComputeBound
)

// String is the regime as it is printed: memory-bound, ridge-crossing or compute-bound.
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

// Regime places w between the ridges of the targets. A point on a ridge counts as compute-bound
// there.
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
