package grammar

import (
	"math"
	"slices"
	"sync"
	"unicode/utf8"
)

// openAt says of a state of a program that any characters that stand in a JSON string as they are
// may follow, whatever they are: so many at least, and behind each of them the shortest way to the
// end of the rule is no longer than after. A free loop is such a state; here it is a whole region
// of states, such as those of a string that must not match an expression, or of look-ahead.
type openAt struct {
	run   int32 // endless: maxRun
	after float32
}

// textLoop stands for the characters of open states where masks ask for a loop's.
// It is made when a mask asks first: the classes of all characters take milliseconds, which no
// program without a grammar should spend at its start.
var textLoop = sync.OnceValue(func() *freeLoop { return &freeLoop{of: jsonClasses, bytes: jsonClasses.bytes()} })

// kind is what of a character a state reads: the first byte, or what may follow that.
type kind uint8

const (
	unread kind = iota
	starts      // a character
	one         // any last byte of one, any two and three last bytes
	two
	three
	afterE0 // the bytes behind these, which are not free
	afterE2
	afterE280 // of ends of lines
	afterED
	afterF0
	afterF4
	several // more than one of these
)

// step is a range of bytes that a state of a kind has to read, and the kind of state behind them.
type step struct {
	byteRange
	to kind
}

var mustRead = [several][]step{
	starts: {{byteRange{' ', '!'}, starts}, {byteRange{'#', '['}, starts}, {byteRange{']', 0x7F}, starts},
		{byteRange{0xC2, 0xDF}, one}, {byteRange{0xE0, 0xE0}, afterE0}, {byteRange{0xE1, 0xE1}, two},
		{byteRange{0xE2, 0xE2}, afterE2}, {byteRange{0xE3, 0xEC}, two}, {byteRange{0xED, 0xED}, afterED},
		{byteRange{0xEE, 0xEF}, two}, {byteRange{0xF0, 0xF0}, afterF0},
		{byteRange{0xF1, 0xF3}, three}, {byteRange{0xF4, 0xF4}, afterF4}},
	one:       {{byteRange{0x80, 0xBF}, starts}},
	two:       {{byteRange{0x80, 0xBF}, one}},
	three:     {{byteRange{0x80, 0xBF}, two}},
	afterE0:   {{byteRange{0xA0, 0xBF}, one}},
	afterE2:   {{byteRange{0x80, 0x80}, afterE280}, {byteRange{0x81, 0xBF}, one}},
	afterE280: {{byteRange{0x80, 0xA7}, starts}, {byteRange{0xAA, 0xBF}, starts}},
	afterED:   {{byteRange{0x80, 0x9F}, one}},
	afterF0:   {{byteRange{0x90, 0xBF}, two}},
	afterF4:   {{byteRange{0x80, 0x8F}, two}},
}

// within is the kind that reads all that another one does: states may be of both.
var within = [several]kind{afterE0: two, afterE2: two, afterE280: one, afterED: two, afterF0: three, afterF4: three}

// opener finds the open states: those that read no character are not open for one more, those that
// lead to these for but one, and so on; what is not met is open without end.
type opener struct {
	*builder
	kinds []kind
	// reads are the states that read all that is asked of their kind; others go on to some of these
	// without a byte (ways).
	reads []bool
	run   []int32   // of a state's own edges; maxRun before it is known
	total []int32   // the same with those that it goes on to
	into  [][]int32 // states whose edges lead to one
	from  [][]int32 // states that go on to one without a byte
	left  []int32   // of what a state goes on to, what still is open
	level []int32   // states whose run was found, to be looked at
	next  []int32
}

// mostOpenWays is how many states without a byte are looked at behind one.
const mostOpenWays = 16

// findOpen finds the open states of a program with so many edges, where there are any.
func (b *builder) findOpen(edges int) {
	if !slices.ContainsFunc(b.states, func(s pstate) bool { return covers(s.edges, mustRead[starts]) }) {
		return
	}
	n := len(b.states)
	b.meter.scratch(90*n+8*edges, func() { b.findOpenAmong(n) })
}

func (b *builder) findOpenAmong(n int) {
	o := &opener{builder: b, kinds: make([]kind, n), reads: make([]bool, n), run: make([]int32, n),
		total: make([]int32, n), into: make([][]int32, n), from: make([][]int32, n), left: make([]int32, n)}
	o.findKinds()
	o.link()
	for lost := int32(-1); len(o.level)+len(o.next) > 0; lost++ {
		for i := 0; i < len(o.level); i++ {
			o.lose(o.level[i], lost)
		}
		o.level, o.next = o.next, o.level[:0]
	}
	o.keep()
}

// covers tells that some edges read all bytes of the steps.
func covers(edges []edge, all []step) bool {
	if len(edges) == 0 {
		return false
	}
	var takes byteSet
	for _, e := range edges {
		takes.add(e.byteRange)
	}
	for _, x := range all {
		var want byteSet
		want.add(x.byteRange)
		for i := range want {
			if want[i]&^takes[i] != 0 {
				return false
			}
		}
	}
	return true
}

// findKinds says of each state what of a character it reads.
func (o *opener) findKinds() {
	var todo []int32
	note := func(at int32, k kind) {
		switch was := o.kinds[at]; {
		case was == k, was == several, within[k] == was && was != unread:
		case was == unread || within[was] == k:
			o.kinds[at] = k
			todo = append(todo, at)
		default:
			o.kinds[at] = several
		}
	}
	for i := range o.states {
		s := &o.states[i]
		inside := slices.ContainsFunc(s.edges, func(e edge) bool { return e.lo >= utf8.RuneSelf && e.hi < 0xC0 })
		if !inside {
			note(int32(i), starts)
		}
	}
	for len(todo) > 0 {
		at := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		if o.kinds[at] == several {
			continue
		}
		for _, x := range mustRead[o.kinds[at]] {
			for _, e := range o.states[at].edges {
				if e.lo <= x.hi && e.hi >= x.lo {
					note(e.to, x.to)
				}
			}
		}
	}
}

// link finds which states lead to which, and those that are not open at all.
func (o *opener) link() {
	for i := range o.states {
		at, k := int32(i), o.kinds[i]
		o.run[i], o.total[i] = maxRun, maxRun
		if k > unread && k < several && covers(o.states[i].edges, mustRead[k]) {
			o.reads[i] = true
			for _, x := range mustRead[k] {
				for _, e := range o.states[i].edges {
					if e.lo <= x.hi && e.hi >= x.lo {
						o.into[e.to] = append(o.into[e.to], at)
					}
				}
			}
		}
	}
	for i := range o.states {
		at := int32(i)
		for _, to := range o.ways(at) {
			o.left[at]++
			o.from[to] = append(o.from[to], at)
		}
		if o.left[at] > 0 {
			continue
		}
		if o.kinds[at] == starts {
			o.next = append(o.next, at) // no character may follow
		} else {
			o.level = append(o.level, at) // nor is this one whole
		}
	}
}

// ways are the states that one goes on to without a byte, itself among them, and that read all that
// is asked. Inside of a character there is but itself.
func (o *opener) ways(at int32) (out []int32) {
	met := []int32{at}
	for i := 0; i < len(met) && i < mostOpenWays; i++ {
		if o.reads[met[i]] && o.kinds[met[i]] == o.kinds[at] {
			out = append(out, met[i])
		}
		if o.kinds[at] != starts {
			break
		}
		for _, to := range o.states[met[i]].eps {
			if !slices.Contains(met, to) {
				met = append(met, to)
			}
		}
	}
	return out
}

// lose notes that a state is open for so many characters and no more.
func (o *opener) lose(at, run int32) {
	if o.total[at] < maxRun {
		return
	}
	o.total[at] = run
	for _, p := range o.into[at] {
		if o.run[p] < maxRun {
			continue
		}
		if o.run[p] = run; o.kinds[p] == starts {
			o.run[p]++
		}
		for _, q := range o.from[p] {
			if o.left[q]--; o.left[q] > 0 {
				continue
			}
			if o.kinds[p] == starts {
				o.next = append(o.next, q)
			} else {
				o.level = append(o.level, q)
			}
		}
	}
}

// keep notes what was found, with what the ends of rules cost behind the characters.
func (o *opener) keep() {
	after := make([]float64, len(o.states))
	most := 0.0
	for i := range o.states {
		if after[i] = o.states[i].dist; !math.IsInf(after[i], 1) {
			most = max(most, after[i])
		}
	}
	changed := true
	for pass := 0; pass < reachPasses && changed; pass++ {
		o.meter.work(4 * len(o.states))
		changed = false
		for i := range o.states {
			at := i
			if pass%2 == 0 {
				at = len(o.states) - 1 - i
			}
			if o.total[at] < 1 {
				continue
			}
			x := after[at]
			for _, to := range o.ways(int32(at)) {
				for _, e := range o.states[to].edges {
					x = max(x, after[e.to])
				}
			}
			if x > after[at] {
				after[at], changed = x, true
			}
		}
	}
	for i := range o.states {
		if o.kinds[i] != starts || o.total[i] < 1 || math.IsInf(o.states[i].dist, 1) {
			continue
		}
		if o.open == nil {
			o.open = make([]openAt, len(o.states))
		}
		if changed {
			after[i] = most
		}
		o.open[i] = openAt{o.total[i], float32(after[i])}
	}
	o.leave()
}

// leave takes open states out of free loops of fewer characters, for which the vocabulary need not
// be parted then.
func (o *opener) leave() {
	for i := range o.builder.free {
		o.builder.free[i].idle = true
	}
	for i := range o.states {
		s := &o.states[i]
		if s.loop != nil && s.loop.free > 0 {
			o.builder.free[s.loop.free-1].idle = false
		}
		if s.free == 0 {
			continue
		}
		l := &o.builder.free[s.free-1]
		if o.open != nil && o.open[i].run == maxRun && !l.of.covers(jsonClasses) && jsonClasses.covers(l.of) {
			s.free = 0
		} else {
			l.idle = false
		}
	}
}
