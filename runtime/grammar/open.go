package grammar

import (
	"math"
	"slices"
	"sync"
	"unicode/utf8"
)

// openAt describes a state of a program after which any characters that JSON strings contain
// unescaped may follow: at least run of them, and after each of them the shortest path to the end
// of the rule has at most after bytes. A free loop is a single such state; openAt covers whole
// regions of states, such as those of a string that must not match an expression.
type openAt struct {
	run   int32 // maxRun if unlimited
	after float32
}

// textLoop returns the free loop of open states, for masks. It is created on first use, because the
// classes of all characters take milliseconds, which a program without a grammar should not spend
// at its start.
var textLoop = sync.OnceValue(func() *freeLoop { return &freeLoop{of: jsonClasses, bytes: jsonClasses.bytes()} })

// kind is the part of a character that a state reads: the first byte, or what may follow it.
type kind uint8

const (
	unread kind = iota
	starts      // the first byte of a character
	one         // any last byte, any last two and last three bytes
	two
	three
	afterE0 // the bytes after these, which are restricted
	afterE2
	afterE280 // excludes line separators
	afterED
	afterF0
	afterF4
	several // more than one of the above
)

// step is a range of bytes that a state of a kind must read, and the kind of the next state.
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

// within maps a kind to the kind that reads all of its bytes; a state may be of both.
var within = [several]kind{afterE0: two, afterE2: two, afterE280: one, afterED: two, afterF0: three, afterF4: three}

// opener finds the open states. A state without outgoing characters is open for no character,
// states that lead to it for one, and so on; states that are never reached in this way are open
// without limit.
type opener struct {
	*builder
	kinds []kind
	// reads reports the states that read all bytes of their kind. Other states reach some of these
	// without reading a byte (ways).
	reads []bool
	run   []int32   // by a state's own edges; maxRun until known
	total []int32   // by the edges of all states in ways
	into  [][]int32 // states with edges to a state
	from  [][]int32 // states that reach a state without reading a byte
	left  []int32   // number of states in ways that are still open
	level []int32   // states whose run is known, to be processed
	next  []int32
}

// mostOpenWays is the largest number of states visited without reading a byte.
const mostOpenWays = 16

// findOpen finds the open states of a program with the given number of edges.
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

// covers reports whether the edges together read all bytes of the steps.
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

// findKinds determines for each state which part of a character it reads.
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

// link computes the relations between states, and the states that are not open.
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
			o.level = append(o.level, at) // part of a character that is not open
		}
	}
}

// ways returns the states that a state reaches without reading a byte, including itself, and that
// read all bytes of their kind. Inside a character it considers only the state itself.
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

// lose records that a state is open for run characters only.
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

// keep stores the result with the costs of the shortest ends of rules after the characters.
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

// leave removes open states from free loops of fewer characters, for which no part of the
// vocabulary is needed then.
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
