package pack

import (
	"sync"
	"unsafe"

	"sandwich/microkernel/internal/jit"
	"sandwich/microkernel/internal/kernel"
	"sandwich/microkernel/qtype"
)

// transposes are the generated transposes of the widest instruction set of this host. They are
// invalid if it generates none or executable memory is forbidden; plain Go packs then, as it packs
// the elements that the transposes leave over.
var transposes = sync.OnceValue(func() (out [kernel.Transposes]jit.Func) {
	target := kernel.Host().Best().Target()
	if jit.Race || target == nil || target.Vector == nil {
		return out
	}
	var codes [][]byte
	for t := range kernel.Transposes {
		machine, err := target.Vector.Transpose(t)
		if err != nil {
			panic(err) // its arguments are constants
		}
		codes = append(codes, machine)
	}
	if fs, err := jit.Load(codes...); err == nil {
		copy(out[:], fs)
	}
	return out
})

// rowRoom is how much of each row is transposed at a time, and columnRoom all of that.
const (
	rowRoom    = 1024
	columnRoom = kernel.TransposeStride * qtype.PanelWidth
)

// transpose packs the first words of 32 bits of whole rows and returns how many. Rows are copied
// first: Go's copy may fault where a file has lost its pages (gguf.Tensor.Guard), generated code
// may not; and it reads them one after the other, while lines of sixteen rows in turn would be
// asked of memory one by one.
func (p *Packer) transpose(how kernel.Transpose, panel, src []byte, rowStride, words int) int {
	f := transposes()[how]
	if !f.Valid() {
		return 0
	}
	const quad = 16 // bytes of a row that a step takes
	whole := 4 * words / quad * quad
	for at := 0; at < whole; at += rowRoom {
		n := min(rowRoom, whole-at)
		for c := range qtype.PanelWidth {
			copy(p.rows[c*kernel.TransposeStride:][:n], src[c*rowStride+at:])
		}
		line := panel[at*qtype.PanelWidth:][:n*qtype.PanelWidth]
		args := kernel.VectorArgs{P: [10]unsafe.Pointer{unsafe.Pointer(&line[0]), unsafe.Pointer(&p.rows)},
			N: [6]int{n / quad}}
		f.Call(unsafe.Pointer(&args))
	}
	return whole / 4
}
