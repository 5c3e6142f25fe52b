package exec

import (
	"slices"

	"sandwich/runtime/model"
)

// opMode says on what an op works under tensor parallelism, and with whom (ArcLight section 3 and
// appendix A).
type opMode uint8

const (
	// onSerial: all workers on one set of operands.
	onSerial opMode = iota
	// onScatter: the first op of a parallel subgraph. Each rank reads the one input of all in
	// place, and writes its own output.
	onScatter
	// onParallel: each rank on its own operands.
	onParallel
	// onGather: all workers sum what each rank has into one, in ascending order of ranks.
	onGather
)

var modeNames = [...]string{"serial", "scatter", "parallel", "gather"}

func (m opMode) String() string { return modeNames[m] }

// apart tells whether the ranks run the op each for itself.
func (m opMode) apart() bool { return m == onScatter || m == onParallel }

// Sync is how the thread groups of the ranks wait for each other inside a parallel subgraph.
type Sync uint8

const (
	// SyncB: not at all. Inside a subgraph the workers of a rank wait for each other only
	// (ArcLight's asynchronous subgraphs).
	SyncB Sync = iota
	// SyncA: a barrier of all workers behind every op, for comparison.
	SyncA
)

// step is an op with its mode.
type step struct {
	mode  opMode
	local bool // the barrier behind it is the group's own
	alone bool // several ranks, and yet what is added is with the first one alone
	adds  bool // one rank: a product adds to X what it would write to Y, and the AddNorm behind it only normalizes
	rope  int  // which of the model's ropes it turns heads by; -1 for none
	// no barrier behind it: the op makes what the gather that follows sums, or is that gather
	// (allreduce.Sum)
	meet bool
}

// steps gives every op of a model its mode: those whose operands are cut run apart, those that need
// all of a row run together. One rank makes everything serial. m is a rank's share of the model.
func steps(m *model.Model, ranks int, sync Sync) []step {
	out := make([]step, len(m.Ops))
	ropes := m.Ropes()
	for i := range out {
		out[i].rope = slices.Index(ropes, m.Ops[i].Rope)
	}
	if ranks == 1 {
		for i := 1; i < len(out); i++ {
			if addsPlainly(&m.Ops[i-1], &m.Ops[i]) {
				out[i-1].adds, out[i].adds = true, true
			}
		}
		return out
	}
	for i := range m.Ops {
		out[i].mode = modeOf(m, &m.Ops[i])
		if out[i].mode == onParallel && !(i > 0 && out[i-1].mode.apart()) {
			out[i].mode = onScatter
		}
	}
	for i := range m.Ops {
		if i > 0 && out[i].mode == onGather && out[i-1].mode == onSerial {
			out[i].mode, out[i].alone = onSerial, true
		}
	}
	for i := range out {
		if sync == SyncA || !out[i].mode.apart() || i+1 == len(out) {
			continue
		}
		out[i].local = out[i+1].mode.apart()
		if out[i+1].mode == onGather {
			out[i].meet, out[i+1].meet = true, true
		}
	}
	return out
}

// addsPlainly tells whether a product's sums may go to X as they are.
func addsPlainly(product, sum *model.Op) bool {
	return product.Kind == model.OpMatMul && product.Outs[0] == model.BufY &&
		sum.Kind == model.OpAddNorm && sum.Post == nil && sum.Gain == nil && sum.Scale == 1
}

func modeOf(m *model.Model, op *model.Op) opMode {
	switch op.Kind {
	case model.OpEmbed, model.OpNorm, model.OpRoute, model.OpCap, model.OpInputs, model.OpGate, model.OpHeads,
		model.OpLatent:
		return onSerial
	case model.OpAddNorm:
		return onGather
	case model.OpMatMul:
		if !m.Weights[op.W[0]].Cut {
			return onSerial
		}
	}
	return onParallel
}
