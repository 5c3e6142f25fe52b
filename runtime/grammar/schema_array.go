package grammar

import (
	"slices"
	"strings"
)

// array returns an expression for the arrays of a schema.
func (c *compiler) array(s *value, path string) (expr, error) {
	least, most, err := span(s, path, "minItems", "maxItems")
	if err != nil {
		return nil, err
	}
	unique := s.get("uniqueItems").isTrue() && (most < 0 || most > 1)
	switch {
	case unique:
		return c.unique(s, path, least, most)
	case s.get("contains") != nil:
		return c.containing(s, path, least, most)
	}
	first, key, rest := s.get("prefixItems"), "prefixItems", "items"
	if it := s.get("items"); first == nil && it != nil && it.kind == kindArray {
		first, key, rest = it, "items", "additionalItems" // draft 7
	}
	var item expr = c.anyValue()
	if r := s.get(rest); r.isFalse() {
		item = nil
	} else if r != nil {
		if item, err = c.part(path, rest); err != nil {
			return nil, err
		}
	}
	if first == nil {
		if item == nil {
			item = nothing{}
		}
		return c.list(item, least, most), nil
	}
	if first.kind != kindArray {
		return nil, refuse(show(path)+"/"+key, "the value must be a list of schemas")
	}
	places := make([]expr, len(first.list))
	for i := range first.list {
		if places[i], err = c.refer(path + "/" + key + "/" + itoa(i)); err != nil {
			return nil, err
		}
	}
	return c.tuple(places, item, least, most), nil
}

// tuple returns an array whose first items match places. The others match item; nil allows no
// others.
func (c *compiler) tuple(places []expr, item expr, least, most int) expr {
	space := c.space()
	comma := sequence{space, literal(","), space}
	return automaton(func(b *builder, from, to int32) {
		end := b.state()
		at := b.state()
		b.edge(from, at, byteRange{'[', '['})
		n := len(places)
		for i := 0; ; i++ {
			if i >= least && (most < 0 || i <= most) {
				b.eps(at, end)
			}
			if i == n || i == most {
				break
			}
			next := b.state()
			if i == 0 {
				b.write(sequence{space, places[i]}, at, next)
			} else {
				b.write(sequence{comma, places[i]}, at, next)
			}
			at = next
		}
		if item != nil && n > 0 && (most < 0 || most > n) {
			left := most
			if most >= 0 {
				left = most - n
			}
			b.write(repeat{sequence{comma, item}, max(least-n, 0), left}, at, end)
		}
		b.write(sequence{space, literal("]")}, end, to)
	})
}

// mostInAnyOrder is the largest number of constants that distinct items may have in any order. More
// constants appear in the order of their list.
const mostInAnyOrder = 8

// mostDistinctItems is the largest number of constants of distinct items.
const mostDistinctItems = 1000

// mostFanned is the number of constants from which on the edges to them are shared between
// positions.
const mostFanned = 48

// unique returns an expression for arrays of distinct items. Constants are listed; other items are
// distinguished by classes (distinctByClass).
func (c *compiler) unique(s *value, path string, least, most int) (expr, error) {
	var list []string
	if it := s.get("items"); it != nil && it.kind == kindObject && s.get("prefixItems") == nil {
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
	case list == nil && s.get("contains") == nil && s.get("prefixItems") == nil:
		return c.distinctByClass(s, path, least, most)
	case list == nil && least > 1:
		return nil, refuse(show(path)+"/uniqueItems", "with contains or prefixItems, distinct items are supported for "+
			"constants only, or for at most one other item; minItems is %d", least)
	case list == nil:
		one := s.without("uniqueItems", "maxItems")
		if one == nil {
			one = &value{kind: kindObject}
		}
		limit := &value{kind: kindNumber, text: "1"}
		if few > 1 {
			return nil, refuse(show(path)+"/minContains",
				"distinct items are supported for constants, or for at most one "+
					"other item")
		}
		return c.array(one.and("maxItems", limit), path)
	case most < 0 || most > len(list):
		most = len(list)
	}
	if least > most {
		return nothing{}, nil
	}
	if len(list) > mostDistinctItems {
		return nil, refuse(show(path)+"/uniqueItems", "distinct items are supported among at most %d constants, not %d",
			mostDistinctItems, len(list))
	}
	each := make([]expr, len(list))
	in := make([]bool, len(list))
	for i, x := range list {
		each[i], in[i] = literal(x), inside[x]
	}
	return c.distinctItems(&uniqueWriter{list: each, few: few, many: many, inside: in, least: least, most: most}), nil
}

// distinctItems returns arrays whose items are in the list, each at most once.
func (c *compiler) distinctItems(u *uniqueWriter) expr {
	space := c.space()
	return automaton(func(b *builder, from, to int32) {
		u.b, u.comma = b, sequence{space, literal(","), space}
		u.at, u.behind, u.end = map[uniquePlace]int32{}, map[uniquePlace]int32{}, b.state()
		open := b.state()
		b.edge(from, open, byteRange{'[', '['})
		if u.least == 0 && u.few == 0 {
			b.eps(open, u.end)
		}
		b.write(space, open, u.state(uniquePlace{}))
		b.write(sequence{space, literal("]")}, u.end, to)
	})
}

// distinct returns the texts of constants without duplicates. A number may have two spellings; if
// there are several numbers, spellings with fractions or exponents are dropped.
func distinct(w words) []string {
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
func (c *compiler) plainConstants(flat *value, path string) (words, error) {
	if flat.kind != kindObject || flat.get("anyOf") != nil || flat.get("oneOf") != nil {
		return nil, nil
	}
	e, done, err := c.constants(flat, path)
	if w, ok := e.(words); ok && done && err == nil {
		return w, nil
	}
	return nil, err
}

// distinctContained returns how many of the constants must and may match contains (many < 0 means
// no limit), and which of them match it.
func (c *compiler) distinctContained(s *value, path string, list []string) (few, many int,
	in map[string]bool, err error) {
	k := s.get("contains")
	if k == nil {
		return 0, -1, nil, nil
	}
	if k.kind != kindObject && k.kind != kindBool {
		return 0, 0, nil, refuse(show(path)+"/contains", "a schema must be an object, true or false")
	}
	if few, err = count(s, path, "minContains", 1); err == nil {
		many, err = count(s, path, "maxContains", -1)
	}
	if err != nil || list == nil || few == 0 && many < 0 {
		return few, many, nil, err
	}
	item, err := c.flat(located{s.get("items"), path + "/items"}, 0)
	if err != nil {
		return 0, 0, nil, err
	}
	wanted, err := c.flat(located{k, path + "/contains"}, 0)
	if err != nil {
		return 0, 0, nil, err
	}
	if in = map[string]bool{}; wanted.isFalse() {
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
	if w == nil && constantsOf(both) == nil || both.get("anyOf") != nil || both.get("oneOf") != nil ||
		wanted.get("format") != nil {
		return 0, 0, nil, refuse(show(path)+"/contains", "with uniqueItems, contains is supported only if types, "+
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
	b           *builder
	list        []expr
	least, most int
	few, many   int    // limits of contains
	inside      []bool // whether each constant matches contains
	comma       expr
	at          map[uniquePlace]int32 // states before an item
	behind      map[uniquePlace]int32 // states after the previous item
	end         int32
}

func (u *uniqueWriter) state(p uniquePlace) int32 {
	if at, ok := u.at[p]; ok {
		return at
	}
	at := u.b.state()
	u.b.meter.take(2 * entryCost)
	u.b.meter.work(len(u.list))
	u.at[p] = at
	last := len(u.list)
	if last > mostFanned && p.from < last {
		// Write each item as one edge out of a shared state; the state links to that of the next
		// item.
		last = p.from + 1
		u.b.eps(at, u.state(uniquePlace{p.used, last, p.n, p.k}))
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
		if u.most == len(u.list) {
			next.n = min(next.n, max(u.least, 1)) // only the list limits the number of items
		}
		if len(u.list) <= mostInAnyOrder {
			next.from, next.used = 0, p.used|1<<i
		}
		if p.used>>min(i, 31)&1 != 0 && next.used != 0 || p.n == u.most && u.most < len(u.list) {
			continue
		}
		behind, met := u.behind[next]
		if !met {
			behind = u.b.state()
			u.behind[next] = behind
		}
		u.b.write(u.list[i], at, behind)
		if met {
			continue
		}
		if next.n >= u.least && next.k >= u.few {
			u.b.eps(behind, u.end)
		}
		if next.n < u.most || u.most == len(u.list) {
			u.b.write(u.comma, behind, u.state(next))
		}
	}
	return at
}
