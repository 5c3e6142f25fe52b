package microkernel

import (
	"sandwich/microkernel/internal/kernel"
	"sandwich/microkernel/internal/ref"
)

// The types of kernels, CPUs and calls are declared in package kernel, which the backends share.
type (
	ISA      = kernel.ISA
	Features = kernel.Features
	Compute  = kernel.Compute
	Dot      = kernel.Dot
	Spec     = kernel.Spec
	GemmArgs = kernel.GemmArgs
	ActQ8    = kernel.ActQ8
)

// The instruction sets, narrow to wide within an architecture. Other packages do not compare them;
// they ask what an instruction set can do.
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
	ComputeInt8K          = kernel.ComputeInt8K
	ComputeBF16Tile       = kernel.ComputeBF16Tile
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
	TDPBF16 = kernel.TDPBF16
)

// MaxSinglePrefetch is the largest prefetch distance in bytes at which a kernel requests each line
// once.
const MaxSinglePrefetch = kernel.MaxSinglePrefetch

// Sizes of quantized activations, see ActQ8.
const (
	ActQ8Bytes = kernel.ActQ8Bytes
	ActQ8Block = kernel.ActQ8Block
	ActQ8Group = kernel.ActQ8Group
)

// ParseISA is the inverse of ISA.String. The error lists the known names.
func ParseISA(s string) (ISA, error) { return kernel.ParseISA(s) }

// ParseFeatures is the inverse of Features.String.
func ParseFeatures(s string) (Features, error) { return kernel.ParseFeatures(s) }

// ParseCompute is the inverse of Compute.String.
func ParseCompute(s string) (Compute, error) { return kernel.ParseCompute(s) }

// ParseSpec is the inverse of Spec.String: each spec has one spelling. It does not validate.
func ParseSpec(text string) (Spec, error) { return kernel.ParseSpec(text) }

// Space lists the kernels of one instruction set, compute path and weight type that the features
// allow, in a fixed order.
func Space(host Features, isa ISA, c Compute, b WeightType) []Spec {
	return SpaceOf(host, isa, c, b, func(Spec) bool { return true })
}

// SpaceOf is Space with a filter that is asked before registers are counted, which is expensive.
func SpaceOf(host Features, isa ISA, c Compute, b WeightType, keep func(Spec) bool) []Spec {
	return kernel.Space(host, isa, c, b, keep)
}

// ActQ8RowBytes returns the length of a row of k quantized activations; k is a multiple of 32.
func ActQ8RowBytes(k int) int { return kernel.ActQ8RowBytes(k) }

// Host returns the features of this machine, restricted by the environment variable
// SANDWICH_FEATURES to the features it lists, separated by commas. A value that cannot be parsed
// restricts nothing; HostError reports it.
func Host() Features { return kernel.Host() }

// HostError returns what is wrong with the value of SANDWICH_FEATURES, or nil.
func HostError() error { return kernel.HostError() }

// RunRef computes a call in plain Go with correctly rounded arithmetic, for the compute path and
// weight type of the spec. It is the oracle of every kernel, and the kernel itself where no code
// can be generated.
func RunRef(s Spec, g *GemmArgs) { ref.RunRef(s, g) }
