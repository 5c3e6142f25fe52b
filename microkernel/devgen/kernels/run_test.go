package kernels

import (
	"bytes"
	"encoding/binary"
	"errors"
	"math"
	"math/rand/v2"
	"testing"
	"unsafe"

	"sandwich/microkernel"
	"sandwich/microkernel/devgen"
	"sandwich/microkernel/devgen/interp"
	"sandwich/microkernel/devgen/ptx"
	"sandwich/microkernel/devgen/ptx/ptxtest"
	"sandwich/microkernel/qtype"
)

// poison fills outputs before a run: a NaN that no computation makes.
const poison = 0x7FC0DEAD

// call is a dispatch with its buffers.
type call struct {
	kernel  *devgen.Kernel
	grid    [3]int
	buffers [][]byte
	push    []uint32
}

// build returns a kernel or fails the test.
func build(t *testing.T, k *devgen.Kernel, err error) *devgen.Kernel {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	return k
}

// check runs the call by every interpreter and compares the buffer named `name` with want. Words
// that are poison in want must keep what they had.
func (c call) check(t *testing.T, name string, want []byte) {
	t.Helper()
	for _, by := range runners {
		buffers := make([][]byte, len(c.buffers))
		for i, b := range c.buffers {
			buffers[i] = bytes.Clone(b)
		}
		if err := by.run(c, buffers); errors.Is(err, errSkipped) {
			continue
		} else if err != nil {
			t.Fatalf("%s: %v", by.name, err)
		}
		compared := false
		for i, b := range c.kernel.Bindings {
			if b.Name == name {
				compared = true
				compare(t, by.name+" "+c.kernel.Name, buffers[i], want)
			} else if b.Access == devgen.Read && !bytes.Equal(buffers[i], c.buffers[i]) {
				t.Fatalf("%s %s writes %s", by.name, c.kernel.Name, b.Name)
			}
		}
		if !compared {
			t.Fatalf("%s has no binding %s", c.kernel.Name, name)
		}
	}
}

// runner runs a call by name, or returns errSkipped.
type runner struct {
	name string
	run  func(c call, buffers [][]byte) error
}

// errSkipped says that a runner cannot run a kernel, such as one for a matrix unit.
var errSkipped = errors.New("skipped")

// runners run each call: the interpreters and, by TestMain, the devices of this host.
var runners = []runner{
	{"interp", func(c call, buffers [][]byte) error { return interp.Run(c.kernel, c.grid, buffers, c.push) }},
	{"ptx", func(c call, buffers [][]byte) error {
		text, err := ptx.Emit(c.kernel, 80)
		if err != nil {
			return err
		}
		return ptxtest.Run(text, c.grid, buffers, c.push)
	}},
}

func compare(t *testing.T, what string, got, want []byte) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("%s: %d bytes, want %d", what, len(got), len(want))
	}
	for i := 0; i+4 <= len(got); i += 4 {
		x, y := binary.LittleEndian.Uint32(got[i:]), binary.LittleEndian.Uint32(want[i:])
		if x != y && !(isNaN(x) && isNaN(y) && y != poison) {
			t.Fatalf("%s: word %d is %#08x (%g), want %#08x (%g)", what, i/4, x, math.Float32frombits(x), y,
				math.Float32frombits(y))
		}
	}
}

func isNaN(bits uint32) bool { return bits&^(1<<31) > 0x7f800000 }

// words returns memory of n words that are poison.
func words(n int) []byte {
	b := make([]byte, 4*n)
	for i := range n {
		binary.LittleEndian.PutUint32(b[4*i:], poison)
	}
	return b
}

// floats returns the float32 of a buffer.
func floats(b []byte) []float32 { return unsafe.Slice((*float32)(unsafe.Pointer(&b[0])), len(b)/4) }

// randomFloats returns n random float32, some of them very small.
func randomFloats(r *rand.Rand, n int) []byte {
	b := words(n)
	for i, f := 0, floats(b); i < n; i++ {
		f[i] = 2*r.Float32() - 1
		if r.IntN(40) == 0 {
			f[i] *= 1e-38
		}
	}
	return b
}

// rawWeights returns rows of a weight type as in a file: random numbers, moderate scales.
func rawWeights(r *rand.Rand, t qtype.Type, n, k int) []byte {
	d := t.Desc()
	b := make([]byte, n*t.RowBytes(k))
	for i := range b {
		b[i] = byte(r.Uint32())
	}
	half := func() uint16 { return uint16(r.IntN(2)<<15 | (5+r.IntN(12))<<10 | r.IntN(1024)) }
	for i := 0; i < len(b); i += d.Bytes {
		switch d.Float {
		case qtype.Single:
			binary.LittleEndian.PutUint32(b[i:], math.Float32bits(2*r.Float32()-1))
		case qtype.Half:
			binary.LittleEndian.PutUint16(b[i:], half())
		case qtype.Brain:
			binary.LittleEndian.PutUint16(b[i:], uint16(math.Float32bits(2*r.Float32()-1)>>16))
		default:
			for _, at := range d.BlockScales {
				binary.LittleEndian.PutUint16(b[i+at:], half())
			}
		}
	}
	return b
}

// packed returns weights and their panels.
func packed(t *testing.T, r *rand.Rand, typ qtype.Type, n, k int) (raw, panels []byte, l microkernel.Layout) {
	t.Helper()
	l = microkernel.Layout{Type: typ, N: n, K: k}
	raw, panels = rawWeights(r, typ, n, k), make([]byte, l.Bytes())
	if err := microkernel.Pack(panels, l, 0, n, raw, 0); err != nil {
		t.Fatal(err)
	}
	return raw, panels, l
}

func pushed(x ...any) (list []uint32) {
	for _, v := range x {
		switch v := v.(type) {
		case int:
			list = append(list, uint32(v))
		case float32:
			list = append(list, math.Float32bits(v))
		}
	}
	return list
}
