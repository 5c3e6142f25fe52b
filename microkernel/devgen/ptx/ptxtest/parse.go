// Package ptxtest runs the PTX text of package ptx in Go, for tests. It knows the instructions that
// the package prints, and reports others as errors.
package ptxtest

import (
	"fmt"
	"strconv"
	"strings"
)

// program is a parsed entry.
type program struct {
	code      []instr
	params    []param
	size      int // of a workgroup
	shared    int // bytes
	registers int
}

type param struct {
	name string
	wide bool // an address
}

// instr is an instruction. Operands of vectors follow each other.
type instr struct {
	op      []string                    // divided at dots
	compute func(x, y, z uint64) uint64 // of a computation; nil: another or an unknown instruction
	global  bool                        // a transfer to or from global memory
	text    string
	pred    int // register of the predicate, or -1
	negated bool
	args    []operand
	target  int // of a branch
}

// kind describes what an operand is.
type kind uint8

const (
	register kind = iota
	immediate
	special
	parameter
)

// operand is an operand: a register, an immediate, a special register or a parameter, plus an
// offset in an address.
type operand struct {
	kind  kind
	index int
	value uint64
	name  string
}

// parser reads one entry.
type parser struct {
	program
	names  map[string]int // registers
	labels map[string]int
}

// parse reads the text of a module with one entry.
func parse(text string) (*program, error) {
	open, end := strings.Index(text, "{\n"), strings.LastIndex(text, "}")
	if open < 0 || end < open {
		return nil, fmt.Errorf("the text has no entry")
	}
	p := parser{names: map[string]int{}, labels: map[string]int{}}
	if err := p.header(text[:open]); err != nil {
		return nil, err
	}
	for line := range strings.Lines(text[open+2 : end]) {
		if err := p.line(strings.TrimSpace(line)); err != nil {
			return nil, fmt.Errorf("%q: %w", strings.TrimSpace(line), err)
		}
	}
	p.registers = len(p.names)
	for i := range p.code {
		in := &p.code[i]
		if in.op[0] != "bra" {
			continue
		}
		at, ok := p.labels[in.args[0].name]
		if !ok {
			return nil, fmt.Errorf("%q: no such label", in.text)
		}
		in.target = at
	}
	return &p.program, nil
}

func (p *parser) header(text string) error {
	list := text[strings.Index(text, "(")+1 : strings.Index(text, ")")]
	for _, s := range strings.Split(list, ",") {
		if f := strings.Fields(s); len(f) == 3 {
			p.params = append(p.params, param{f[2], f[1] == ".u64"})
		}
	}
	_, size, ok := strings.Cut(text, ".maxntid ")
	if !ok {
		return fmt.Errorf("the entry has no .maxntid")
	}
	size, _, _ = strings.Cut(size, ",")
	var err error
	p.size, err = strconv.Atoi(size)
	return err
}

func (p *parser) line(s string) error {
	switch {
	case s == "":
		return nil
	case strings.HasSuffix(s, ":"):
		p.labels[s[:len(s)-1]] = len(p.code)
		return nil
	case !strings.HasSuffix(s, ";"):
		return fmt.Errorf("no instruction")
	case strings.HasPrefix(s, ".reg"):
		return p.declare(strings.TrimSuffix(strings.Fields(s)[2], ";"))
	case strings.HasPrefix(s, ".shared"):
		n, err := strconv.Atoi(s[strings.Index(s, "[")+1 : strings.Index(s, "]")])
		p.shared = n
		return err
	}
	return p.instruction(s[:len(s)-1])
}

// declare declares registers: %name or %name<count>.
func (p *parser) declare(s string) error {
	name, count, many := strings.Cut(strings.TrimSuffix(s, ">"), "<")
	if !many {
		p.names[name] = len(p.names)
		return nil
	}
	n, err := strconv.Atoi(count)
	for i := range n {
		p.names[name+strconv.Itoa(i)] = len(p.names)
	}
	return err
}

func (p *parser) instruction(s string) error {
	in := instr{pred: -1, text: s}
	if s[0] == '@' {
		guard, rest, _ := strings.Cut(s[1:], " ")
		in.negated = guard[0] == '!'
		r, ok := p.names[strings.TrimPrefix(guard, "!")]
		if !ok {
			return fmt.Errorf("unknown register %s", guard)
		}
		in.pred, s = r, rest
	}
	op, rest, _ := strings.Cut(s, " ")
	in.op, in.compute = strings.Split(op, "."), functions[op]
	in.global = len(in.op) > 1 && in.op[1] == "global"
	for _, a := range strings.FieldsFunc(rest, func(r rune) bool { return r == ',' }) {
		if err := p.operand(&in, strings.TrimSpace(a)); err != nil {
			return err
		}
	}
	p.code = append(p.code, in)
	return nil
}

// operand appends an operand.
func (p *parser) operand(in *instr, s string) error {
	var o operand
	name, offset, _ := strings.Cut(strings.Trim(s, "{}[]"), "+")
	if offset != "" {
		x, err := strconv.ParseUint(offset, 0, 64)
		if err != nil {
			return err
		}
		o.value = x
	}
	o.name = name
	r, isRegister := p.names[name]
	switch {
	case isRegister:
		o.kind, o.index = register, r
	case strings.HasPrefix(name, "%tid") || strings.HasPrefix(name, "%ctaid"):
		o.kind = special
	case name == "smem":
		o.kind = immediate
	case strings.HasPrefix(name, "0f"):
		x, err := strconv.ParseUint(name[2:], 16, 32)
		if err != nil {
			return err
		}
		o.kind, o.value = immediate, x
	case name[0] >= '0' && name[0] <= '9':
		x, err := strconv.ParseUint(name, 10, 64)
		if err != nil {
			return err
		}
		o.kind, o.value = immediate, x
	case in.op[0] == "bra":
	default:
		for i, q := range p.params {
			if q.name == name {
				o.kind, o.index = parameter, i
				in.args = append(in.args, o)
				return nil
			}
		}
		return fmt.Errorf("unknown operand %s", s)
	}
	in.args = append(in.args, o)
	return nil
}
