package kernel

import (
	"fmt"
	"strings"
)

// Features is a set of CPU and operating-system abilities that kernels are gated on. A bit is set
// only if the processor reports the instructions and the operating system saves the registers they
// use (CPUID leaf 7 and XCR0; HWCAP).
type Features uint32

// The features. The first three stand for whole instruction sets.
const (
	HasAVX2    Features = 1 << iota // AVX2, FMA3, F16C
	HasAVX512                       // AVX-512 F, BW, DQ, VL
	HasNEON                         // Advanced SIMD
	HasVNNI                         // AVX512_VNNI: VPDPBUSD on 512 bits
	HasAVXVNNI                      // AVX-VNNI: VPDPBUSD on 256 bits
	HasBF16                         // AVX512_BF16: VDPBF16PS
	HasVBMI                         // AVX512_VBMI: VPERMB
	HasFP16                         // AVX512_FP16
	HasDotProd                      // arm64 SDOT
	HasI8MM                         // arm64 SMMLA
	HasAMX                          // AMX-TILE, AMX-INT8 and AMX-BF16, with permission to use tile registers
	HasSME                          // arm64 SME with streaming vectors of at least 256 bits
	HasSME512                       // arm64 SME with streaming vectors of at least 512 bits
	HasArmBF16                      // arm64 BFDOT and BFMMLA
	HasSMEInt8                      // outer products of bytes in SME that passed a self-test
)

// featureInfo is the name of a feature and the features without which it is dropped.
type featureInfo struct {
	name  string
	needs Features
}

// features describes the features, by bit. Plan files and profiles store the names.
var features = []featureInfo{
	{"avx2", 0},
	{"avx512", HasAVX2},
	{"neon", 0},
	{"avx512_vnni", HasAVX512},
	{"avx_vnni", HasAVX2},
	{"avx512_bf16", HasAVX512},
	{"avx512_vbmi", HasAVX512},
	{"avx512_fp16", HasAVX512},
	{"dotprod", HasNEON},
	{"i8mm", HasNEON},
	{"amx_int8", HasAVX512},
	{"sme", HasNEON},
	{"sme512", HasSME},
	{"bf16", HasNEON},
	{"sme_i8i32", HasSME},
}

// RegisterFeature adds a feature that is dropped without the features it needs, and returns its
// bit. It is for package initialization: no other function of this package may run at the same
// time.
func RegisterFeature(name string, needs Features) Features {
	features = append(features, featureInfo{name, needs})
	return 1 << (len(features) - 1)
}

// Has reports whether all features of g are in f.
func (f Features) Has(g Features) bool { return f&g == g }

// String lists the features by name, separated by commas.
func (f Features) String() string {
	var names []string
	for i, info := range features {
		if f&(1<<i) != 0 {
			names = append(names, info.name)
		}
	}
	return strings.Join(names, ",")
}

// ParseFeatures is the inverse of String.
func ParseFeatures(s string) (Features, error) {
	var f Features
	for name := range strings.SplitSeq(s, ",") {
		if name == "" {
			continue
		}
		bit, known := featureNamed(name)
		if !known {
			return 0, fmt.Errorf("unknown CPU feature %q (known: %s)", name, strings.Join(featureNames(), ", "))
		}
		f |= bit
	}
	return f, nil
}

func featureNamed(name string) (bit Features, known bool) {
	for i, info := range features {
		if info.name == name {
			return 1 << i, true
		}
	}
	return 0, false
}

func featureNames() (out []string) {
	for _, info := range features {
		out = append(out, info.name)
	}
	return out
}

// Closed returns f without the features that need others which are not in f.
func (f Features) Closed() Features {
	for changed := true; changed; {
		changed = false
		for i, info := range features {
			if f&(1<<i) != 0 && !f.Has(info.needs) {
				f &^= 1 << i
				changed = true
			}
		}
	}
	return f
}
