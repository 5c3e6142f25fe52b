package pack

import (
	"sync"
	"unsafe"

	"sandwich/microkernel/internal/host"
	"sandwich/microkernel/internal/jit"
	"sandwich/microkernel/internal/kernel"
	"sandwich/microkernel/internal/vecgen"
	"sandwich/microkernel/qtype"
)

// transposes are the generated ones; none where this host has no AVX2 or may not run what it
// generates. Plain Go then does their work, as it does what they leave over.
var transposes = sync.OnceValue(func() (out [vecgen.Transposes]jit.Func) {
	if jit.Race || !host.Features().Has(kernel.HasAVX2) {
		return out
	}
	var codes [][]byte
	for t := range vecgen.Transposes {
		code, err := vecgen.GenerateTranspose(t)
		if err != nil {
			panic(err) // its arguments are constants
		}
		codes = append(codes, code)
	}
	if fs, err := jit.Load(codes...); err == nil {
		copy(out[:], fs)
	}
	return out
})

// rowRoom is how much of each row is transposed at a time, and columnRoom all of that.
const (
	rowRoom    = 1024
	columnRoom = vecgen.TransposeStride * qtype.PanelWidth
)

// transpose packs the first words of 32 bits of whole rows and returns how many. Rows are copied
// first: Go's copy may fault where a file has lost its pages (gguf.Tensor.Guard), generated code
// may not; and it reads them one after the other, while lines of sixteen rows in turn would be
// asked of memory one by one.
func (p *Packer) transpose(how vecgen.Transpose, panel, src []byte, rowStride, words int) int {
	f := transposes()[how]
	if !f.Valid() {
		return 0
	}
	const quad = 16 // bytes of a row that a step takes
	whole := 4 * words / quad * quad
	for at := 0; at < whole; at += rowRoom {
		n := min(rowRoom, whole-at)
		for c := range qtype.PanelWidth {
			copy(p.rows[c*vecgen.TransposeStride:][:n], src[c*rowStride+at:])
		}
		line := panel[at*qtype.PanelWidth:][:n*qtype.PanelWidth]
		args := vecgen.Args{P: [10]unsafe.Pointer{unsafe.Pointer(&line[0]), unsafe.Pointer(&p.rows)},
			N: [6]int{n / quad}}
		f.Call(unsafe.Pointer(&args))
	}
	return whole / 4
}
