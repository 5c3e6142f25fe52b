package exec

import (
	"slices"

	"sandwich/runtime/model"
)

// prepareAttention makes one Attention for each kind of the model's layers.
func (r *rank) prepareAttention(e *Executor, c Config) error {
	group := e.model.Dims.Heads / e.model.Dims.KVHeads
	r.attend = make([]*Attention, len(e.model.Ops))
	for i := range e.model.Ops {
		op := &e.model.Ops[i]
		if op.Kind != model.OpAttention {
			continue
		}
		kind := AttentionKind{Group: group, Window: op.Attn.Window, Softcap: op.Attn.Softcap}
		at := slices.IndexFunc(r.attends, func(a *Attention) bool { return a.AttentionKind == kind })
		if at < 0 {
			a, err := NewAttention(e.vec.ISA(), r.kv, kind, c.Workers.Pool.Size(), c.team())
			if err != nil {
				return err
			}
			a.leave(r.part.share.Heads.Lo-r.part.share.KVHeads.Lo*group, r.part.share.Heads.Len())
			at = len(r.attends)
			r.attends = append(r.attends, a)
		}
		r.attend[i] = r.attends[at]
	}
	return nil
}

// attention is OpAttention.
func (e *Executor) attention(g *group, i int) {
	op := &g.part.model.Ops[i]
	var sinks []float32
	if op.Sinks != nil {
		sinks = op.Sinks.Data
	}
	g.rank.attend[i].Run(g.w, op.Layer, op.Attn.Scale, sinks, g.bufs.rowsOf(model.BufQ), g.bufs.rowsOf(model.BufAtt))
}
