package thumb

import (
	"sandwich/microkernel"
	"sandwich/microkernel/qtype"
)

// unitCycles is rowCycles of a kernel on a matrix unit for bytes: weights become bytes once for all
// rows, and from then on the rate is the one that was measured for q8_0, in proportion to the
// vector instructions with which a type scales sums.
func (r Rates) unitCycles(s microkernel.Spec, m int) float64 {
	unpack, _ := r.work(s)
	once := (unpack + stores) / core.ports
	tiles := (m + s.MR - 1) / s.MR
	each := 8 / (core.ports * r.UnitKernel) * scalingOf(s.B) / scalingOf(microkernel.Q8_0)
	rows := float64(max(m, tiles*leastRows))
	memory := 1.12 * readCycles(s) // as rowCycles has it
	if s.Spread {
		return overlap(1.05*memory, 1.02*(once+rows*each))
	}
	return overlap(memory, once) + rows*each
}

// unitGain is how many times as fast as vectors a matrix unit must be by its measured rate. One PU
// alone measures it, and a product on all of them gains less by each: on two PUs of a Sapphire
// Rapids tiles took 0.88 to 1.11 of the time of vectors on one, and 1.18 to 1.29 on both (q8_0,
// products of 512 rows). It is also more than the noise of both rates.
const unitGain = 1.3

const (
	stores    = 8 // of 32 k of 16 columns as bytes
	leastRows = 4 // that a row tile takes the time of, at the least: its weights are loaded all the same
)

// scalingOf is the vector instructions for a row of the sums of 32 k of 16 columns: conversion,
// product of scales and FMA for each span, and what adds offsets.
func scalingOf(b microkernel.WeightType) float64 {
	d := b.Desc()
	spans := float64(qtype.SubBlockK / d.Span())
	switch {
	case !d.Affine():
		return 3 * spans
	case spans == 1:
		return 4
	}
	return 7 * spans // the sums of the activations of half a block are made first
}
