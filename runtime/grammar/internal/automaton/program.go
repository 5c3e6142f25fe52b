// Package automaton builds programs: grammars as automata over bytes. Expressions describe sets of
// strings; a Builder writes them as the automata of rules and reduces these; a Meter limits the
// memory and the work of it.
package automaton

import (
	"errors"
	"math"
	"unsafe"
)

// Program is a grammar as automata: one per rule, and one per body of a loop.
type Program struct {
	States   []pstate
	Start    int32
	Free     []FreeLoop
	Edges    []edge   // edges of all states, consecutively
	Tops     []topWay // by state
	Heavy    []int32  // states with many words (followed)
	Reached  []reach  // by state; nil if not needed
	Open     []openAt // by state; nil if no state is open
	Texts    []int32  // by state: its region of texts; 0 for none
	Kinds    []*Kinds // by region
	CharText int32    // region of the rule for one character, which other regions call
	Bytes    int64    // approximate size
}

// topWay is the part of a state that most masks use. It is stored separately so that the states of
// large enums lie close together.
type topWay struct {
	Dist   float64 // copy of pstate.dist
	First  int32   // index of its edges
	Count  uint16
	Simple bool // it has only edges, at most one per byte, and is not final
}

// pstate is a state of the automaton of a rule.
type pstate struct {
	Edges []edge
	Dist  float64 // bytes of the shortest path to the end of its rule; +Inf if there is none
	Free  int32   // index of its freeLoop plus 1; 0 for none
	Final bool
	Eps   []int32
	Calls []callEdge
	Loop  *LoopState
}

type edge struct {
	ByteRange
	To int32
}

// callEdge calls a rule and continues at back.
type callEdge struct{ Start, Back int32 }

// LoopState is a loop with a counter. While fewer than most rounds are complete, it may enter body,
// which returns to it; after least rounds it may continue at next. Rounds of an unlimited loop are
// counted up to least.
type LoopState struct {
	Body, Next  int32
	Least, Most int32 // most < 0: unlimited
	Free        int32 // index plus 1 of the freeLoop whose characters are one round each; 0 for none
}

// MaxCount is the largest count of a repetition.
const MaxCount = 1 << 24

// Builder writes a program. Rules are created first and defined later, so that they may call each
// other.
type Builder struct {
	Program
	Rules []ruleDef
	Meter *Meter
	// Rules that are written once: one character of a JSON string, a whole string, the rest of its
	// characters, white space, any value. They are -1 before they exist.
	plain, quoted, rest, blank, any RuleID
	// multiples are states shared by many numbers, classes the automata of large character classes,
	// and tails states inside characters.
	multiples map[multiple]int32
	classes   map[uint64]int32
	tails     map[tail]int32
	// Patterns is the cache of parsed expressions (package pattern).
	Patterns any
	// regions are the regions of texts (kinds.go), and inside is the number of the current one; 0
	// for none.
	regions []textRegion
	inside  int32
	// Unwritten is the number of bytes of expressions that are released after writing.
	Unwritten int
	// Wholes are the schemas that an answer may have to satisfy as a whole. diagnosing keeps their
	// rules separate, to find out which part of an unsatisfiable schema is the cause.
	Wholes     []WholeRule
	Diagnosing bool
	// writing is set when rules are written; no rule may be created after that.
	writing bool
	// Refused is the error of a rule that cannot be written.
	Refused *Error
	// Partly reports that a negated schema was only partly excluded.
	Partly bool
}

// WholeRule is a rule that an answer may have to satisfy as a whole. refuse returns the error if no
// text satisfies it.
type WholeRule struct {
	Rule   RuleID
	Refuse func() error
}

type ruleDef struct {
	Path  string
	Of    any // owner of the path; nil if errors need not name it
	body  Expr
	Start int32
	end   int32
	// inlined reports that the rule replaces its only call.
	inlined bool
}

// NewBuilder returns a builder that charges its memory and work to m.
func NewBuilder(m *Meter) *Builder {
	return &Builder{Meter: m, plain: -1, quoted: -1, rest: -1, blank: -1, any: -1}
}

// Rule creates a rule, which Define must define later. path names it in errors and may be empty.
func (b *Builder) Rule(path string) RuleID {
	if b.writing {
		panic("grammar: rule created after rules were written")
	}
	b.Meter.Take(2 * stateCost)
	b.Rules = append(b.Rules, ruleDef{Path: path, body: Nothing{}})
	return RuleID(len(b.Rules) - 1)
}

// Define sets the expression of a rule.
func (b *Builder) Define(r RuleID, e Expr) { b.Rules[r].body = e }

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

// size returns the number of states and of all edges out of them.
func (b *Builder) size() (states, ways int) {
	for i := range b.States {
		s := &b.States[i]
		ways += len(s.Edges) + len(s.Eps) + len(s.Calls)
	}
	return len(b.States), ways
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

// State adds a state without edges.
func (b *Builder) State() int32 {
	b.grow(stateCost)
	b.States = append(b.States, pstate{})
	b.Texts = append(b.Texts, b.inside)
	return int32(len(b.States) - 1)
}

// grow counts bytes of the program.
func (b *Builder) grow(n int) { b.Meter.Take(n) }

// Edge adds an edge that reads a byte in a range.
func (b *Builder) Edge(from, to int32, r ByteRange) {
	b.grow(edgeCost)
	b.States[from].Edges = append(b.States[from].Edges, edge{r, to})
}

// Eps adds an edge that reads nothing.
func (b *Builder) Eps(from, to int32) {
	b.grow(wayCost)
	b.States[from].Eps = append(b.States[from].Eps, to)
}

// Write writes paths from one state to another that match e.
func (b *Builder) Write(e Expr, from, to int32) {
	switch e := e.(type) {
	case Empty:
		b.Eps(from, to)
	case Nothing:
	case Inner:
		b.writeInner(e.Body, from, to)
	case escape:
		b.writeEscape(e.body, from, to)
	case Literal:
		b.writeWords([]string{string(e)}, from, to)
	case Words:
		b.writeWords(e, from, to)
	case Runes:
		b.WriteRunes(e, from, to)
	case Sequence:
		for i, x := range e {
			next := to
			if i < len(e)-1 {
				next = b.State()
			}
			b.Write(x, from, next)
			from = next
		}
		if len(e) == 0 {
			b.Eps(from, to)
		}
	case Choice:
		for _, x := range e {
			b.Write(x, from, to)
		}
	case Repeat:
		b.writeRepeat(e, from, to)
	case Automaton:
		e(b, from, to)
	case Call:
		b.grow(wayCost)
		b.States[from].Calls = append(b.States[from].Calls, callEdge{b.Rules[e.Rule].Start, to})
	}
}

// unrolled is the largest number of rounds that are written out instead of counted, and smallBody
// the largest number of states of such a body.
const (
	unrolled  = 4
	smallBody = 32
)

// sizeOf returns about how many states an expression needs. It stops soon after most.
func sizeOf(e Expr, most int) int {
	n := 1
	add := func(x Expr) { n += sizeOf(x, most-n) }
	if most < 0 {
		return n
	}
	switch e := e.(type) {
	case Literal:
		n = len(e)
	case Words:
		for _, w := range e {
			n += len(w)
		}
	case Runes:
		n += len(e)
	case Inner:
		add(e.Body)
	case escape:
		add(e.body)
	case Sequence:
		for i := 0; i < len(e) && n <= most; i++ {
			add(e[i])
		}
	case Choice:
		for i := 0; i < len(e) && n <= most; i++ {
			add(e[i])
		}
	case Repeat:
		add(e.Body)
		if e.Most < 0 && e.Least <= unrolled && n <= smallBody {
			n *= max(1, e.Least)
		}
	case Automaton:
		n = most + 1
	}
	return n
}

func (b *Builder) writeRepeat(e Repeat, from, to int32) {
	switch {
	case e.Most == 0:
		b.Eps(from, to)
		return
	case e.Most == 1 && e.Least == 0:
		b.Eps(from, to)
		b.Write(e.Body, from, to)
		return
	case e.Most == 1:
		b.Write(e.Body, from, to)
		return
	}
	c, isCall := e.Body.(Call)
	if e.Most < 0 && e.Least <= unrolled && (e.Least == 0 || sizeOf(e.Body, smallBody) <= smallBody) {
		for range e.Least {
			next := b.State()
			b.Write(e.Body, from, next)
			from = next
		}
		loop := b.State()
		b.Eps(from, loop)
		b.Write(e.Body, loop, loop)
		b.Eps(loop, to)
		return
	}
	if e.Least > MaxCount || e.Most > MaxCount {
		panic(Refuse("", "a repetition is limited to %d", MaxCount))
	}
	body, end, loop := b.State(), b.State(), b.State()
	b.States[end].Final = true
	if isCall {
		body = b.Rules[c.Rule].Start
	} else {
		b.Write(e.Body, body, end)
	}
	b.States[loop].Loop = &LoopState{Body: body, Next: to, Least: int32(e.Least), Most: int32(e.Most)}
	b.Eps(from, loop)
}
