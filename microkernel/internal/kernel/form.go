package kernel

// Form is how a kernel combines elements of A with vectors of W. It is a tuning axis and does not
// change bits.
type Form uint8

// The forms.
const (
	Load        Form = iota // broadcast an element of A into a register, then multiply registers
	Embed                   // multiply by a memory operand with embedded broadcast (AVX-512 only)
	Lane                    // load several k of a row into a register, then multiply by one lane (NEON only)
	Outer                   // outer products in the ZA array of SME (arm64 with HasSME)
	DequantOnce             // as Load, with weights dequantized once per call and cached (AVX-512 only)
	Overlap                 // as Load, with the next weights unpacked while the matrix unit multiplies (AMX only)
	Forms                   // number of forms
)

// formNames are stored in plan files.
var formNames = [...]string{"load", "embed", "lane", "outer", "once", "overlap"}
