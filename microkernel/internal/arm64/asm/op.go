package asm

import (
	"fmt"
	"strings"
	"sync"
)

// Op describes one instruction. The ops are package variables named after the instruction.
type Op struct {
	syntax string
	word   uint32
	level  Level
	once   sync.Once
	parsed
}

// parsed is a parsed syntax. Syntaxes are parsed when the first instruction is emitted, because
// most processes never emit one.
type parsed struct {
	fields []field
	pieces []string // the text around the fields
}

// all lists every op, for tests.
var all []*Op

// def makes an instruction of Armv8.0-A out of its fixed bits and its syntax, in which operands
// stand as
//
//	%Vd %Qd %Dd %Sd %Hd   vector register in field d, spelled v, q, d, s, h
//	%Xd %Wd               general register, 31 is the zero register;  %Yd  31 is the stack pointer
//	%NAME                 a number, see numbers
//
// Fields: d and t are bits 0 to 4, n 5 to 9, m 16 to 20, a and u (second of a pair) 10 to 14.
func def(word uint32, syntax string) *Op { return defAt(Base, word, syntax) }

func defAt(level Level, word uint32, syntax string) *Op {
	o := &Op{syntax: syntax, word: word, level: level}
	all = append(all, o)
	return o
}

// parse parses the syntax.
func (o *Op) parse() *parsed {
	o.once.Do(func() {
		parts := strings.Split(o.syntax, "%")
		o.pieces = []string{parts[0]}
		for _, p := range parts[1:] {
			n := 0
			for n < len(p) && (p[n] >= 'a' && p[n] <= 'z' || p[n] >= 'A' && p[n] <= 'Z' || p[n] >= '0' && p[n] <= '9') {
				n++
			}
			if p[0] == 'T' {
				n = 2 // a tile's number, followed by the letters of a slice
			}
			f := fieldOf(p[:n])
			f.written = f.class == general && o.writes(p[:n], p[n:])
			o.fields = append(o.fields, f)
			o.pieces = append(o.pieces, p[n:])
		}
	})
	return &o.parsed
}

// writes reports whether the instruction changes the general register of a name in its syntax: its
// result, a loaded register, or an address that it increments, as the text after the name shows.
func (o *Op) writes(name, after string) bool {
	switch name[1] {
	case 'd':
		return true
	case 't':
		return strings.HasPrefix(o.syntax, "ld")
	}
	return strings.HasPrefix(after, "], ")
}

// text spells an instruction as assemblers read it.
func (o *Op) text(args []Operand) string {
	of := o.parse()
	s := of.pieces[0]
	for i, f := range of.fields {
		_, v := args[i].operand()
		if v == 31 && f.last != "" {
			s += f.last
		} else {
			prefix := f.prefix
			if strings.HasSuffix(s, "[") {
				prefix = strings.TrimPrefix(prefix, "#") // the index of a lane
			}
			s += fmt.Sprintf("%s%d", prefix, v)
		}
		s += of.pieces[i+1]
	}
	return s
}
