// Package code is the part of an assembler that does not depend on the architecture: one function
// under construction with its labels, constants, listing and instruction counts. The encoders
// amd64/asm and arm64/asm embed it.
//
// The package imports nothing of the module.
package code

import "fmt"

// Label is a position in the code that branches may name before or after it is bound.
type Label int

// Function collects the bytes of one function, its labels, its constants, its listing and the
// first error. Encoders embed it. The zero value is not ready; use New.
type Function struct {
	Bytes []byte // the instructions so far

	encoder string
	labels  []int // offset of each label, -1 while unbound
	pool    []byte
	jumps   []Fixup // to labels
	loads   []Fixup // from the pool
	err     error
	trace   func(text string)
	count   counter
}

// New starts an empty function. The name of its encoder is the prefix of its errors.
func New(encoder string) Function { return Function{encoder: encoder} }

// Fail records an instruction that cannot be encoded. Only the first failure is kept: later ones
// are often its consequences.
func (f *Function) Fail(format string, args ...any) {
	if f.err == nil {
		f.err = fmt.Errorf("%s: offset %d: "+format, append([]any{f.encoder, len(f.Bytes)}, args...)...)
	}
}

// Err returns the first failure.
func (f *Function) Err() error { return f.err }

// Trace makes the encoder report the text of each instruction, for listings and for tests against
// another assembler.
func (f *Function) Trace(report func(text string)) { f.trace = report }

// Traced reports whether there is a listing; without one, encoders need not format text.
func (f *Function) Traced() bool { return f.trace != nil }

// Note reports the text of an instruction. The function must be Traced.
func (f *Function) Note(text string) { f.trace(text) }

// Pos returns the number of bytes of code so far.
func (f *Function) Pos() int { return len(f.Bytes) }

// NewLabel makes an unbound label.
func (f *Function) NewLabel() Label {
	f.labels = append(f.labels, -1)
	return Label(len(f.labels) - 1)
}

// Bind places the label at the current end of the code.
func (f *Function) Bind(l Label) {
	if f.labels[l] >= 0 {
		f.Fail("label %d bound twice", l)
	}
	f.labels[l] = len(f.Bytes)
}

// Here returns a label bound at the current end of the code.
func (f *Function) Here() Label {
	l := f.NewLabel()
	f.Bind(l)
	return l
}

// Bound returns the offset of a label and whether it is bound.
func (f *Function) Bound(l Label) (offset int, ok bool) {
	offset = f.labels[l]
	return offset, offset >= 0
}

// target returns the offset of a label after all code has been emitted. An unbound label is a
// failure.
func (f *Function) target(l Label) int {
	offset, ok := f.Bound(l)
	if !ok {
		f.Fail("label %d is never bound", l)
	}
	return offset
}

// Constant places bytes in the function's own pool, which follows the code, aligned to their
// length, and returns their offset in the pool. The length is a power of two of at most 64. Equal
// constants of equal length are stored once.
func (f *Function) Constant(data []byte) int {
	n := len(data)
	for off := 0; off+n <= len(f.pool); off += n {
		if string(f.pool[off:off+n]) == string(data) {
			return off
		}
	}
	for len(f.pool)%n != 0 {
		f.pool = append(f.pool, 0)
	}
	f.pool = append(f.pool, data...)
	return len(f.pool) - n
}

// Fixup is a field of an instruction whose target offset is not known yet.
type Fixup struct {
	At, End     int // offset of the field that holds the distance, and of where the distance counts from
	Bits, Shift int // of the field, where the encoder has several kinds
	target      int // label, or offset in the pool
}

// Jump records that an instruction branches to a label.
func (f *Function) Jump(l Label, x Fixup) {
	x.target = int(l)
	f.jumps = append(f.jumps, x)
}

// Load records that an instruction reads the constant at an offset in the pool.
func (f *Function) Load(pool int, x Fixup) {
	x.target = pool
	f.loads = append(f.loads, x)
}

// EndLoad records the end of the instruction of the newest load, from which its distance counts.
func (f *Function) EndLoad() { f.loads[len(f.loads)-1].End = len(f.Bytes) }

// Finish ends the code and returns it. patch writes the distance to an offset into an instruction.
// The code is position independent and must be loaded at a multiple of 64. The error names the
// first instruction that could not be encoded. filler, which pads before the constants, is an
// instruction that traps.
func (f *Function) Finish(patch func(x Fixup, to int), filler ...byte) ([]byte, error) {
	for _, x := range f.jumps {
		patch(x, f.target(Label(x.target)))
	}
	pool := f.closePool(filler)
	for _, x := range f.loads {
		patch(x, pool+x.target)
	}
	if f.err != nil {
		return nil, f.err
	}
	return f.Bytes, nil
}

// closePool appends the constants, if any, at a multiple of 64 bytes and returns their offset.
func (f *Function) closePool(filler []byte) (offset int) {
	if len(f.pool) == 0 {
		return len(f.Bytes)
	}
	for len(f.Bytes)%64 != 0 {
		f.Bytes = append(f.Bytes, filler...)
	}
	offset = len(f.Bytes)
	f.Bytes = append(f.Bytes, f.pool...)
	return offset
}
