package asm

import (
	"strings"
	"sync"

	"sandwich/microkernel/internal/code"
)

// classes has the classes of instructions by mnemonic. Instructions that are not listed only move
// data, or work on general registers.
var classes = map[code.Class]string{
	code.Multiply: "fadd fsub fmul fdiv fmax fmin fmla fmls fneg fabs fsqrt mla",
	code.Dot:      "sdot usdot smmla usmmla smull smull2 sadalp saddlp",
	code.DotPairs: "bfdot bfmmla",
	code.Logic: "add sub and orr eor bic bit bif bsl fcmeq fcmgt fcmge cmgt cmeq smax smin smaxv sminv addv " +
		"umaxv addp movi",
	code.Shift: "shl ushr sshr sli",
	code.Shuffle: "dup ins ext zip1 zip2 uzp1 uzp2 trn1 trn2 rev64 tbl shll shll2 sshll sshll2 ushll ushll2 " +
		"sqxtn sqxtn2 xtn umov smov mova",
	code.Convert: "fcvtns scvtf ucvtf fcvtl fcvtl2 fcvtn fcvtn2",
	code.Load:    "ldr ldur ldp ld1 ld1b ld1w ld1h",
	code.Store:   "str stur stp st1 st1w st1b",
	code.Tile:    "fmopa smopa",
}

// byOp is the class of every instruction, sorted when the first one is counted.
var byOp = sync.OnceValue(func() map[*Op]code.Class {
	sorted := make(map[*Op]code.Class, len(all))
	named := map[string]code.Class{}
	for c, names := range classes {
		for name := range strings.FieldsSeq(names) {
			named[name] = c
		}
	}
	for _, o := range all {
		name, _, _ := strings.Cut(o.syntax, " ")
		c := named[name]
		onVectors := strings.ContainsAny(o.syntax, "{") || strings.Contains(o.syntax, "%V") ||
			strings.Contains(o.syntax, "%Z") || strings.Contains(o.syntax, "%T")
		switch {
		case strings.HasPrefix(name, "ld1r"), name == "prfm", c == code.Load && !strings.Contains(o.syntax, "%Q"):
			c = code.LoadWord
			if strings.Contains(o.syntax, "%Z") || strings.Contains(o.syntax, "%T") {
				c = code.Load
			}
		case c != code.Load && c != code.Store && !onVectors:
			c = code.Other
		}
		sorted[o] = c
	}
	return sorted
})

// count counts one instruction: pairs of registers are two loads or stores.
func (a *Asm) count(o *Op) {
	n := 1.0
	if strings.Contains(o.syntax, "%Qu") {
		n = 2
	}
	a.Count(byOp()[o], n)
}
