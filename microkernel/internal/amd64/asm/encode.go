package asm

import "sandwich/microkernel/internal/code"

// fields are the operands of an instruction sorted into the fields of its encoding.
type fields struct {
	reg, vvvv uint8
	rmReg     uint8 // when the rm operand is a register
	isMem     bool  // when it is memory
	mem       Mem
	imm       int // -1 without an immediate
	l         length
	mask      Mask
	zero      bool
}

// I emits one vector instruction, with its operands in Intel order. It uses the shorter VEX
// encoding where that can express the operands.
func (a *Asm) I(o *Op, ops ...Operand) {
	f, opcode, ok := a.sort(o, ops)
	if !ok {
		return
	}
	needEVEX := f.l == l512 || f.mask != K0 || f.zero || f.reg > 15 || f.vvvv > 15 || f.rmReg > 15 || f.isMem &&
		(f.mem.bcast || o.form == vmi)
	switch {
	case o.has&vex != 0 && !needEVEX:
		if o.store != 0 && o.form == rm && o.tup == full && !f.isMem && f.rmReg > 7 && f.reg < 8 {
			f.reg, f.rmReg, opcode = f.rmReg, f.reg, o.store // the store form is one byte shorter
		}
		a.vexPrefix(o, &f)
		a.put(opcode)
		a.modRM(&f, 1)
	case o.has&evex == 0:
		a.Fail("%s has no encoding for these operands (512 bits, a mask, a broadcast, a register above 15, or "+
			"memory)", o.name)
		return
	case a.level < AVX512:
		a.Fail("%s with these operands needs AVX-512", o.name)
		return
	default:
		a.evexPrefix(o, &f)
		a.put(opcode)
		a.modRM(&f, o.memBytes(f.l, f.isMem && f.mem.bcast))
	}
	if f.imm >= 0 {
		a.put(byte(f.imm))
	}
	a.closePool(&f)
	if a.Counting() {
		_, toMemory := ops[0].(Mem)
		a.count(o, &f, toMemory)
	}
	if a.Traced() {
		a.noteVector(o, &f, ops)
	}
}

// sort distributes operands over the encoding fields according to the form of the instruction.
func (a *Asm) sort(o *Op, ops []Operand) (f fields, opcode byte, ok bool) {
	f.imm = -1
	opcode = o.opcode
	if len(ops) != o.form.arity() {
		a.Fail("%s takes %d operands, not %d", o.name, o.form.arity(), len(ops))
		return f, 0, false
	}
	for _, x := range ops {
		if v, is := x.(Vec); is {
			f.l = max(f.l, v.l)
			if v.n > 31 {
				a.Fail("%s: there is no vector register %d", o.name, v.n)
			}
		}
	}
	form := o.form
	if o.store != 0 && form == rm {
		_, memDst := ops[0].(Mem)
		_, regDst := ops[0].(Reg)
		if memDst || regDst {
			form, opcode = mr, o.store
		}
	}
	n := len(ops)
	switch form {
	case rm, rmi:
		a.setReg(o, &f, ops[0])
		a.setRM(o, &f, ops[1])
	case mr, mri:
		a.setRM(o, &f, ops[0])
		a.setReg(o, &f, ops[1])
	case rvm, rvmi, rvmr:
		a.setReg(o, &f, ops[0])
		a.setV(o, &f, ops[1])
		a.setRM(o, &f, ops[2])
	case mvr:
		a.setRM(o, &f, ops[0])
		a.setV(o, &f, ops[1])
		a.setReg(o, &f, ops[2])
	case vmi:
		a.setV(o, &f, ops[0])
		f.reg = o.ext
		a.setRM(o, &f, ops[1])
	}
	switch form {
	case rvmi, rmi, mri, vmi:
		i, is := ops[n-1].(Imm)
		if !is {
			a.Fail("%s wants an immediate last", o.name)
		}
		f.imm = int(i)
	case rvmr:
		v, is := ops[n-1].(Vec)
		if !is || v.n > 15 {
			a.Fail("%s wants a vector register below 16 last", o.name)
		}
		f.imm = int(v.n) << 4
	}
	if f.isMem && f.mem.bcast {
		if o.has&bc == 0 {
			a.Fail("%s has no embedded broadcast", o.name)
		}
	}
	return f, opcode, a.Err() == nil
}

// decorate takes the opmask of an operand, if it has one, for the whole instruction.
func (a *Asm) decorate(o *Op, f *fields, k Mask, zero bool) {
	switch {
	case k != K0:
		f.mask, f.zero = k, zero
	case zero:
		a.Fail("%s: zeroing needs a mask other than k0", o.name)
	}
}

func (a *Asm) setReg(o *Op, f *fields, x Operand) {
	switch r := x.(type) {
	case Vec:
		f.reg = r.n
		a.decorate(o, f, r.mask, r.zero)
	case Mask:
		f.reg = uint8(r)
	case Reg:
		f.reg = uint8(r)
	default:
		a.Fail("%s: operand %s cannot stand in the register field", o.name, textOf(x))
	}
}

func (a *Asm) setV(o *Op, f *fields, x Operand) {
	v, is := x.(Vec)
	if !is {
		a.Fail("%s: operand %s must be a vector register", o.name, textOf(x))
		return
	}
	f.vvvv = v.n
	a.decorate(o, f, v.mask, v.zero)
}

func (a *Asm) setRM(o *Op, f *fields, x Operand) {
	switch r := x.(type) {
	case Vec:
		f.rmReg = r.n
		a.decorate(o, f, r.mask, r.zero)
	case Reg:
		f.rmReg = uint8(r)
	case Mem:
		if r.pool == 0 && r.base > R15 || r.index == RSP {
			a.Fail("%s: memory operand without a base, or indexed by rsp", o.name)
		}
		f.isMem, f.mem = true, r
		a.decorate(o, f, r.mask, false)
	default:
		a.Fail("%s: operand %s cannot stand in the register-or-memory field", o.name, textOf(x))
	}
}

func bit(r uint8, n uint) uint8 { return r >> n & 1 }

// rmBits returns the inverted B and X bits: register bits 3 and 4, or bits 3 of base and index.
func (f *fields) rmBits() (b, x uint8) {
	if !f.isMem {
		return bit(f.rmReg, 3) ^ 1, bit(f.rmReg, 4) ^ 1
	}
	b, x = 1, 1
	if f.mem.pool == 0 {
		b = bit(uint8(f.mem.base), 3) ^ 1
	}
	if f.mem.index != noReg {
		x = bit(uint8(f.mem.index), 3) ^ 1
	}
	return b, x
}

func (a *Asm) vexPrefix(o *Op, f *fields) {
	b, x := f.rmBits()
	r := bit(f.reg, 3) ^ 1
	var w uint8
	if o.has&vw1 != 0 {
		w = 1
	}
	tail := (^f.vvvv&15)<<3 | uint8(f.l)<<2 | o.pp
	if b == 1 && x == 1 && w == 0 && o.mmm == m0F {
		a.put(0xC5, r<<7|tail)
		return
	}
	a.put(0xC4, r<<7|x<<6|b<<5|o.mmm, w<<7|tail)
}

func (a *Asm) evexPrefix(o *Op, f *fields) {
	b, x := f.rmBits()
	p0 := (bit(f.reg, 3)^1)<<7 | x<<6 | b<<5 | (bit(f.reg, 4)^1)<<4 | o.mmm
	p1 := (^f.vvvv&15)<<3 | 4 | o.pp
	if o.has&ew1 != 0 {
		p1 |= 0x80
	}
	p2 := uint8(f.l)<<5 | (bit(f.vvvv, 4)^1)<<3 | uint8(f.mask)
	if f.zero {
		p2 |= 0x80
	}
	if f.isMem && f.mem.bcast {
		p2 |= 0x10
	}
	a.put(0x62, p0, p1, p2)
}

// modRM emits ModRM, SIB and displacement. unit is the number of bytes that an 8-bit displacement
// counts (1 outside EVEX).
func (a *Asm) modRM(f *fields, unit int32) {
	reg := f.reg & 7 << 3
	if !f.isMem {
		a.put(0xC0 | reg | f.rmReg&7)
		return
	}
	a.modMem(reg, &f.mem, unit)
}

func (a *Asm) modMem(reg uint8, m *Mem, unit int32) {
	if m.pool != 0 {
		a.put(reg | 5)
		a.Load(int(m.pool-1), code.Fixup{At: len(a.Bytes)})
		a.put32(m.disp)
		return
	}
	base := uint8(m.base) & 7
	var mod uint8
	switch {
	case m.disp == 0 && base != 5:
	case m.disp%unit == 0 && m.disp/unit >= -128 && m.disp/unit <= 127:
		mod = 0x40
	default:
		mod = 0x80
	}
	if m.index != noReg || base == 4 {
		index, scale := uint8(4), uint8(0)
		if m.index != noReg {
			index = uint8(m.index) & 7
			for s := m.scale; s > 1; s >>= 1 {
				scale++
			}
		}
		a.put(mod|reg|4, scale<<6|index<<3|base)
	} else {
		a.put(mod | reg | base)
	}
	switch mod {
	case 0x40:
		a.put(byte(m.disp / unit))
	case 0x80:
		a.put32(m.disp)
	}
}

// closePool records where the instruction with the newest pool reference ends: its displacement
// counts from there.
func (a *Asm) closePool(f *fields) {
	if f.isMem && f.mem.pool != 0 {
		a.EndLoad()
	}
}

// noteVector lists the instruction, an embedded broadcast with its count of lanes.
func (a *Asm) noteVector(o *Op, f *fields, ops []Operand) {
	shown := make([]Operand, len(ops))
	for i, x := range ops {
		shown[i] = x
		if m, is := x.(Mem); is && m.bcast {
			m.lanes = uint8(f.l.bytes() / int32(o.elt))
			shown[i] = m
		}
	}
	a.note(o.name, shown...)
}
