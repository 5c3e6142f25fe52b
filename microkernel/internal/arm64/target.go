// Package arm64 is the backend of arm64: Advanced SIMD (NEON) with dot products, matrix products
// and SME. It registers its target and the detection of its features during initialization.
// Everything about the instruction set is in this package and its subpackages: asm (encoder), gemm
// and vector (emitters; vector includes attention).
//
// The package must not import amd64 or package microkernel.
package arm64

import (
	"sandwich/microkernel/internal/arm64/gemm"
	"sandwich/microkernel/internal/arm64/vector"
	"sandwich/microkernel/internal/kernel"
)

func init() {
	kernel.RegisterDetector(detect)
	kernel.Register(kernel.NEON, &kernel.Target{
		Name: "neon", Needs: kernel.HasNEON, Lanes: gemm.Lanes, Registers: gemm.Registers, IntegerPorts: 2,
		Int8Dots: kernel.HasDotProd,
		Forms:    []kernel.Form{kernel.Lane, kernel.Load, kernel.Outer},
		Dots: []kernel.Dot{kernel.MMLA, kernel.SDot, kernel.MulL, kernel.MOPA, kernel.BFMMLA,
			kernel.BFDot},
		Peaks:     map[string]kernel.Features{"f32": 0, "int8": kernel.HasDotProd, "bf16": kernel.HasArmBF16},
		GEMM:      gemm.Generator{},
		Vector:    vector.Generator{},
		Attention: vector.Generator{},
		Probes:    probes{},
	})
}
