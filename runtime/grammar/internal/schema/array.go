package schema

import (
	"slices"
	"strconv"
	"strings"

	"sandwich/runtime/grammar/internal/automaton"
	"sandwich/runtime/grammar/internal/schema/document"
)

// array returns an expression for the arrays of a schema.
func (c *compiler) array(s *document.Value, path string) (automaton.Expr, error) {
	lo, hi, err := document.Span(s, path, "minItems", "maxItems")
	if err != nil {
		return nil, err
	}
	unique := s.Get("uniqueItems").IsTrue() && (hi < 0 || hi > 1)
	switch {
	case unique:
		return c.unique(s, path, lo, hi)
	case s.Get("contains") != nil:
		return c.containing(s, path, lo, hi)
	}
	first, key, rest := s.Get("prefixItems"), "prefixItems", "items"
	if it := s.Get("items"); first == nil && it != nil && it.Kind == document.KindArray {
		first, key, rest = it, "items", "additionalItems" // draft 7
	}
	var item automaton.Expr = c.AnyValue()
	if r := s.Get(rest); r.IsFalse() {
		item = nil
	} else if r != nil {
		if item, err = c.part(path, rest); err != nil {
			return nil, err
		}
	}
	if first == nil {
		if item == nil {
			item = automaton.Nothing{}
		}
		return c.List(item, lo, hi), nil
	}
	if first.Kind != document.KindArray {
		return nil, automaton.Refuse(document.Show(path)+"/"+key, "the value must be a list of schemas")
	}
	places := make([]automaton.Expr, len(first.List))
	for i := range first.List {
		if places[i], err = c.refer(path + "/" + key + "/" + strconv.Itoa(i)); err != nil {
			return nil, err
		}
	}
	return c.tuple(places, item, lo, hi), nil
}

// tuple returns an array whose first items match places. The others match item; nil allows no
// others.
func (c *compiler) tuple(places []automaton.Expr, item automaton.Expr, lo, hi int) automaton.Expr {
	space := c.Space()
	comma := automaton.Sequence{space, automaton.Literal(","), space}
	return automaton.Automaton(func(b *automaton.Builder, from, to int32) {
		end := b.State()
		at := b.State()
		b.Edge(from, at, automaton.ByteRange{Lo: '[', Hi: '['})
		n := len(places)
		for i := 0; ; i++ {
			if i >= lo && (hi < 0 || i <= hi) {
				b.Eps(at, end)
			}
			if i == n || i == hi {
				break
			}
			next := b.State()
			if i == 0 {
				b.Write(automaton.Sequence{space, places[i]}, at, next)
			} else {
				b.Write(automaton.Sequence{comma, places[i]}, at, next)
			}
			at = next
		}
		if item != nil && n > 0 && (hi < 0 || hi > n) {
			left := hi
			if hi >= 0 {
				left = hi - n
			}
			b.Write(automaton.Repeat{Body: automaton.Sequence{comma, item}, Least: max(lo-n, 0), Most: left}, at,
				end)
		}
		b.Write(automaton.Sequence{space, automaton.Literal("]")}, end, to)
	})
}

// maxInAnyOrder is the largest number of constants that distinct items may have in any order. More
// constants appear in the order of their list.
const maxInAnyOrder = 8

// maxDistinctItems is the largest number of constants of distinct items.
const maxDistinctItems = 1000

// maxFanned is the number of constants from which on the edges to them are shared between
// positions.
const maxFanned = 48

// unique returns an expression for arrays of distinct items. Constants are listed; other items are
// distinguished by classes (distinctByClass).
func (c *compiler) unique(s *document.Value, path string, lo, hi int) (automaton.Expr, error) {
	var list []string
	if it := s.Get("items"); it != nil && it.Kind == document.KindObject && s.Get("prefixItems") == nil {
		at := path + "/items"
		flat, err := c.flat(located{it, at}, 0)
		if err != nil {
			return nil, err
		}
		w, err := c.plainConstants(flat, at)
		if err != nil {
			return nil, err
		}
		if w != nil {
			list = distinct(w)
		}
	}
	few, many, inside, err := c.distinctContained(s, path, list)
	if err != nil {
		return nil, err
	}
	switch {
	case list == nil && s.Get("contains") == nil && s.Get("prefixItems") == nil:
		return c.distinctByClass(s, path, lo, hi)
	case list == nil && lo > 1:
		return nil, automaton.Refuse(document.Show(path)+"/uniqueItems",
			"with contains or prefixItems, distinct items are supported for "+
				"constants only, or for at most one other item; minItems is %d", lo)
	case list == nil:
		one := s.Without("uniqueItems", "maxItems")
		if one == nil {
			one = &document.Value{Kind: document.KindObject}
		}
		limit := &document.Value{Kind: document.KindNumber, Text: "1"}
		if few > 1 {
			return nil, automaton.Refuse(document.Show(path)+"/minContains",
				"distinct items are supported for constants, or for at most one "+
					"other item")
		}
		return c.array(one.And("maxItems", limit), path)
	case hi < 0 || hi > len(list):
		hi = len(list)
	}
	if lo > hi {
		return automaton.Nothing{}, nil
	}
	if len(list) > maxDistinctItems {
		return nil, automaton.Refuse(document.Show(path)+"/uniqueItems",
			"distinct items are supported among at most %d constants, not %d",
			maxDistinctItems, len(list))
	}
	each := make([]automaton.Expr, len(list))
	in := make([]bool, len(list))
	for i, x := range list {
		each[i], in[i] = automaton.Literal(x), inside[x]
	}
	return c.distinctItems(&uniqueWriter{list: each, few: few, many: many, inside: in, min: lo, max: hi}), nil
}

// distinctItems returns arrays whose items are in the list, each at most once.
func (c *compiler) distinctItems(u *uniqueWriter) automaton.Expr {
	space := c.Space()
	return automaton.Automaton(func(b *automaton.Builder, from, to int32) {
		u.b, u.comma = b, automaton.Sequence{space, automaton.Literal(","), space}
		u.at, u.behind, u.end = map[uniquePlace]int32{}, map[uniquePlace]int32{}, b.State()
		open := b.State()
		b.Edge(from, open, automaton.ByteRange{Lo: '[', Hi: '['})
		if u.min == 0 && u.few == 0 {
			b.Eps(open, u.end)
		}
		b.Write(space, open, u.state(uniquePlace{}))
		b.Write(automaton.Sequence{space, automaton.Literal("]")}, u.end, to)
	})
}

// distinct returns the texts of constants without duplicates. A number may have two spellings; if
// there are several numbers, spellings with fractions or exponents are dropped.
func distinct(w automaton.Words) []string {
	out := []string{}
	numbers := 0
	for _, x := range w {
		if strings.ContainsAny(x[:1], "-0123456789") {
			numbers++
		}
	}
	for _, x := range w {
		odd := strings.ContainsAny(x[:1], "-[{0123456789") && strings.ContainsAny(x, ".eE[{") && numbers+len(w) > 2
		if !odd && x != "-0" && !slices.Contains(out, x) {
			out = append(out, x)
		}
	}
	return out
}

// plainConstants returns the constants of a flat schema without alternatives, or nil for other
// schemas.
func (c *compiler) plainConstants(flat *document.Value, path string) (automaton.Words, error) {
	if flat.Kind != document.KindObject || flat.Get("anyOf") != nil || flat.Get("oneOf") != nil {
		return nil, nil
	}
	e, done, err := c.constants(flat, path)
	if w, ok := e.(automaton.Words); ok && done && err == nil {
		return w, nil
	}
	return nil, err
}

// distinctContained returns how many of the constants must and may match contains (many < 0 means
// no limit), and which of them match it.
func (c *compiler) distinctContained(s *document.Value, path string, list []string) (few, many int,
	in map[string]bool, err error) {
	k := s.Get("contains")
	if k == nil {
		return 0, -1, nil, nil
	}
	if k.Kind != document.KindObject && k.Kind != document.KindBool {
		return 0, 0, nil, automaton.Refuse(document.Show(path)+"/contains", "a schema must be an object, true or false")
	}
	if few, err = document.Count(s, path, "minContains", 1); err == nil {
		many, err = document.Count(s, path, "maxContains", -1)
	}
	if err != nil || list == nil || few == 0 && many < 0 {
		return few, many, nil, err
	}
	item, err := c.flat(located{s.Get("items"), path + "/items"}, 0)
	if err != nil {
		return 0, 0, nil, err
	}
	wanted, err := c.flat(located{k, path + "/contains"}, 0)
	if err != nil {
		return 0, 0, nil, err
	}
	if in = map[string]bool{}; wanted.IsFalse() {
		return few, many, in, nil
	}
	both, err := c.merge(item, wanted, path+"/contains")
	if err != nil {
		return 0, 0, nil, err
	}
	w, err := c.plainConstants(both, path+"/contains")
	if err != nil {
		return 0, 0, nil, err
	}
	// An expression for a format does not cover all texts of the format.
	if w == nil && document.ConstantsOf(both) == nil || both.Get("anyOf") != nil || both.Get("oneOf") != nil ||
		wanted.Get("format") != nil {
		return 0, 0, nil, automaton.Refuse(document.Show(path)+"/contains",
			"with uniqueItems, contains is supported only if types, "+
				"constants, bounds and expressions decide which items match")
	}
	for _, x := range w {
		in[x] = true
	}
	return few, many, in, nil
}

// uniquePlace is a position before an item: the constants used, or the first one that may follow,
// the number of items, and the number of those that match contains, as far as they matter.
type uniquePlace struct {
	used       uint32
	from, n, k int
}

type uniqueWriter struct {
	b         *automaton.Builder
	list      []automaton.Expr
	min, max  int
	few, many int    // limits of contains
	inside    []bool // whether each constant matches contains
	comma     automaton.Expr
	at        map[uniquePlace]int32 // states before an item
	behind    map[uniquePlace]int32 // states after the previous item
	end       int32
}

func (u *uniqueWriter) state(p uniquePlace) int32 {
	if at, ok := u.at[p]; ok {
		return at
	}
	at := u.b.State()
	u.b.Meter.Take(2 * automaton.EntryCost)
	u.b.Meter.Work(len(u.list))
	u.at[p] = at
	last := len(u.list)
	if last > maxFanned && p.from < last {
		// Write each item as one edge out of a shared state; the state links to that of the next
		// item.
		last = p.from + 1
		u.b.Eps(at, u.state(uniquePlace{p.used, last, p.n, p.k}))
	}
	for i := p.from; i < last; i++ {
		next := uniquePlace{p.used, i + 1, p.n + 1, p.k}
		if u.inside[i] {
			if next.k++; u.many >= 0 && next.k > u.many {
				continue
			} else if u.many < 0 {
				next.k = min(next.k, u.few)
			}
		}
		if u.max == len(u.list) {
			next.n = min(next.n, max(u.min, 1)) // only the list limits the number of items
		}
		if len(u.list) <= maxInAnyOrder {
			next.from, next.used = 0, p.used|1<<i
		}
		if p.used>>min(i, 31)&1 != 0 && next.used != 0 || p.n == u.max && u.max < len(u.list) {
			continue
		}
		behind, met := u.behind[next]
		if !met {
			behind = u.b.State()
			u.behind[next] = behind
		}
		u.b.Write(u.list[i], at, behind)
		if met {
			continue
		}
		if next.n >= u.min && next.k >= u.few {
			u.b.Eps(behind, u.end)
		}
		if next.n < u.max || u.max == len(u.list) {
			u.b.Write(u.comma, behind, u.state(next))
		}
	}
	return at
}
