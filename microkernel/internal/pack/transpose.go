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

// rowBytes is the number of bytes of each row that are transposed at a time, columnBytes that of
// all rows.
const (
	rowBytes    = 1024
	columnBytes = kernel.TransposeStride * qtype.PanelWidth
)

// transpose packs the first 32-bit words of whole rows and returns their number. Rows are copied
// first: Go's copy may fault if a file has lost its pages (gguf.Tensor.Guard), generated code may
// not. The copy also reads rows sequentially, while interleaved lines of sixteen rows would each
// wait for memory.
func (p *Packer) transpose(how kernel.Transpose, panel, src []byte, rowStride, words int) int {
	f := transposes()[how]
	if !f.Valid() {
		return 0
	}
	const quad = 16 // bytes of a row that a step takes
	whole := 4 * words / quad * quad
	for at := 0; at < whole; at += rowBytes {
		n := min(rowBytes, whole-at)
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
