package offload

import (
	"sandwich/microkernel"
	"sandwich/microkernel/devgen/kernels"
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
