package grammar

import (
	"errors"
	"math"
	"unsafe"
)

// program is a grammar as automata: one for each rule, and one for the body of each loop.
type program struct {
	states   []pstate
	start    int32
	free     []freeLoop
	edges    []edge   // of all states, one state behind the other
	tops     []topWay // by state
	heavy    []int32  // states of many words (followed)
	reached  []reach  // by state; nil where nobody asks
	open     []openAt // by state; nil where none is
	texts    []int32  // by state: the region of texts that it is in; 0: none
	kinds    []*kinds // by region
	charText int32    // the region of the rule of one character, which others call
	bytes    int64    // that it takes, about
}

// topWay is what masks look at of most states: large enums have many, and only these lie close
// together.
type topWay struct {
	dist   float64 // as of the state
	first  int32   // its edges
	count  uint16
	simple bool // it has these edges alone, a byte leads one way, and it is not final
}

// pstate is a state of the automaton of a rule.
type pstate struct {
	edges []edge
	dist  float64 // bytes of the shortest way to the end of its rule; +Inf: there is none
	free  int32   // 1 + the number of its freeLoop; 0: it has none
	final bool
	eps   []int32
	calls []callEdge
	loop  *loopState
}

type edge struct {
	byteRange
	to int32
}

// callEdge enters a rule and goes on at back.
type callEdge struct{ start, back int32 }

// loopState counts: while fewer than most rounds are done it may enter body, which comes back to
// it, and from least on it may leave to next. Rounds of an endless loop are counted up to least.
type loopState struct {
	body, next  int32
	least, most int32 // most < 0: endless
	free        int32 // 1 + the number of its freeLoop, whose characters are a round each; 0: it has none
}

const maxCount = 1 << 24

// builder writes a program. Rules are named first and given their expressions later, so that they
// may call each other.
type builder struct {
	program
	rules []ruleDef
	meter *Meter
	// Rules that are written once: one character inside of a JSON string, a whole string, the rest
	// of its characters, white space, any value; -1 before they are.
	plain, quoted, rest, blank, any ruleID
	// multiples are states that many numbers share, classes the automata of large classes of
	// characters, and tails states inside of characters.
	multiples map[multiple]int32
	classes   map[uint64]int32
	tails     map[tail]int32
	// patterns are the expressions that were read; spent is the steps that matching them took.
	patterns map[patternKey]*pattern
	spent    int
	// regions are those of texts (kinds.go), and inside the one that is written; 0: none.
	regions []textRegion
	inside  int32
	// unwritten is the bytes of expressions that are of no use once they are written.
	unwritten int
	// schemas are those that an answer may have to satisfy as a whole. diagnosing tells that one of
	// them cannot be, and that rules stay apart to find out which of its parts.
	schemas    []wholeSchema
	diagnosing bool
	// writing tells that rules are written, so that none may be made any more.
	writing bool
	// refused is why a rule cannot be written that was made.
	refused *Error
	// partly: some of what a schema does not allow was left out.
	partly bool
}

type ruleDef struct {
	path  string
	of    *Schema // that the path leads into; nil where errors need not know
	body  expr
	start int32
	end   int32
	// inlined: it stands in the place of its one call.
	inlined bool
}

func newBuilder(m *Meter) *builder {
	return &builder{meter: m, plain: -1, quoted: -1, rest: -1, blank: -1, any: -1}
}

func (b *builder) rule(path string) ruleID {
	if b.writing {
		panic("grammar: a rule is made after rules were written")
	}
	b.meter.take(2 * stateCost)
	b.rules = append(b.rules, ruleDef{path: path, body: nothing{}})
	return ruleID(len(b.rules) - 1)
}

func (b *builder) define(r ruleID, e expr) { b.rules[r].body = e }

// link writes all rules and makes the program that starts with root.
func (b *builder) link(root ruleID) (p *program, err error) {
	at, finished := root, false // the rule that is written, and whether all are
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
	if errors.As(err, &e) && e.schema == nil && !finished {
		e.schema = b.rules[at].of
	}
	return p, err
}

// writeRules writes the automata of all rules; at follows the one that is written, by the last one
// that has a path.
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

// finish reduces and measures the automata, and makes the program of them.
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
	if err := b.unsatisfied(); err != nil {
		return nil, err
	}
	start := b.rules[root].start
	if math.IsInf(b.states[start].dist, 1) {
		if b.partly {
			return nil, refuse(b.rules[root].path, "nothing is found that satisfies it: not all of what a schema does "+
				"not allow can be said")
		}
		e := refuse(b.rules[root].path, "nothing satisfies it")
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

// size returns the number of states and of all ways out of them.
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

// pack puts the edges of all states side by side, in their order: masks of large enums follow
// thousands of them.
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

// write makes ways from one state to the other that spell e.
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

// unrolled is how many rounds of a body are written out instead of counted, and smallBody how many
// states such a body takes at most.
const (
	unrolled  = 4
	smallBody = 32
)

// sizeOf returns about how many states an expression takes, up to some more than most.
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
		panic(refuse("", "a repetition is counted to %d at most", maxCount))
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
