package execgraph

import (
	"slices"
	"strings"

	"sandwich/plans"
	"sandwich/runtime/model"
	"sandwich/runtime/phase"
)

// access lists the activations that an op reads and writes.
func access(op *model.Op) (reads, writes []model.Buf) {
	switch op.Kind {
	case model.OpEmbed:
		return nil, []model.Buf{model.BufX}
	case model.OpInputs:
		return []model.Buf{model.BufInputs}, []model.Buf{model.BufInputs}
	case model.OpNorm:
		if op.Shift != nil {
			return []model.Buf{model.BufX}, []model.Buf{model.BufX}
		}
		return []model.Buf{model.BufX}, []model.Buf{model.BufH}
	case model.OpAddNorm:
		reads, writes = []model.Buf{model.BufX, model.BufY}, []model.Buf{model.BufX}
		if op.Norm != nil && op.Shift == nil {
			writes = append(writes, model.BufH)
		}
		return reads, writes
	case model.OpRotate:
		return []model.Buf{model.BufQ, model.BufK, model.BufV}, []model.Buf{model.BufQ}
	case model.OpLatent:
		return []model.Buf{model.BufFull, model.BufKeyVal, model.BufK, model.BufLatentKV}, []model.Buf{model.BufQ}
	case model.OpAttention:
		return []model.Buf{model.BufQ}, []model.Buf{model.BufAtt}
	case model.OpGather:
		return []model.Buf{model.BufH}, []model.Buf{model.BufY}
	case model.OpRoute:
		return []model.Buf{model.BufRouter}, nil
	case model.OpDispatch:
		return []model.Buf{model.BufH}, []model.Buf{model.BufExpert}
	case model.OpCombine:
		return combineReads(op), []model.Buf{model.BufY}
	case model.OpConv:
		if op.Delta == nil {
			return []model.Buf{model.BufMix}, op.Outs
		}
		mix := []model.Buf{model.BufMix, model.BufAlpha, model.BufBeta}
		return mix, mix
	case model.OpDelta:
		return []model.Buf{model.BufMix, model.BufAlpha, model.BufBeta}, []model.Buf{model.BufAtt}
	case model.OpOutGate:
		return []model.Buf{op.In, model.BufAtt}, []model.Buf{model.BufAtt}
	case model.OpCap, model.OpSoftmax:
		return []model.Buf{op.In}, []model.Buf{op.In}
	case model.OpGate, model.OpRowNorm:
		return append([]model.Buf{op.In}, op.Outs...), op.Outs
	}
	return []model.Buf{op.In}, op.Outs
}

func combineReads(op *model.Op) []model.Buf {
	reads := []model.Buf{model.BufExpert}
	if op.Gate != nil {
		reads = append(reads, model.BufH)
	}
	if op.Accumulate {
		reads = append(reads, model.BufY)
	}
	return reads
}

// bufNames names activations in edges.
var bufNames = map[model.Buf]string{model.BufX: "residual", model.BufH: "normalized", model.BufQ: "queries",
	model.BufAtt: "attention output", model.BufY: "output", model.BufRouter: "router logits",
	model.BufLogits: "logits", model.BufZ: "gate", model.BufMix: "mixed projections", model.BufAlpha: "decays",
	model.BufBeta: "rates", model.BufInputs: "embeddings per layer"}

// flow adds the edges: activations from the op that wrote them last, keys and values to and from
// the caches, and logits to sampling.
func (b *builder) flow() {
	written := map[model.Buf]int{} // op that wrote an activation last
	b.holds = map[model.Buf][]string{}
	for n := range b.groups {
		var from []int // groups, in order
		passed := map[int][]model.Buf{}
		moved := map[int]float64{} // bytes
		for _, i := range b.groups[n].ops {
			op := &b.Model.Ops[i]
			reads, writes := access(op)
			for _, buf := range reads {
				w, ok := written[buf]
				if at := b.group[w]; ok && at != n && !slices.Contains(passed[at], buf) {
					if passed[at] == nil {
						from = append(from, at)
					}
					passed[at] = append(passed[at], buf)
					moved[at] += b.fetch(buf, b.kernelAt(n).Bound)
				}
			}
			for _, buf := range writes {
				written[buf] = i
				b.holds[buf] = []string{b.kernelAt(n).Bound}
			}
		}
		for _, f := range from {
			b.pass(f, n, passed[f], moved[f])
		}
		b.caches(n)
	}
	if w, ok := written[model.BufLogits]; ok && b.Heads > 0 {
		k := b.kernelAt(b.group[w])
		n := b.bytes(model.BufLogits)
		b.edge(Edge{From: b.graph.Label(k), To: sampling, Carries: bufNames[model.BufLogits], Bytes: n}, k.Bound,
			Cores, n)
	}
}

func (b *builder) kernelAt(group int) *Kernel { return &b.graph.Kernels[b.kernel[group]] }

// fetch notes that a target reads an activation and returns the bytes that move to its memory: none
// if they are there already.
func (b *builder) fetch(buf model.Buf, target string) float64 {
	if slices.Contains(b.holds[buf], target) {
		return 0
	}
	b.holds[buf] = append(b.holds[buf], target)
	return b.bytes(buf)
}

// pass adds an edge with activations, of which some bytes move.
func (b *builder) pass(from, to int, bufs []model.Buf, moved float64) {
	f, t := b.kernelAt(from), b.kernelAt(to)
	e := Edge{From: b.graph.Label(f), To: b.graph.Label(t)}
	var names []string
	slices.Sort(bufs)
	for _, buf := range bufs {
		name, ok := bufNames[buf]
		if !ok {
			name = "activations"
		}
		names, e.Bytes = append(names, name), e.Bytes+b.bytes(buf)
	}
	e.Carries = strings.Join(slices.Compact(names), ", ")
	b.edge(e, f.Bound, t.Bound, moved)
}

// bytes returns the size of an activation of the forward.
func (b *builder) bytes(buf model.Buf) float64 {
	rows := b.Rows
	if buf == model.BufLogits {
		rows = b.Heads
	}
	return 4 * float64(b.Model.RowsOf(buf, rows)*b.Model.Width(buf))
}

// caches adds the edges of keys and values of a group. The cores' cache has those of both phases.
func (b *builder) caches(group int) {
	const what = "keys and values"
	k := b.kernelAt(group)
	for _, i := range b.groups[group].ops {
		op := &b.Model.Ops[i]
		shape := plans.ModelShape{Layers: 1, KVHeads: op.Heads.KV, HeadDim: op.Heads.Dim}
		position := float64(shape.KVBytesPerToken(b.KV))
		switch op.Kind {
		case model.OpRotate, model.OpLatent:
			to := []string{Cores}
			for _, t := range []string{k.Bound, b.Other} {
				if !slices.Contains(to, t) {
					to = append(to, t)
				}
			}
			for _, t := range to {
				b.edge(Edge{From: b.graph.Label(k), To: cacheOf + t, Carries: what, Bytes: position * float64(b.Rows),
					Overlapped: t != Cores && t != k.Bound}, k.Bound, t, position*float64(b.Rows))
			}
		case model.OpAttention:
			positions, sequences := b.Context+b.Rows, 1
			if b.Phase == phase.Decode {
				positions, sequences = b.Context+1, b.Rows
			}
			if w := op.Attn.Window; w > 0 && b.Phase == phase.Decode {
				positions = min(positions, w)
			}
			b.edge(Edge{From: cacheOf + k.Bound, To: b.graph.Label(k), Carries: what,
				Bytes: position * float64(positions*sequences)}, k.Bound, k.Bound, 0)
		}
	}
}

// edge adds an edge between two targets, of whose bytes some move, or counts it where there is an
// equal one.
func (b *builder) edge(e Edge, from, to string, moved float64) {
	if e.Moves = from != to && moved > 0; e.Moves {
		per := b.Device.Receive
		if to != Cores {
			per = b.Device.Send
		}
		e.Seconds = moved * per
	}
	e.Overlapped = e.Overlapped && e.Moves
	for i := range b.graph.Edges {
		known := b.graph.Edges[i]
		known.Count = 0
		if known == e {
			b.graph.Edges[i].Count++
			return
		}
	}
	e.Count = 1
	b.graph.Edges = append(b.graph.Edges, e)
}
