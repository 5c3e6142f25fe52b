package schema

import (
	"strconv"

	"sandwich/runtime/grammar/internal/automaton"
	"sandwich/runtime/grammar/internal/schema/document"
)

// maxContained limits the number of states that count items and matches of contains together.
const maxContained = 1 << 12

// container writes arrays of which some items must match contains.
type container struct {
	min, max        int              // number of items; max < 0 means no limit
	few, many       int              // number of matches; many < 0 means no limit
	last            int              // number of items up to which positions are distinguished
	inside, outside []automaton.Expr // by position: a matching item, and one that need not match; the last for the rest
	comma, space    automaton.Expr
}

// containing returns an expression for arrays with contains: minContains to maxContains items match
// it. Without an upper bound the other items need not differ from it; with one they must not match
// it.
func (c *compiler) containing(s *document.Value, path string, lo, hi int) (automaton.Expr, error) {
	w := &container{min: lo, max: hi}
	if k := s.Get("contains").Kind; k != document.KindObject && k != document.KindBool {
		return nil, automaton.Refuse(document.Show(path)+"/contains", "a schema must be an object, true or false")
	}
	var err error
	if w.few, err = document.Count(s, path, "minContains", 1); err != nil {
		return nil, err
	}
	if w.many, err = document.Count(s, path, "maxContains", -1); err != nil {
		return nil, err
	}
	if w.few == 0 && w.many < 0 {
		return c.array(s.But("contains"), path)
	}
	if w.many >= 0 && w.few > w.many {
		return automaton.Nothing{}, nil
	}
	key, others := "prefixItems", "items"
	if it := s.Get("items"); s.Get(key) == nil && it != nil && it.Kind == document.KindArray {
		key, others = "items", "additionalItems" // draft 7
	}
	first, _ := document.Places(s)
	w.last = max(len(first), w.min, w.max, 1)
	if w.max >= 0 {
		w.last = w.max
	}
	if w.last > maxContained || (w.last+1)*(max(w.few, w.many)+1) > maxContained {
		return nil, automaton.Refuse(document.Show(path)+"/contains",
			"the product of the counts of items and of matches is limited to %d",
			maxContained)
	}
	for i := range first {
		if err := w.place(c, s, path, located{first[i], path + "/" + key + "/" + strconv.Itoa(i)}); err != nil {
			return nil, err
		}
	}
	if err := w.place(c, s, path, located{s.Get(others), path + "/" + others}); err != nil {
		return nil, err
	}
	w.space = c.Space()
	w.comma = automaton.Sequence{w.space, automaton.Literal(","), w.space}
	return automaton.Automaton(w.write), nil
}

// place adds the expressions for the items at one more position.
func (w *container) place(c *compiler, s *document.Value, path string, item located) error {
	wanted := located{s.Get("contains"), path + "/contains"}
	if item.schema == nil {
		item = located{&document.Value{Kind: document.KindBool, Text: "true"}, path}
	}
	in, err := c.merged(path, item, wanted)
	if err != nil {
		return err
	}
	var out automaton.Expr
	switch {
	case s.Get("maxContains") != nil:
		not, err := c.negated(wanted, 0)
		if err != nil {
			return err
		}
		out, err = c.merged(path, item, located{not, wanted.path})
		if err != nil {
			return err
		}
	case item.path == path:
		out = c.AnyValue()
	default:
		if out, err = c.refer(item.path); err != nil {
			return err
		}
	}
	w.inside, w.outside = append(w.inside, in), append(w.outside, out)
	return nil
}

// write creates a state for each number of items and of matches so far.
func (w *container) write(b *automaton.Builder, from, to int32) {
	counted := max(w.few, w.many)
	at := make([][]int32, w.last+1)
	for n := range at {
		for range counted + 1 {
			at[n] = append(at[n], b.State())
		}
	}
	end := b.State()
	b.Edge(from, at[0][0], automaton.ByteRange{Lo: '[', Hi: '['})
	for n := range at {
		between := w.comma
		if n == 0 {
			between = w.space
		}
		place := min(n, len(w.inside)-1)
		for k, here := range at[n] {
			if n >= w.min && k >= w.few {
				b.Eps(here, end)
			}
			if n == w.max {
				continue
			}
			next := at[min(n+1, w.last)]
			b.Write(automaton.Sequence{between, w.outside[place]}, here, next[k])
			if k < counted {
				b.Write(automaton.Sequence{between, w.inside[place]}, here, next[k+1])
			}
		}
	}
	b.Write(automaton.Sequence{w.space, automaton.Literal("]")}, end, to)
}
