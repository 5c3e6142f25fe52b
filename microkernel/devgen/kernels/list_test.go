package kernels

import (
	"testing"

	"sandwich/microkernel"
	"sandwich/microkernel/devgen"
	"sandwich/microkernel/qtype"
)

// allKernels returns one kernel of every kind and variant.
func allKernels(t *testing.T) (list []*devgen.Kernel) {
	add := func(k *devgen.Kernel, err error) { list = append(list, build(t, k, err)) }
	for _, typ := range gemmTypes {
		for _, g := range gemmVariants(typ) {
			add(g.Kernel())
		}
		if typ.Quantized() {
			for _, g := range rowVariants(typ) {
				add(g.Kernel())
			}
		}
		add(Embed{Type: typ, Packed: true}.Kernel())
		add(Embed{Type: typ}.Kernel())
	}
	for _, typ := range []qtype.Type{qtype.Q2_K, qtype.Q4_K, qtype.Q6_K, qtype.IQ4_XS, qtype.IQ2_S} {
		g := GEMM{Weight: typ, Path: microkernel.ComputeInt8K, Rows: 2}
		add(g.Kernel())
		add(RowGEMM(g).Kernel())
	}
	for _, path := range []microkernel.Compute{microkernel.ComputeInt8, microkernel.ComputeInt8Superblock,
		microkernel.ComputeInt8K} {
		add(Norm{Path: path, Words: 2}.Kernel())
		add(Norm{Norm: true, Path: path, Words: 1}.Kernel())
		add(Norm{Add: true, Norm: true, Float: true, Path: path, Words: 4}.Kernel())
	}
	add(Norm{Norm: true, Float: true, Words: 4}.Kernel())
	add(Rotate{HeadDim: 128, Rotated: 128, Neox: true, QNorm: true, KNorm: true}.Kernel())
	add(Rotate{HeadDim: 40, Rotated: 24}.Kernel())
	add(Attention{HeadDim: 128, Rows: 8}.Kernel())
	add(Attention{HeadDim: 40, Rows: 1, Window: true, Softcap: true}.Kernel())
	add(Attention{HeadDim: 64, Rows: 8, Window: true, Sinks: true}.Kernel())
	add(AttentionPart{HeadDim: 128, Rows: 4}.Kernel())
	add(AttentionPart{HeadDim: 256, Rows: 8, Window: true, Softcap: true}.Kernel())
	add(AttentionMerge{HeadDim: 128, Rows: 4}.Kernel())
	add(AttentionMerge{HeadDim: 64, Rows: 8, Window: true, Sinks: true}.Kernel())
	add(AddRows())
	add(GatherRows())
	add(GatherKV{HeadDim: 128}.Kernel())
	add(GatherKV{HeadDim: 40}.Kernel())
	add(Copy())
	return list
}
