package automaton

import (
	"errors"
	"math"
	"unsafe"
)

// Link writes all rules and returns the program that starts with root.
func (b *Builder) Link(root RuleID) (p *Program, err error) {
	at, finished := root, false // the current rule, and whether all rules are written
	err = Guard(func() (err error) {
		if b.Refused != nil {
			return b.Refused
		}
		b.writeRules(&at)
		finished = true
		p, err = b.finish(root)
		return err
	}, func() string {
		if finished {
			return b.Rules[root].Path
		}
		return b.Rules[at].Path
	})
	var e *Error
	if errors.As(err, &e) && e.Owner == nil && !finished {
		e.Owner = b.Rules[at].Of
	}
	return p, err
}

// writeRules writes the automata of all rules. at is set to the last rule with a path, for errors.
func (b *Builder) writeRules(at *RuleID) {
	b.writing = true
	for i := range b.Rules {
		b.Rules[i].Start = b.State()
	}
	for i := range b.Rules {
		if b.Rules[i].Path != "" {
			*at = RuleID(i)
		}
		end := b.State()
		b.States[end].Final = true
		b.Rules[i].end = end
		b.Write(b.Rules[i].body, b.Rules[i].Start, end)
		if RuleID(i) == b.plain {
			b.CharText = int32(len(b.regions))
			b.Texts[b.Rules[i].Start], b.Texts[end] = b.CharText, b.CharText
		}
		b.Rules[i].body = nil
	}
	b.Meter.Give(b.Unwritten)
}

// finish reduces and measures the automata and returns the program.
func (b *Builder) finish(root RuleID) (*Program, error) {
	states, edges := b.size()
	b.Meter.Work(8 * (states + edges))
	if !b.Diagnosing {
		b.inline(root)
		b.Meter.scratch(13*states, b.mergePrefixes)
	}
	b.Meter.scratch(40*states+8*edges, b.measure)
	if err := b.checkLoops(); err != nil {
		return nil, err
	}
	for _, w := range b.Wholes {
		if math.IsInf(b.States[b.Rules[w.Rule].Start].Dist, 1) {
			return nil, w.Refuse()
		}
	}
	start := b.Rules[root].Start
	if math.IsInf(b.States[start].Dist, 1) {
		if b.Partly {
			return nil, Refuse(b.Rules[root].Path, "no value was found that satisfies the schema: the negated schemas "+
				"in it are only partly supported")
		}
		e := Refuse(b.Rules[root].Path, "no value satisfies the schema")
		e.None = true
		return nil, e
	}
	if err := b.leftRecursion(); err != nil {
		return nil, err
	}
	b.prune()
	b.findFree()
	b.findOpen(edges)
	b.findReach()
	b.findTexts()
	b.Meter.Take(int(unsafe.Sizeof(topWay{}))*states + 8*edges)
	b.pack()
	b.Start = start
	out := b.Program
	out.Bytes = b.memory()
	return &out, nil
}

// memory returns about how many bytes the program takes.
func (p *Program) memory() int64 {
	n := int(unsafe.Sizeof(pstate{})+unsafe.Sizeof(topWay{}))*len(p.States) + 8*len(p.Edges) + 64*len(p.Free) +
		len(p.Reached) + 8*len(p.Open) + 4*len(p.Texts)
	for i := range p.States {
		n += 4*cap(p.States[i].Eps) + 8*cap(p.States[i].Calls)
		if p.States[i].Loop != nil {
			n += int(unsafe.Sizeof(LoopState{}))
		}
	}
	for _, k := range p.Kinds {
		if k != nil {
			n += 256 + 9*len(k.cuts) + 2*len(k.Name)
		}
	}
	return int64(n)
}

// pack stores the edges of all states consecutively, because masks of large enums follow thousands
// of them.
func (b *Builder) pack() {
	n := 0
	for i := range b.States {
		n += len(b.States[i].Edges)
	}
	b.Edges, b.Tops = make([]edge, 0, n), make([]topWay, len(b.States))
	for i := range b.States {
		s := &b.States[i]
		first := len(b.Edges)
		b.Edges = append(b.Edges, s.Edges...)
		s.Edges = b.Edges[first:len(b.Edges):len(b.Edges)]
		simple := len(s.Eps)+len(s.Calls) == 0 && s.Loop == nil && !s.Final && s.Free == 0 && len(s.Edges) <= 256
		for j := 1; j < len(s.Edges) && simple; j++ {
			simple = s.Edges[j-1].Hi < s.Edges[j].Lo
		}
		b.Tops[i] = topWay{s.Dist, int32(first), uint16(min(len(s.Edges), 256)), simple}
	}
}
