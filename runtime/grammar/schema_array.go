package grammar

import (
	"slices"
	"strings"
)

// array is the arrays of a schema: items of their own for the first places, one kind for the rest.
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
		first, key, rest = it, "items", "additionalItems" // as draft 7 has it
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
		return nil, refuse(show(path)+"/"+key, "it must be a list of schemas")
	}
	places := make([]expr, len(first.list))
	for i := range first.list {
		if places[i], err = c.refer(path + "/" + key + "/" + itoa(i)); err != nil {
			return nil, err
		}
	}
	return c.tuple(places, item, least, most), nil
}

// tuple is an array whose first items have places of their own; item is nil where no other follows.
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

// mostInAnyOrder is how many constants unlike items take in any order; more of them keep the order
// of their list.
const mostInAnyOrder = 8

// mostUnlike is among how many constants unlike items are: each may follow all before it.
const mostUnlike = 1000

// mostFanned is from how many constants on the ways to them are not written out at each place.
const mostFanned = 48

// unique is the arrays of unlike items. Constants are told apart; other items by the class that
// each is of (unlike).
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
	few, many, inside, err := c.unlikeContained(s, path, list)
	if err != nil {
		return nil, err
	}
	switch {
	case list == nil && s.get("contains") == nil && s.get("prefixItems") == nil:
		return c.unlike(s, path, least, most)
	case list == nil && least > 1:
		return nil, refuse(show(path)+"/uniqueItems", "beside contains or prefixItems unlike items are supported for "+
			"constants, and for one item at most of other kinds; minItems is %d", least)
	case list == nil:
		one := s.without("uniqueItems", "maxItems")
		if one == nil {
			one = &value{kind: kindObject}
		}
		limit := &value{kind: kindNumber, text: "1"}
		if few > 1 {
			return nil, refuse(show(path)+"/minContains", "unlike items are supported for constants, and for one item "+
				"at most of other kinds")
		}
		return c.array(one.and("maxItems", limit), path)
	case most < 0 || most > len(list):
		most = len(list)
	}
	if least > most {
		return nothing{}, nil
	}
	if len(list) > mostUnlike {
		return nil, refuse(show(path)+"/uniqueItems", "unlike items are told apart among %d constants at most, not %d",
			mostUnlike, len(list))
	}
	each := make([]expr, len(list))
	in := make([]bool, len(list))
	for i, x := range list {
		each[i], in[i] = literal(x), inside[x]
	}
	return c.unlikeItems(&uniqueWriter{list: each, few: few, many: many, inside: in, least: least, most: most}), nil
}

// unlikeItems are arrays of items each of which is in the list, once at most.
func (c *compiler) unlikeItems(u *uniqueWriter) expr {
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

// distinct are texts of constants, equal ones once. Numbers of one value may be spelled in two
// ways: where there are several, those with marks of fractions are left out.
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

// plainConstants are the constants of a flat schema that has no alternatives; nil where it is
// another one.
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

// unlikeContained is how many of some constants must be as contains says, and how many may be (many
// < 0: any number), and which of them are.
func (c *compiler) unlikeContained(s *value, path string, list []string) (few, many int,
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
	// An expression for a format has not all that the format allows.
	if w == nil && constantsOf(both) == nil || both.get("anyOf") != nil || both.get("oneOf") != nil ||
		wanted.get("format") != nil {
		return 0, 0, nil, refuse(show(path)+"/contains", "beside uniqueItems it is supported where types, constants, "+
			"bounds and expressions alone say which items are meant")
	}
	for _, x := range w {
		in[x] = true
	}
	return few, many, in, nil
}

// uniquePlace is before an item: which constants were used, or from which on they may follow, how
// many items there are, and how many of them are as contains says, up to what matters.
type uniquePlace struct {
	used       uint32
	from, n, k int
}

type uniqueWriter struct {
	b           *builder
	list        []expr
	least, most int
	few, many   int    // as contains says
	inside      []bool // which are as contains says
	comma       expr
	at          map[uniquePlace]int32 // before an item
	behind      map[uniquePlace]int32 // behind the item before
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
		// Each item is one way out of one state, behind which are those of the items that follow.
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
			next.n = min(next.n, max(u.least, 1)) // there is no end but that of the list
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
