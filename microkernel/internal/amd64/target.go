// Package amd64 is the backend of amd64: AVX2 and AVX-512, with the extensions VNNI, AMX and
// bfloat16 dot products. It registers its targets and the detection of their features during
// initialization. Everything about the instruction set is in this package and its subpackages: asm
// (encoder), gemm, vector, attention (emitters) and lanes (common to the last two).
//
// The package must not import arm64 or package microkernel.
package amd64

import (
	"sandwich/microkernel/internal/amd64/asm"
	"sandwich/microkernel/internal/amd64/attention"
	"sandwich/microkernel/internal/amd64/gemm"
	"sandwich/microkernel/internal/amd64/vector"
	"sandwich/microkernel/internal/kernel"
)

func init() {
	kernel.RegisterDetector(detect)
	kernel.Register(kernel.AVX2, &kernel.Target{
		Name: "avx2", Needs: kernel.HasAVX2, Lanes: 8, Registers: 16, IntegerPorts: 3,
		Int8Dots: kernel.HasVNNI | kernel.HasAVXVNNI, Int8Bits: 9, // a third port for integers
		Forms: []kernel.Form{kernel.Load}, Dots: []kernel.Dot{kernel.AVXVNNI, kernel.MAdd}, Peaks: needsOf(peaksAVX2),
		GEMM:      gemm.Generator{ISA: kernel.AVX2, Level: asm.AVX2},
		Vector:    vector.Generator{Level: asm.AVX2},
		Attention: attention.Generator{Level: asm.AVX2},
		Probes:    probes{name: "avx2", level: asm.AVX2, lanes: 8, registers: 16, peaks: peaksAVX2},
	})
	kernel.Register(kernel.AVX512, &kernel.Target{
		Name: "avx512", Needs: kernel.HasAVX2 | kernel.HasAVX512, Lanes: 16, Registers: 32, IntegerPorts: 2,
		Int8Dots: kernel.HasVNNI | kernel.HasAVXVNNI, Int8Bits: 8, MatrixUnit: kernel.HasAMX,
		Forms:     []kernel.Form{kernel.Load, kernel.Embed, kernel.DequantOnce, kernel.Overlap},
		Dots:      []kernel.Dot{kernel.VNNI, kernel.MAdd, kernel.AMX, kernel.DPBF16, kernel.TDPBF16},
		Peaks:     needsOf(peaksAVX512),
		GEMM:      gemm.Generator{ISA: kernel.AVX512, Level: asm.AVX512},
		Vector:    vector.Generator{Level: asm.AVX512},
		Attention: attention.Generator{Level: asm.AVX512},
		Probes:    probes{name: "avx512", level: asm.AVX512, lanes: 16, registers: 32, peaks: peaksAVX512, amx: true},
	})
}
