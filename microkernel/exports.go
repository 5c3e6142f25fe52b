package microkernel

import (
	"sandwich/microkernel/internal/kernel"
	"sandwich/microkernel/internal/ref"
)

// What a kernel is, what a CPU has and what a call looks like: shared with the backends, and
// documented where they are declared.
type (
	ISA      = kernel.ISA
	Features = kernel.Features
	Compute  = kernel.Compute
	Dot      = kernel.Dot
	Spec     = kernel.Spec
	GemmArgs = kernel.GemmArgs
	ActQ8    = kernel.ActQ8
)

// The instruction sets, narrow to wide within an architecture. Outside the backends they are names:
// what one can do is asked.
const (
	Go     = kernel.Go
	AVX2   = kernel.AVX2
	AVX512 = kernel.AVX512
	NEON   = kernel.NEON
)

// The features.
const (
	HasAVX2    = kernel.HasAVX2
	HasAVX512  = kernel.HasAVX512
	HasNEON    = kernel.HasNEON
	HasVNNI    = kernel.HasVNNI
	HasAVXVNNI = kernel.HasAVXVNNI
	HasBF16    = kernel.HasBF16
	HasVBMI    = kernel.HasVBMI
	HasFP16    = kernel.HasFP16
	HasDotProd = kernel.HasDotProd
	HasI8MM    = kernel.HasI8MM
	HasAMX     = kernel.HasAMX
	HasSME     = kernel.HasSME
	HasSME512  = kernel.HasSME512
	HasArmBF16 = kernel.HasArmBF16
	HasSMEInt8 = kernel.HasSMEInt8
)

// The compute paths.
const (
	ComputeF32  = kernel.ComputeF32
	ComputeInt8 = kernel.ComputeInt8
	ComputeBF16 = kernel.ComputeBF16

	ComputeInt8Superblock = kernel.ComputeInt8Superblock
	Computes              = kernel.Computes // their number
)

// The dot products.
const (
	NoDot   = kernel.NoDot
	VNNI    = kernel.VNNI
	AVXVNNI = kernel.AVXVNNI
	MAdd    = kernel.MAdd
	MMLA    = kernel.MMLA
	SDot    = kernel.SDot
	MulL    = kernel.MulL
	AMX     = kernel.AMX
	MOPA    = kernel.MOPA
	DPBF16  = kernel.DPBF16
	BFMMLA  = kernel.BFMMLA
	BFDot   = kernel.BFDot
)

// MaxSinglePrefetch is the greatest prefetch distance at which a kernel asks for each line once.
const MaxSinglePrefetch = kernel.MaxSinglePrefetch

// The blocks of quantized activations, see ActQ8.
const (
	ActQ8Bytes = kernel.ActQ8Bytes
	ActQ8Block = kernel.ActQ8Block
	ActQ8Group = kernel.ActQ8Group
)

// ParseISA returns the inverse of ISA.String. The error lists what it knows.
func ParseISA(s string) (ISA, error) { return kernel.ParseISA(s) }

// ParseFeatures returns the inverse of Features.String.
func ParseFeatures(s string) (Features, error) { return kernel.ParseFeatures(s) }

// ParseCompute returns the inverse of Compute.String.
func ParseCompute(s string) (Compute, error) { return kernel.ParseCompute(s) }

// ParseSpec returns the inverse of Spec.String: each spec has one spelling. It does not validate.
func ParseSpec(text string) (Spec, error) { return kernel.ParseSpec(text) }

// Space lists the kernels of one instruction set, compute path and weight type that the features
// allow, in a fixed order.
func Space(host Features, isa ISA, c Compute, b WeightType) []Spec {
	return SpaceOf(host, isa, c, b, func(Spec) bool { return true })
}

// SpaceOf returns Space without the kernels that keep refuses, which are told before their
// registers are counted: the rules of thumb look at one in thirty.
func SpaceOf(host Features, isa ISA, c Compute, b WeightType, keep func(Spec) bool) []Spec {
	return kernel.Space(host, isa, c, b, keep)
}

// ActQ8RowBytes returns the length of a row of k quantized activations; k is a multiple of 32.
func ActQ8RowBytes(k int) int { return kernel.ActQ8RowBytes(k) }

// Host is what this machine can run, within what the environment variable SANDWICH_FEATURES leaves
// of it: features separated by commas make it a lesser machine. A value that cannot be read leaves
// all; HostError says so.
func Host() Features { return kernel.Host() }

// HostError says what is wrong with the value of that variable; nil where nothing is, or it is not
// set.
func HostError() error { return kernel.HostError() }

// RunRef computes a call in plain Go with correctly rounded arithmetic, for the compute path and
// weight type of the spec. It is the oracle of every kernel, and the kernel itself where no code
// can be generated.
func RunRef(s Spec, g *GemmArgs) { ref.RunRef(s, g) }
