package schema

import (
	"sandwich/runtime/grammar/internal/automaton"
	"sandwich/runtime/grammar/internal/schema/document"
)

// list converts additional members to properties if there are few names.
func (w *objectWriter) list() {
	left := maxListed
	var rest []extra
	for _, e := range w.extras {
		names, ok := w.Listed(document.Show(w.path), e.names, left)
		if !ok {
			rest = append(rest, e)
			continue
		}
		left -= len(names)
		for _, name := range names {
			w.props = append(w.props, property{name: name, value: e.value})
		}
	}
	w.extras = rest
}

// prepare creates the rules that write calls, because none may be created while rules are written.
// If members are counted, each is a separate rule, since it is written several times.
func (w *objectWriter) prepare() error {
	space := w.Space()
	w.Char()
	w.Text(0, -1)
	w.TextRest()
	counted := w.min > 0 || w.max >= 0
	once := func(e automaton.Expr) automaton.Expr {
		if !counted {
			return e
		}
		r := w.Rule(w.visible(document.Show(w.path)))
		if w.schema != nil {
			w.Builder.Rules[r].Of = w.schema
		}
		w.Define(r, e)
		return automaton.Call{Rule: r}
	}
	for _, p := range w.props {
		w.members = append(w.members, once(automaton.Sequence{automaton.Literal(document.AppendQuoted(nil, p.name)),
			space,
			automaton.Literal(":"), space,
			p.value}))
	}
	if len(w.extras) == 0 {
		return nil
	}
	any, err := w.additionalOf(nameClass{})
	if err != nil {
		return err
	}
	w.any = once(any)
	if w.min < 2 {
		return nil
	}
	classes, err := w.nameClasses(min(w.min, maxDistinct))
	if err != nil {
		return err
	}
	for _, class := range classes {
		e, err := w.additionalOf(class)
		if err != nil {
			return err
		}
		w.distinct = append(w.distinct, once(e))
	}
	return nil
}

// additionalOf returns an additional member whose name is in a class.
func (w *objectWriter) additionalOf(class nameClass) (automaton.Expr, error) {
	var all automaton.Choice
	for _, e := range w.extras {
		name, err := w.name(e, class)
		if err != nil {
			return nil, err
		}
		all = append(all, automaton.Sequence{name, w.Space(), automaton.Literal(":"), w.Space(), e.value})
	}
	return all, nil
}

// write writes the automaton of an object.
func (w *objectWriter) write(b *automaton.Builder, from, to int32) {
	m := memberWriter{objectWriter: w, b: b, end: b.State(), states: map[memberAt]int32{}}
	space := w.Space()
	m.comma = automaton.Sequence{space, automaton.Literal(","), space}
	for i, p := range w.props {
		if p.required {
			m.must = i + 1
		}
	}
	open := b.State()
	b.Edge(from, open, automaton.ByteRange{Lo: '{', Hi: '{'})
	b.Write(space, open, m.state(memberAt{name: true}))
	if m.must == 0 && w.min == 0 {
		b.Eps(open, m.end)
	}
	for len(m.todo) > 0 {
		at := m.todo[len(m.todo)-1]
		m.todo = m.todo[:len(m.todo)-1]
		switch from := m.states[at]; {
		case !at.name:
			m.after(at, from)
		case at.next < len(w.props):
			m.property(at, from)
		default:
			m.additional(at.count, from)
		}
	}
	b.Write(automaton.Sequence{space, automaton.Literal("}")}, m.end, to)
}

// memberWriter writes the automaton of an object. Its states are positions before the name of a
// member and after a member.
type memberWriter struct {
	*objectWriter
	b      *automaton.Builder
	comma  automaton.Expr
	must   int   // properties up to this index include all required ones
	end    int32 // after the last member
	states map[memberAt]int32
	todo   []memberAt // positions whose edges are not written yet
}

// memberAt is a position in an object: the next possible property (the number of properties if only
// additional members may follow), and the number of members, as far as it matters.
type memberAt struct {
	name        bool // before a name; otherwise after a member
	next, count int
}

// state returns the state of a position.
func (m *memberWriter) state(at memberAt) int32 {
	if m.max < 0 {
		at.count = min(at.count, m.min)
	}
	s, met := m.states[at]
	if !met {
		s = m.b.State()
		m.states[at] = s
		m.todo = append(m.todo, at)
	}
	return s
}

// full reports whether an object with the given number of members accepts no more.
func (m *memberWriter) full(count int) bool { return m.max >= 0 && count >= m.max }

// after writes what follows a member: the end, or a comma and another member.
func (m *memberWriter) after(at memberAt, from int32) {
	if at.next >= m.must && at.count >= m.min {
		m.b.Eps(from, m.end)
	}
	if !m.full(at.count) && (at.next < len(m.props) || len(m.extras) > 0) {
		m.b.Write(m.comma, from, m.state(memberAt{true, at.next, at.count}))
	}
}

// property writes the edges of a property: to include it, and to skip it.
func (m *memberWriter) property(at memberAt, from int32) {
	if !m.full(at.count) {
		m.b.Write(m.members[at.next], from, m.state(memberAt{false, at.next + 1, at.count + 1}))
	}
	if !m.props[at.next].required && (at.next+1 < len(m.props) || len(m.extras) > 0) {
		m.b.Eps(from, m.state(memberAt{true, at.next + 1, at.count}))
	}
}

// additional writes one or more additional members after count members. The names of those that
// minProperties requires are in distinct classes, in any rotation.
func (m *memberWriter) additional(count int, from int32) {
	missing, left := max(m.min-count, 0), -1
	if m.max >= 0 {
		left = m.max - count
	}
	if len(m.extras) == 0 || left == 0 || missing > 1 && missing > len(m.distinct) {
		return
	}
	if missing < 2 {
		m.more(m.any, from, count+1, left-1)
		return
	}
	for first := range m.distinct {
		var all automaton.Sequence
		for i := range missing {
			if i > 0 {
				all = append(all, m.comma)
			}
			all = append(all, m.distinct[(first+i)%len(m.distinct)])
		}
		m.more(all, from, m.min, left-missing)
	}
}

// more writes some members, after which there are count members, and then up to left others; left <
// 0 means no limit.
func (m *memberWriter) more(e automaton.Expr, from int32, count, left int) {
	if m.max < 0 {
		m.b.Write(e, from, m.state(memberAt{false, len(m.props), count}))
		return
	}
	next := m.b.State()
	m.b.Write(e, from, next)
	m.b.Write(automaton.Repeat{Body: automaton.Sequence{m.comma, m.any}, Least: 0, Most: left}, next, m.end)
}
