package tp

import (
	"slices"

	"sandwich/runtime/model"
)

// Mode describes which operands an op has under tensor parallelism and which workers run it
// (ArcLight section 3 and appendix A).
type Mode uint8

const (
	// Serial: all workers run the op on one set of operands.
	Serial Mode = iota
	// Scatter: the first op of a parallel subgraph. Each rank reads the common input and writes its
	// own output.
	Scatter
	// Parallel: each rank runs the op on its own operands.
	Parallel
	// Gather: all workers sum the ranks' operands into one, in ascending order of ranks.
	Gather
)

var modeNames = [...]string{"serial", "scatter", "parallel", "gather"}

func (m Mode) String() string { return modeNames[m] }

// PerRank reports whether each rank runs the op separately.
func (m Mode) PerRank() bool { return m == Scatter || m == Parallel }

// Sync describes how the ranks wait for each other inside a parallel subgraph.
type Sync uint8

const (
	// SyncB: not at all. Inside a subgraph the workers of a rank wait only for each other
	// (ArcLight's asynchronous subgraphs).
	SyncB Sync = iota
	// SyncA: at a barrier of all workers after every op, for comparison.
	SyncA
)

// Op describes how the ranks run an op of a model.
type Op struct {
	Mode        Mode
	RankBarrier bool // the barrier after it is that of the rank's own workers
	FirstOnly   bool // several ranks, but only the first one has a summand
	AddsToX     bool // one rank: a product adds to X instead of writing Y, and the AddNorm after it only normalizes
	Rope        int  // index in model.Ropes of the rotation that it applies; -1 for none
	// FlagSync: no barrier follows the op. It produces the summands of the gather that follows, or
	// it is that gather, which synchronizes by the flags of allreduce.Sum.
	FlagSync bool
}

// Ops returns how the ranks run each op of a model. Ops whose operands are cut run per rank; ops
// that need entire rows run on all workers together. One rank makes all ops serial. m is the model
// of a rank's shard.
func Ops(m *model.Model, ranks int, sync Sync) []Op {
	out := make([]Op, len(m.Ops))
	ropes := m.Ropes()
	for i := range out {
		out[i].Rope = slices.Index(ropes, m.Ops[i].Rope)
	}
	if ranks == 1 {
		for i := 1; i < len(out); i++ {
			if addsPlainly(&m.Ops[i-1], &m.Ops[i]) {
				out[i-1].AddsToX, out[i].AddsToX = true, true
			}
		}
		return out
	}
	for i := range m.Ops {
		out[i].Mode = modeOf(m, &m.Ops[i])
		if out[i].Mode == Parallel && !(i > 0 && out[i-1].Mode.PerRank()) {
			out[i].Mode = Scatter
		}
	}
	for i := range m.Ops {
		if i > 0 && out[i].Mode == Gather && out[i-1].Mode == Serial {
			out[i].Mode, out[i].FirstOnly = Serial, true
		}
	}
	for i := range out {
		if sync == SyncA || !out[i].Mode.PerRank() || i+1 == len(out) {
			continue
		}
		out[i].RankBarrier = out[i+1].Mode.PerRank()
		if out[i+1].Mode == Gather {
			out[i].FlagSync, out[i+1].FlagSync = true, true
		}
	}
	return out
}

// addsPlainly reports whether a product can add its results to X directly.
func addsPlainly(product, sum *model.Op) bool {
	return product.Kind == model.OpMatMul && product.Outs[0] == model.BufY &&
		sum.Kind == model.OpAddNorm && sum.Post == nil && sum.Gain == nil && sum.Scale == 1
}

func modeOf(m *model.Model, op *model.Op) Mode {
	switch op.Kind {
	case model.OpEmbed, model.OpNorm, model.OpRoute, model.OpCap, model.OpInputs, model.OpGate, model.OpHeads,
		model.OpLatent, model.OpPool, model.OpSoftmax:
		return Serial
	case model.OpAddNorm:
		return Gather
	case model.OpMatMul:
		if !m.Weights[op.W[0]].Cut {
			return Serial
		}
	}
	return Parallel
}

// HaltsAfter reports whether a forward without cut ops can halt after the op: it cannot inside a
// parallel subgraph.
func (o *Op) HaltsAfter() bool { return !o.RankBarrier && !(o.FlagSync && o.Mode.PerRank()) }

// Step is one of Count steps in which an op runs, so that it does not delay a halt for long. Steps
// divide the outputs, so no step changes a result: an output element is one chain over k.
type Step struct{ Index, Count int }

// WholeOp is the step of an op that runs in one step.
var WholeOp = Step{0, 1}

// Last reports whether the step is the last one of its op.
func (s Step) Last() bool { return s.Index+1 == s.Count }

// Share returns the part of n units that the step computes: the first unit and their number.
func (s Step) Share(n int) (first, units int) {
	first = n * s.Index / s.Count
	return first, n*(s.Index+1)/s.Count - first
}
