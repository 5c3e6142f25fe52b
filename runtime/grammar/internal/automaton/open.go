package automaton

import (
	"math"
	"slices"
	"sync"
	"unicode/utf8"
)

// TextLoop returns the free loop of open states, for masks. It is created on first use, because the
// classes of all characters take milliseconds, which a program without a grammar should not spend
// at its start.
var TextLoop = sync.OnceValue(func() *FreeLoop { return &FreeLoop{Of: JSONClasses, Bytes: JSONClasses.Bytes()} })

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
	ByteRange
	to kind
}

var mustRead = [several][]step{
	starts: {{ByteRange{' ', '!'}, starts}, {ByteRange{'#', '['}, starts}, {ByteRange{']', 0x7F}, starts},
		{ByteRange{0xC2, 0xDF}, one}, {ByteRange{0xE0, 0xE0}, afterE0}, {ByteRange{0xE1, 0xE1}, two},
		{ByteRange{0xE2, 0xE2}, afterE2}, {ByteRange{0xE3, 0xEC}, two}, {ByteRange{0xED, 0xED}, afterED},
		{ByteRange{0xEE, 0xEF}, two}, {ByteRange{0xF0, 0xF0}, afterF0},
		{ByteRange{0xF1, 0xF3}, three}, {ByteRange{0xF4, 0xF4}, afterF4}},
	one:       {{ByteRange{0x80, 0xBF}, starts}},
	two:       {{ByteRange{0x80, 0xBF}, one}},
	three:     {{ByteRange{0x80, 0xBF}, two}},
	afterE0:   {{ByteRange{0xA0, 0xBF}, one}},
	afterE2:   {{ByteRange{0x80, 0x80}, afterE280}, {ByteRange{0x81, 0xBF}, one}},
	afterE280: {{ByteRange{0x80, 0xA7}, starts}, {ByteRange{0xAA, 0xBF}, starts}},
	afterED:   {{ByteRange{0x80, 0x9F}, one}},
	afterF0:   {{ByteRange{0x90, 0xBF}, two}},
	afterF4:   {{ByteRange{0x80, 0x8F}, two}},
}

// within maps a kind to the kind that reads all of its bytes; a state may be of both.
var within = [several]kind{afterE0: two, afterE2: two, afterE280: one, afterED: two, afterF0: three, afterF4: three}

// opener finds the open states. A state without outgoing characters is open for no character,
// states that lead to it for one, and so on; states that are never reached in this way are open
// without limit.
type opener struct {
	*Builder
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

// maxOpenWays is the largest number of states visited without reading a byte.
const maxOpenWays = 16

// findOpen finds the open states of a program with the given number of edges.
func (b *Builder) findOpen(edges int) {
	if !slices.ContainsFunc(b.States, func(s pstate) bool { return covers(s.Edges, mustRead[starts]) }) {
		return
	}
	n := len(b.States)
	b.Meter.scratch(90*n+8*edges, func() { b.findOpenAmong(n) })
}

func (b *Builder) findOpenAmong(n int) {
	o := &opener{Builder: b, kinds: make([]kind, n), reads: make([]bool, n), run: make([]int32, n),
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
	var takes ByteSet
	for _, e := range edges {
		takes.Add(e.ByteRange)
	}
	for _, x := range all {
		var want ByteSet
		want.Add(x.ByteRange)
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
	for i := range o.States {
		s := &o.States[i]
		inside := slices.ContainsFunc(s.Edges, func(e edge) bool { return e.Lo >= utf8.RuneSelf && e.Hi < 0xC0 })
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
			for _, e := range o.States[at].Edges {
				if e.Lo <= x.Hi && e.Hi >= x.Lo {
					note(e.To, x.to)
				}
			}
		}
	}
}

// link computes the relations between states, and the states that are not open.
func (o *opener) link() {
	for i := range o.States {
		at, k := int32(i), o.kinds[i]
		o.run[i], o.total[i] = MaxRun, MaxRun
		if k > unread && k < several && covers(o.States[i].Edges, mustRead[k]) {
			o.reads[i] = true
			for _, x := range mustRead[k] {
				for _, e := range o.States[i].Edges {
					if e.Lo <= x.Hi && e.Hi >= x.Lo {
						o.into[e.To] = append(o.into[e.To], at)
					}
				}
			}
		}
	}
	for i := range o.States {
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
	for i := 0; i < len(met) && i < maxOpenWays; i++ {
		if o.reads[met[i]] && o.kinds[met[i]] == o.kinds[at] {
			out = append(out, met[i])
		}
		if o.kinds[at] != starts {
			break
		}
		for _, to := range o.States[met[i]].Eps {
			if !slices.Contains(met, to) {
				met = append(met, to)
			}
		}
	}
	return out
}

// lose records that a state is open for run characters only.
func (o *opener) lose(at, run int32) {
	if o.total[at] < MaxRun {
		return
	}
	o.total[at] = run
	for _, p := range o.into[at] {
		if o.run[p] < MaxRun {
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
	after := make([]float64, len(o.States))
	largest := 0.0
	for i := range o.States {
		if after[i] = o.States[i].Dist; !math.IsInf(after[i], 1) {
			largest = max(largest, after[i])
		}
	}
	changed := true
	for pass := 0; pass < reachPasses && changed; pass++ {
		o.Meter.Work(4 * len(o.States))
		changed = false
		for i := range o.States {
			at := i
			if pass%2 == 0 {
				at = len(o.States) - 1 - i
			}
			if o.total[at] < 1 {
				continue
			}
			x := after[at]
			for _, to := range o.ways(int32(at)) {
				for _, e := range o.States[to].Edges {
					x = max(x, after[e.To])
				}
			}
			if x > after[at] {
				after[at], changed = x, true
			}
		}
	}
	for i := range o.States {
		if o.kinds[i] != starts || o.total[i] < 1 || math.IsInf(o.States[i].Dist, 1) {
			continue
		}
		if o.Open == nil {
			o.Open = make([]openAt, len(o.States))
		}
		if changed {
			after[i] = largest
		}
		o.Open[i] = openAt{o.total[i], float32(after[i])}
	}
	o.leave()
}

// leave removes open states from free loops of fewer characters, for which no part of the
// vocabulary is needed then.
func (o *opener) leave() {
	for i := range o.Builder.Free {
		o.Builder.Free[i].Idle = true
	}
	for i := range o.States {
		s := &o.States[i]
		if s.Loop != nil && s.Loop.Free > 0 {
			o.Builder.Free[s.Loop.Free-1].Idle = false
		}
		if s.Free == 0 {
			continue
		}
		l := &o.Builder.Free[s.Free-1]
		if o.Open != nil && o.Open[i].Run == MaxRun && !l.Of.Covers(JSONClasses) && JSONClasses.Covers(l.Of) {
			s.Free = 0
		} else {
			l.Idle = false
		}
	}
}
