package kernel

import (
	"fmt"
	"slices"
	"strings"
)

// ISA is the instruction set a kernel is generated for. What comes on top of it (VNNI, BF16) is in
// Features.
type ISA uint8

// The instruction sets, narrow to wide within an architecture.
const (
	Go     ISA = iota // plain Go, everywhere
	AVX2              // amd64: AVX2, FMA3 and F16C
	AVX512            // amd64: AVX-512 F, BW, DQ and VL
	NEON              // arm64
)

func (i ISA) String() string {
	if t := i.Target(); t != nil {
		return t.Name()
	}
	return fmt.Sprintf("isa(%d)", uint8(i))
}

// ParseISA is the inverse of String. The error lists what it knows.
func ParseISA(s string) (ISA, error) {
	var names []string
	for _, i := range all() {
		if i.String() == s {
			return i, nil
		}
		names = append(names, i.String())
	}
	return Go, fmt.Errorf("unknown instruction set %q (known: %s)", s, strings.Join(names, ", "))
}

// MarshalText and UnmarshalText let plan files spell an ISA by name.
func (i ISA) MarshalText() ([]byte, error) { return []byte(i.String()), nil }

// UnmarshalText parses the name of an ISA.
func (i *ISA) UnmarshalText(b []byte) (err error) {
	*i, err = ParseISA(string(b))
	return err
}

// Features is the set of CPU and operating-system abilities that kernels are gated on. A bit is set
// only where both the processor reports the instructions and the operating system saves the
// registers they use (CPUID leaf 7 and XCR0; HWCAP).
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
	HasAMX                          // AMX-TILE, AMX-INT8 and AMX-BF16, with the kernel's leave to use them
	HasSME                          // arm64 SME with streaming vectors of 256 bits at least
	HasSME512                       // the same with 512 bits at least
	HasArmBF16                      // arm64 BFDOT and BFMMLA
	HasSMEInt8                      // outer products of bytes in SME, whose sums were checked
)

var featureNames = [...]string{"avx2", "avx512", "neon", "avx512_vnni", "avx_vnni", "avx512_bf16", "avx512_vbmi",
	"avx512_fp16", "dotprod", "i8mm", "amx_int8", "sme", "sme512", "bf16", "sme_i8i32"}

// Has says whether all of g are in f.
func (f Features) Has(g Features) bool { return f&g == g }

// String lists the features by name, separated by commas.
func (f Features) String() string {
	var names []string
	for i, n := range featureNames {
		if f&(1<<i) != 0 {
			names = append(names, n)
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
		known := false
		for i, n := range featureNames {
			if n == name {
				f |= 1 << i
				known = true
			}
		}
		if !known {
			return 0, fmt.Errorf("unknown CPU feature %q (known: %s)", name, strings.Join(featureNames[:], ", "))
		}
	}
	return f, nil
}

// ISAs lists the instruction sets the features allow, widest first and Go last.
func (f Features) ISAs() []ISA {
	var out []ISA
	for _, i := range all() {
		if f.Has(i.Target().Needs()) {
			out = append(out, i)
		}
	}
	slices.SortStableFunc(out, func(a, b ISA) int { return b.Lanes() - a.Lanes() })
	return out
}

// Best is the widest instruction set the features allow.
func (f Features) Best() ISA { return f.ISAs()[0] }

// Supports says whether code for the instruction set runs with these features.
func (f Features) Supports(i ISA) bool {
	t := i.Target()
	return t != nil && f.Has(t.Needs())
}

// Closed drops the features that need others which are not there.
func (f Features) Closed() Features {
	if !f.Has(HasAVX2) {
		f &^= HasAVX512 | HasAVXVNNI
	}
	if !f.Has(HasAVX512) {
		f &^= HasVNNI | HasBF16 | HasVBMI | HasFP16 | HasAMX
	}
	if !f.Has(HasNEON) {
		f &^= HasDotProd | HasI8MM | HasSME | HasArmBF16
	}
	if !f.Has(HasSME) {
		f &^= HasSME512 | HasSMEInt8
	}
	return f
}
