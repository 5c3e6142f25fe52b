package kernel

import (
	"fmt"
	"strconv"
	"strings"

	"sandwich/microkernel/qtype"
)

// Compute is the arithmetic of a weight. It belongs to the weight and never to the number of rows,
// a phase or a thread count (rule 6), because it decides the bits of the result.
type Compute uint8

// The compute paths.
const (
	// ComputeF32 is the chain "wide": C[m,n] is one chain of float32 FMAs over k ascending, of
	// A[m,k] and the exactly dequantized W[n,k].
	ComputeF32 Compute = iota
	// ComputeInt8 is the chain "block": activations are quantized per block of 32 (ActQ8), each
	// block's integer dot product is exact, and one FMA by the product of the two scales adds it,
	// blocks ascending.
	ComputeInt8
	// ComputeBF16 is the chain "pair": activations are rounded to bfloat16, and each pair of k is
	// added by a dot product of the CPU, pairs ascending. Its rounding is that of the instruction
	// (bf16.go), so that a plan with it is not exact.
	ComputeBF16
	// ComputeInt8Long is the chain "group", of weights in blocks of 256: activations share a scale
	// over such a block (ActQ8Group). One FMA by the scale of the weights adds each exact integer
	// dot product to the sum of the group, and one by the scale of the activations adds that,
	// groups ascending: no product of both scales for each 32 k, as the chain "block" has.
	ComputeInt8Long
	Computes // their number
)

var computeNames = [...]string{"f32", "int8", "bf16", "int8-256"}

func (c Compute) String() string {
	if c < Computes {
		return computeNames[c]
	}
	return fmt.Sprintf("compute(%d)", uint8(c))
}

// ParseCompute is the inverse of String.
func ParseCompute(s string) (Compute, error) {
	for i, n := range computeNames {
		if n == s {
			return Compute(i), nil
		}
	}
	return 0, fmt.Errorf("unknown compute path %q (known: %s)", s, strings.Join(computeNames[:], ", "))
}

// MarshalText and UnmarshalText let plan files spell a compute path by name.
func (c Compute) MarshalText() ([]byte, error) { return []byte(c.String()), nil }

// UnmarshalText parses the name of a compute path.
func (c *Compute) UnmarshalText(b []byte) (err error) {
	*c, err = ParseCompute(string(b))
	return err
}

// Form is how a kernel brings an element of A into all lanes, a tuning axis.
type Form uint8

// The forms.
const (
	Load  Form = iota // broadcast into a register, then multiply from registers
	Embed             // multiply by a memory operand with embedded broadcast (AVX-512 only)
	Lane              // load several k of a row into a register, then multiply by one of its lanes (NEON only)
	Outer             // outer products in the ZA array of SME (arm64 with HasSME)
	Once              // load, from weights that were unpacked once for all rows of a call (AVX-512 only)
	Forms             // their number
)

var formNames = [...]string{"load", "embed", "lane", "outer", "once"}

// Spec says everything about a kernel: equal specs give equal machine code. It is what plans store
// in place of code.
type Spec struct {
	ISA     ISA
	Compute Compute
	B       qtype.Type
	MR, NR  int // register tile: rows of A by columns of W; NR is a multiple of qtype.PanelWidth
	KU      int // elements of k per iteration of the inner loop
	Form    Form
	Dot     Dot
	// Prefetch is the distance in bytes, in each panel, at which the packed weight is prefetched
	// ahead of its use; 0 leaves it to the hardware. On amd64 a distance beyond 1 KiB is that of a
	// first request, which a second one follows.
	Prefetch int
	// Spread prefetches the next block of weights (GemmArgs.Next) while all row tiles pass over
	// this one, in place of Prefetch.
	Spread bool
}

// String is the spec on one line, as plans store it: isa/compute/weight/MRxNR/kuKU/form and, where
// they apply, /dot and /pfBYTES or /spread.
func (s Spec) String() string {
	form := fmt.Sprintf("form(%d)", uint8(s.Form))
	if s.Form < Forms {
		form = formNames[s.Form]
	}
	t := fmt.Sprintf("%s/%s/%s/%dx%d/ku%d/%s", s.ISA, s.Compute, s.B, s.MR, s.NR, s.KU, form)
	if name := s.Dot.info().name; name != "" {
		t += "/" + name
	}
	if s.Prefetch != 0 {
		t += "/pf" + strconv.Itoa(s.Prefetch)
	}
	if s.Spread {
		t += "/spread"
	}
	return t
}

// ParseSpec is the inverse of String: each spec has one spelling. It does not validate.
func ParseSpec(text string) (Spec, error) {
	s, err := parseSpec(strings.Split(text, "/"))
	if err == nil && s.String() != text {
		err = fmt.Errorf("that is written %s", s)
	}
	if err != nil {
		return Spec{}, fmt.Errorf("kernel spec %q: %w", text, err)
	}
	return s, nil
}

func parseSpec(f []string) (s Spec, err error) {
	if len(f) < 6 {
		return s, fmt.Errorf("want isa/compute/weight/MRxNR/kuKU/form")
	}
	if s.ISA, err = ParseISA(f[0]); err != nil {
		return s, err
	}
	if s.Compute, err = ParseCompute(f[1]); err != nil {
		return s, err
	}
	if s.B, err = qtype.Parse(f[2]); err != nil {
		return s, err
	}
	mr, nr, _ := strings.Cut(f[3], "x")
	if s.MR, err = strconv.Atoi(mr); err != nil {
		return s, fmt.Errorf("tile %q is not MRxNR", f[3])
	}
	if s.NR, err = strconv.Atoi(nr); err != nil {
		return s, fmt.Errorf("tile %q is not MRxNR", f[3])
	}
	if s.KU, err = number(f[4], "ku"); err != nil {
		return s, err
	}
	form := indexOf(formNames[:], f[5])
	if form < 0 {
		return s, fmt.Errorf("unknown form %q (known: %s)", f[5], strings.Join(formNames[:], ", "))
	}
	s.Form = Form(form)
	for _, x := range f[6:] {
		if d := dotNamed(x); d != NoDot {
			s.Dot = d
		} else if x == "spread" {
			s.Spread = true
		} else if s.Prefetch, err = number(x, "pf"); err != nil {
			return s, err
		}
	}
	return s, nil
}

func number(s, prefix string) (int, error) {
	rest, ok := strings.CutPrefix(s, prefix)
	n, err := strconv.Atoi(rest)
	if !ok || err != nil {
		return 0, fmt.Errorf("%q is not %s and a number", s, prefix)
	}
	return n, nil
}

func indexOf(list []string, s string) int {
	for i, x := range list {
		if x == s {
			return i
		}
	}
	return -1
}

// MarshalText and UnmarshalText store a spec as its String.
func (s Spec) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// UnmarshalText parses a spec and validates it.
func (s *Spec) UnmarshalText(b []byte) error {
	p, err := ParseSpec(string(b))
	if err == nil {
		err = p.Validate()
	}
	if err == nil {
		*s = p
	}
	return err
}

// Assemble generates the machine code of one tile of the spec's size, on any host: equal specs give
// equal bytes.
func (s Spec) Assemble() ([]byte, error) {
	if err := s.Validate(); err != nil {
		return nil, err
	}
	code, err := s.ISA.Target().Assemble(s)
	if err != nil {
		return nil, fmt.Errorf("kernel spec %s: %w", s, err)
	}
	return code, nil
}

// Needs is the set of features a host must have to run the kernel.
func (s Spec) Needs() Features {
	t := s.ISA.Target()
	if t == nil {
		return 0
	}
	return t.Needs() | t.SpecNeeds(s) | s.Dot.info().needs
}

// Iteration is the k of one iteration of the main loop.
func (s Spec) Iteration() int { return max(s.KU, s.B.Block()) }

// IterationsAhead is the prefetch distance in iterations of the main loop.
func (s Spec) IterationsAhead() int {
	unit := s.B.PanelOffset(s.Iteration())
	return max(1, (s.Prefetch+unit/2)/unit)
}

// Prefetches says that the spec prefetches at all.
func (s Spec) Prefetches() bool { return s.Prefetch > 0 || s.Spread }

// CanPrefetch says that kernels like this one may prefetch at a distance and gain by it: plain Go
// and matrix units do not.
func (s Spec) CanPrefetch() bool {
	return s.ISA.Generates() && s.WithPrefetch(64).validate() == nil
}

// CanSpread says the same of a spread prefetch.
func (s Spec) CanSpread() bool { return s.ISA.Generates() && s.WithSpread().validate() == nil }

// MatrixUnit says that the products are made by a matrix unit, a tile of them with each
// instruction.
func (s Spec) MatrixUnit() bool { return s.Form == Outer || s.Dot.info().matrix }

// OrdinaryForm says that the form is the one to try where nobody measures.
func (s Spec) OrdinaryForm() bool { return s.Form == s.ISA.Target().Forms()[0] }

// UnpacksOnce says that weights are unpacked once for all rows of a call, so that it takes many
// rows to be worth it.
func (s Spec) UnpacksOnce() bool { return s.Form == Once }

// EmbedsLoads says that the multiply-add loads an operand by itself.
func (s Spec) EmbedsLoads() bool { return s.Form == Embed }

// Quantizes says that activations become ActQ8 blocks, and products are those of integers.
func (c Compute) Quantizes() bool { return c == ComputeInt8 || c == ComputeInt8Long }

// Arithmetic is the path whose rates a path has: that of integers for both kinds of them.
func (c Compute) Arithmetic() Compute {
	if c.Quantizes() {
		return ComputeInt8
	}
	return c
}

// Ceiling is its arithmetic as ceilings of a profile name it.
func (c Compute) Ceiling() string { return c.Arithmetic().String() }

// Takes says that the path is for weights of a type.
func (c Compute) Takes(t qtype.Type) bool {
	switch c {
	case ComputeInt8:
		return t.Quantized()
	case ComputeInt8Long:
		return t.Quantized() && t.Block() == ActQ8Group
	case ComputeBF16:
		return t == qtype.BF16
	}
	return true
}

// Exact says that the chain has the same bits on every machine (rule 6).
func (c Compute) Exact() bool { return c != ComputeBF16 }

// SameBits says that two kernels of one weight type give a product the same bits: those of one
// compute path do, but for dot products of bfloat16 of two architectures, whose instructions round
// differently.
func (s Spec) SameBits(o Spec) bool {
	return s.Compute == o.Compute && (s.Compute.Exact() || s.Dot.info().odd == o.Dot.info().odd &&
		(s.Dot == NoDot) == (o.Dot == NoDot))
}

// Code is the spec whose machine code serves this tile: itself, unless its target has code that
// does not depend on the columns.
func (s Spec) Code() Spec { return s.ISA.Target().Code(s) }

// EachTile visits the specs of the tile and of every smaller one, rows outermost.
func (s Spec) EachTile(visit func(Spec) error) error {
	for mr := 1; mr <= s.MR; mr++ {
		for nr := qtype.PanelWidth; nr <= s.NR; nr += qtype.PanelWidth {
			t := s
			t.MR, t.NR = mr, nr
			if err := visit(t); err != nil {
				return err
			}
		}
	}
	return nil
}
