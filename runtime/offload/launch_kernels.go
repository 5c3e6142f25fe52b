package offload

import (
	"sandwich/microkernel"
	"sandwich/microkernel/devgen/kernels"
	"sandwich/runtime/kvcache"
	"sandwich/runtime/model"
	"sandwich/runtime/offload/handover"
)

// normRows returns the kernel that normalizes rows.
func (r *Runner) normRows() kernels.Norm {
	return kernels.Norm{Norm: true, Float: true}.For(r.model.Dims.Hidden)
}

// normOf returns the kernel of op i, an OpNorm or OpAddNorm with a norm. It quantizes the rows, if
// the next op reads them in this form first.
func (r *Runner) normOf(i int) kernels.Norm {
	k := r.normRows()
	k.Add = r.model.Ops[i].Kind == model.OpAddNorm
	k.Path = r.quantizedBefore(i + 1)
	return k
}

// quantizedBefore returns the path for which the op before op i quantizes its rows.
func (r *Runner) quantizedBefore(i int) microkernel.Compute {
	return quantizedBefore(r.model, r.onCores, i, func(weight int) microkernel.Compute {
		return r.assembly.Weights.At(0, weight).Compute
	})
}

// quantizedBefore returns the path for which the op before op i, a norm, quantizes its rows: that
// of the first weight of op i. It is ComputeF32 if the op before does not quantize.
func quantizedBefore(m *model.Model, onCores handover.Parts, i int,
	path func(weight int) microkernel.Compute) microkernel.Compute {
	if i == 0 || i >= len(m.Ops) || onCores.Has(i) || onCores.Has(i-1) {
		return microkernel.ComputeF32
	}
	norm, op := &m.Ops[i-1], &m.Ops[i]
	isNorm := norm.Norm != nil && (norm.Kind == model.OpNorm || norm.Kind == model.OpAddNorm)
	if !isNorm || op.Kind != model.OpMatMul || op.In != model.BufH || op.Wanted {
		return microkernel.ComputeF32
	}
	return path(op.W[0])
}

// quantization returns the kernel that quantizes rows of n elements for a path.
func quantization(path microkernel.Compute, n int) kernels.Norm {
	return kernels.Norm{Path: path}.For(n)
}

// maxPartBytes is the size of the results of blocks above which attention of few rows reads its
// blocks one after the other.
const maxPartBytes = 256 << 20

// attentionOf returns the kernel of an attention whose sequences may have many rows.
func attentionOf(op *model.Op) kernels.Attention {
	return kernels.Attention{HeadDim: op.Heads.Dim, Rows: 8, Window: op.Attn.Window > 0, Softcap: op.Attn.Softcap > 0,
		Sinks: op.Sinks != nil}
}

// partsOf returns the kernels of an attention whose sequences have at most the given number of
// tokens in the batch, or false if they are for fewer rows.
func partsOf(op *model.Op, tokens int) (part kernels.AttentionPart, merge kernels.AttentionMerge, ok bool) {
	rows := tokens * (op.Heads.Q / op.Heads.KV)
	if kernels.SupportsParts(op.Heads.Dim, rows) != nil {
		return part, merge, false
	}
	rows = powerOfTwo(rows) // so that few kernels have to be compiled
	window := op.Attn.Window > 0
	part = kernels.AttentionPart{HeadDim: op.Heads.Dim, Rows: rows, Window: window, Softcap: op.Attn.Softcap > 0}
	merge = kernels.AttentionMerge{HeadDim: op.Heads.Dim, Rows: rows, Window: window, Sinks: op.Sinks != nil}
	return part, merge, true
}

// visibleBlocks returns the most blocks of a store that the rows of a sequence see.
func (s *storeInputs) visibleBlocks(op *model.Op) int {
	if op.Attn.Window <= 0 {
		return s.blocks
	}
	return min(s.blocks, (op.Attn.Window+s.longest)/kvcache.BlockTokens+2)
}

// partBytes returns the size of the results of blocks of an attention op for a batch.
func partBytes(op *model.Op, k kernels.AttentionPart, s *storeInputs) uint64 {
	rows := s.sequences.n * s.visibleBlocks(op) * op.Heads.KV * k.Rows
	return uint64(4 * rows * kernels.PartWords(k.HeadDim))
}
