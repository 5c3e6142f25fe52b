package asm

import (
	"strings"
	"sync"

	"sandwich/microkernel/internal/code"
)

// classes lists the classes of instructions by the prefixes of their names. The first prefix that
// matches decides; instructions without one only move data.
var classes = []struct {
	prefixes string
	class    code.Class
}{
	{"vmov vmask vgather", code.Other},
	{"vpmovzx vpmovsx vpmovs vpmovd vbroadcast vpbroadcast vpshuf vshuf vperm valign vpalign vunpck vpunpck vpack " +
		"vextract vinsert", code.Shuffle},
	{"vcvt vround vrndscale vscalef", code.Convert},
	{"vdpbf16", code.DotPairs},
	{"vpdp {vex} vpmadd vpmul", code.Dot},
	{"vpsl vpsr vpsra", code.Shift},
	{"vfm vfnm vadd vsub vmul vdiv vmax vmin vsqrt", code.Multiply},
	{"vp vand vor vxor vblend vcmp", code.Logic},
}

// byOp returns the class of every instruction without a memory operand. It is computed when the
// first instruction is counted.
var byOp = sync.OnceValue(func() map[*Op]code.Class {
	classes := make(map[*Op]code.Class, len(all))
	for _, o := range all {
		classes[o] = classNamed(o.name)
	}
	return classes
})

func classNamed(name string) code.Class {
	for _, c := range classes {
		for prefix := range strings.FieldsSeq(c.prefixes) {
			if strings.HasPrefix(name, prefix) {
				return c.class
			}
		}
	}
	return code.Other
}

// count counts one vector instruction.
func (a *Asm) count(o *Op, f *fields, toMemory bool) {
	class := byOp()[o]
	switch {
	case f.isMem && toMemory:
		a.Count(code.Store, 1)
	case f.isMem && (f.mem.bcast || o.tup == scalar):
		a.Count(code.LoadWord, 1)
	case f.isMem:
		a.Count(code.Load, 1)
	case class == code.Logic && f.reg == f.vvvv && f.reg == f.rmReg && strings.Contains(o.name, "xor"):
		return // register renaming clears the register
	}
	if f.isMem && strings.Contains(o.name, "broadcast") {
		return // done by the load
	}
	a.Count(class, 1)
}
