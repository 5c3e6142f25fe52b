package grammar

import (
	"errors"
	"math"
	"unsafe"
)

// program is a grammar as automata: one per rule, and one per body of a loop.
type program struct {
	states   []pstate
	start    int32
	free     []freeLoop
	edges    []edge   // edges of all states, consecutively
	tops     []topWay // by state
	heavy    []int32  // states with many words (followed)
	reached  []reach  // by state; nil if not needed
	open     []openAt // by state; nil if no state is open
	texts    []int32  // by state: its region of texts; 0 for none
	kinds    []*kinds // by region
	charText int32    // region of the rule for one character, which other regions call
	bytes    int64    // approximate size
}

// topWay is the part of a state that most masks use. It is stored separately so that the states of
// large enums lie close together.
type topWay struct {
	dist   float64 // copy of pstate.dist
	first  int32   // index of its edges
	count  uint16
	simple bool // it has only edges, at most one per byte, and is not final
}

// pstate is a state of the automaton of a rule.
type pstate struct {
	edges []edge
	dist  float64 // bytes of the shortest path to the end of its rule; +Inf if there is none
	free  int32   // index of its freeLoop plus 1; 0 for none
	final bool
	eps   []int32
	calls []callEdge
	loop  *loopState
}

type edge struct {
	byteRange
	to int32
}

// callEdge calls a rule and continues at back.
type callEdge struct{ start, back int32 }

// loopState is a loop with a counter. While fewer than most rounds are complete, it may enter body,
// which returns to it; after least rounds it may continue at next. Rounds of an unlimited loop are
// counted up to least.
type loopState struct {
	body, next  int32
	least, most int32 // most < 0: unlimited
	free        int32 // index plus 1 of the freeLoop whose characters are one round each; 0 for none
}

const maxCount = 1 << 24

// builder writes a program. Rules are created first and defined later, so that they may call each
// other.
type builder struct {
	program
	rules []ruleDef
	meter *meter
	// Rules that are written once: one character of a JSON string, a whole string, the rest of its
	// characters, white space, any value. They are -1 before they exist.
	plain, quoted, rest, blank, any ruleID
	// multiples are states shared by many numbers, classes the automata of large character classes,
	// and tails states inside characters.
	multiples map[multiple]int32
	classes   map[uint64]int32
	tails     map[tail]int32
	// patterns is the cache of parsed expressions (regex.go).
	patterns any
	// regions are the regions of texts (kinds.go), and inside is the number of the current one; 0
	// for none.
	regions []textRegion
	inside  int32
	// unwritten is the number of bytes of expressions that are released after writing.
	unwritten int
	// wholes are the schemas that an answer may have to satisfy as a whole. diagnosing keeps their rules
	// separate, to find out which part of an unsatisfiable schema is the cause.
	wholes     []wholeRule
	diagnosing bool
	// writing is set when rules are written; no rule may be created after that.
	writing bool
	// refused is the error of a rule that cannot be written.
	refused *Error
	// partly reports that a negated schema was only partly excluded.
	partly bool
}

// wholeRule is a rule that an answer may have to satisfy as a whole. refuse returns the error if no text
// satisfies it.
type wholeRule struct {
	rule   ruleID
	refuse func() error
}

type ruleDef struct {
	path  string
	of    any // owner of the path; nil if errors need not name it
	body  expr
	start int32
	end   int32
	// inlined reports that the rule replaces its only call.
	inlined bool
}

func newBuilder(m *meter) *builder {
	return &builder{meter: m, plain: -1, quoted: -1, rest: -1, blank: -1, any: -1}
}

func (b *builder) rule(path string) ruleID {
	if b.writing {
		panic("grammar: rule created after rules were written")
	}
	b.meter.take(2 * stateCost)
	b.rules = append(b.rules, ruleDef{path: path, body: nothing{}})
	return ruleID(len(b.rules) - 1)
}

func (b *builder) define(r ruleID, e expr) { b.rules[r].body = e }

// link writes all rules and returns the program that starts with root.
func (b *builder) link(root ruleID) (p *program, err error) {
	at, finished := root, false // the current rule, and whether all rules are written
	err = guard(func() (err error) {
		if b.refused != nil {
			return b.refused
		}
		b.writeRules(&at)
		finished = true
		p, err = b.finish(root)
		return err
	}, func() string {
		if finished {
			return b.rules[root].path
		}
		return b.rules[at].path
	})
	var e *Error
	if errors.As(err, &e) && e.owner == nil && !finished {
		e.owner = b.rules[at].of
	}
	return p, err
}

// writeRules writes the automata of all rules. at is set to the last rule with a path, for errors.
func (b *builder) writeRules(at *ruleID) {
	b.writing = true
	for i := range b.rules {
		b.rules[i].start = b.state()
	}
	for i := range b.rules {
		if b.rules[i].path != "" {
			*at = ruleID(i)
		}
		end := b.state()
		b.states[end].final = true
		b.rules[i].end = end
		b.write(b.rules[i].body, b.rules[i].start, end)
		if ruleID(i) == b.plain {
			b.charText = int32(len(b.regions))
			b.texts[b.rules[i].start], b.texts[end] = b.charText, b.charText
		}
		b.rules[i].body = nil
	}
	b.meter.give(b.unwritten)
}

// finish reduces and measures the automata and returns the program.
func (b *builder) finish(root ruleID) (*program, error) {
	states, edges := b.size()
	b.meter.work(8 * (states + edges))
	if !b.diagnosing {
		b.inline(root)
		b.meter.scratch(13*states, b.mergePrefixes)
	}
	b.meter.scratch(40*states+8*edges, b.measure)
	if err := b.checkLoops(); err != nil {
		return nil, err
	}
	for _, w := range b.wholes {
		if math.IsInf(b.states[b.rules[w.rule].start].dist, 1) {
			return nil, w.refuse()
		}
	}
	start := b.rules[root].start
	if math.IsInf(b.states[start].dist, 1) {
		if b.partly {
			return nil, refuse(b.rules[root].path, "no value was found that satisfies the schema: the negated schemas "+
				"in it are only partly supported")
		}
		e := refuse(b.rules[root].path, "no value satisfies the schema")
		e.none = true
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
	b.meter.take(int(unsafe.Sizeof(topWay{}))*states + 8*edges)
	b.pack()
	b.start = start
	out := b.program
	out.bytes = b.memory()
	return &out, nil
}

// size returns the number of states and of all edges out of them.
func (b *builder) size() (states, ways int) {
	for i := range b.states {
		s := &b.states[i]
		ways += len(s.edges) + len(s.eps) + len(s.calls)
	}
	return len(b.states), ways
}

// memory returns about how many bytes the program takes.
func (p *program) memory() int64 {
	n := int(unsafe.Sizeof(pstate{})+unsafe.Sizeof(topWay{}))*len(p.states) + 8*len(p.edges) + 64*len(p.free) +
		len(p.reached) + 8*len(p.open) + 4*len(p.texts)
	for i := range p.states {
		n += 4*cap(p.states[i].eps) + 8*cap(p.states[i].calls)
		if p.states[i].loop != nil {
			n += int(unsafe.Sizeof(loopState{}))
		}
	}
	for _, k := range p.kinds {
		if k != nil {
			n += 256 + 9*len(k.cuts) + 2*len(k.name)
		}
	}
	return int64(n)
}

// pack stores the edges of all states consecutively, because masks of large enums follow thousands
// of them.
func (b *builder) pack() {
	n := 0
	for i := range b.states {
		n += len(b.states[i].edges)
	}
	b.edges, b.tops = make([]edge, 0, n), make([]topWay, len(b.states))
	for i := range b.states {
		s := &b.states[i]
		first := len(b.edges)
		b.edges = append(b.edges, s.edges...)
		s.edges = b.edges[first:len(b.edges):len(b.edges)]
		simple := len(s.eps)+len(s.calls) == 0 && s.loop == nil && !s.final && s.free == 0 && len(s.edges) <= 256
		for j := 1; j < len(s.edges) && simple; j++ {
			simple = s.edges[j-1].hi < s.edges[j].lo
		}
		b.tops[i] = topWay{s.dist, int32(first), uint16(min(len(s.edges), 256)), simple}
	}
}

func (b *builder) state() int32 {
	b.grow(stateCost)
	b.states = append(b.states, pstate{})
	b.texts = append(b.texts, b.inside)
	return int32(len(b.states) - 1)
}

// grow counts bytes of the program.
func (b *builder) grow(n int) { b.meter.take(n) }

func (b *builder) edge(from, to int32, r byteRange) {
	b.grow(edgeCost)
	b.states[from].edges = append(b.states[from].edges, edge{r, to})
}

func (b *builder) eps(from, to int32) {
	b.grow(wayCost)
	b.states[from].eps = append(b.states[from].eps, to)
}

// write writes paths from one state to another that match e.
func (b *builder) write(e expr, from, to int32) {
	switch e := e.(type) {
	case empty:
		b.eps(from, to)
	case nothing:
	case inner:
		b.writeInner(e.body, from, to)
	case escape:
		b.writeEscape(e.body, from, to)
	case literal:
		b.writeWords([]string{string(e)}, from, to)
	case words:
		b.writeWords(e, from, to)
	case runes:
		b.writeRunes(e, from, to)
	case sequence:
		for i, x := range e {
			next := to
			if i < len(e)-1 {
				next = b.state()
			}
			b.write(x, from, next)
			from = next
		}
		if len(e) == 0 {
			b.eps(from, to)
		}
	case choice:
		for _, x := range e {
			b.write(x, from, to)
		}
	case repeat:
		b.writeRepeat(e, from, to)
	case automaton:
		e(b, from, to)
	case call:
		b.grow(wayCost)
		b.states[from].calls = append(b.states[from].calls, callEdge{b.rules[e.rule].start, to})
	}
}

// unrolled is the largest number of rounds that are written out instead of counted, and smallBody
// the largest number of states of such a body.
const (
	unrolled  = 4
	smallBody = 32
)

// sizeOf returns about how many states an expression needs. It stops soon after most.
func sizeOf(e expr, most int) int {
	n := 1
	add := func(x expr) { n += sizeOf(x, most-n) }
	if most < 0 {
		return n
	}
	switch e := e.(type) {
	case literal:
		n = len(e)
	case words:
		for _, w := range e {
			n += len(w)
		}
	case runes:
		n += len(e)
	case inner:
		add(e.body)
	case escape:
		add(e.body)
	case sequence:
		for i := 0; i < len(e) && n <= most; i++ {
			add(e[i])
		}
	case choice:
		for i := 0; i < len(e) && n <= most; i++ {
			add(e[i])
		}
	case repeat:
		add(e.body)
		if e.most < 0 && e.least <= unrolled && n <= smallBody {
			n *= max(1, e.least)
		}
	case automaton:
		n = most + 1
	}
	return n
}

func (b *builder) writeRepeat(e repeat, from, to int32) {
	switch {
	case e.most == 0:
		b.eps(from, to)
		return
	case e.most == 1 && e.least == 0:
		b.eps(from, to)
		b.write(e.body, from, to)
		return
	case e.most == 1:
		b.write(e.body, from, to)
		return
	}
	c, isCall := e.body.(call)
	if e.most < 0 && e.least <= unrolled && (e.least == 0 || sizeOf(e.body, smallBody) <= smallBody) {
		for range e.least {
			next := b.state()
			b.write(e.body, from, next)
			from = next
		}
		loop := b.state()
		b.eps(from, loop)
		b.write(e.body, loop, loop)
		b.eps(loop, to)
		return
	}
	if e.least > maxCount || e.most > maxCount {
		panic(refuse("", "a repetition is limited to %d", maxCount))
	}
	body, end, loop := b.state(), b.state(), b.state()
	b.states[end].final = true
	if isCall {
		body = b.rules[c.rule].start
	} else {
		b.write(e.body, body, end)
	}
	b.states[loop].loop = &loopState{body: body, next: to, least: int32(e.least), most: int32(e.most)}
	b.eps(from, loop)
}
