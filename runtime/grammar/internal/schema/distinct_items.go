package schema

import (
	"math/big"
	"slices"

	"sandwich/runtime/grammar/internal/automaton"
)

// Distinct items that are not constants are distinguished by their first letter, their remainder or
// their length. An array has at most one item of each such class, so that some valid arrays cannot
// be generated.

const (
	// fewClasses is the number of classes whose items may appear in any order.
	fewClasses = mostInAnyOrder
	// mostDistinctClasses is the largest number of distinct items. Above fewClasses, the items
	// appear in the order of their classes.
	mostDistinctClasses = 64
)

// distinctByClass returns an expression for arrays of distinct items.
func (c *compiler) distinctByClass(s *value, path string, least, most int) (automaton.Expr, error) {
	n := max(fewClasses, least)
	if n > mostDistinctClasses {
		return nil, automaton.Refuse(show(path)+"/uniqueItems",
			"at most %d distinct items that are not constants are supported; "+
				"minItems is %d", mostDistinctClasses, least)
	}
	item := located{s.get("items"), path + "/items"}
	if item.schema == nil {
		item = located{&value{kind: kindBool, text: "true"}, path}
	}
	if item.schema.isFalse() || most == 0 {
		if least > 0 {
			return automaton.Nothing{}, nil
		}
		return c.List(automaton.Nothing{}, 0, 0), nil
	}
	flat, err := c.flat(item, 0)
	if err != nil {
		return nil, err
	}
	list, err := c.classesOf(flat, path, n, 0)
	if err != nil {
		return nil, err
	}
	if len(list) == 0 {
		return automaton.Nothing{}, nil // the items have no type
	}
	c.Partly = c.Partly || least > 1
	u := &uniqueWriter{many: -1, least: least, most: most, inside: make([]bool, len(list))}
	for _, class := range list {
		e, err := c.merged(path, item, located{class, path})
		if err != nil {
			return nil, err
		}
		u.list = append(u.list, e)
	}
	if u.most < 0 || u.most > len(u.list) {
		u.most = len(u.list)
	}
	if least > u.most {
		return nil, automaton.Refuse(show(path)+"/uniqueItems",
			"only %d distinct items of this kind are supported; minItems is %d",
			len(u.list), least)
	}
	return c.distinctItems(u), nil
}

// classesOf returns about n schemas that are pairwise disjoint, to be merged with a flat schema.
func (c *compiler) classesOf(flat *value, path string, n, depth int) (out []*value, err error) {
	names := typeNames
	if flat.kind == kindObject {
		if names, err = types(flat, path); err != nil {
			return nil, err
		}
	}
	single := len(names) == 1
	for _, t := range names {
		switch t {
		case "string":
			var some []*value
			if some, err = c.textClasses(flat, path, n); err == nil {
				out = append(out, some...)
			}
		case "integer":
			if !contains(names, "number") {
				out = append(out, restClasses(n)...)
			}
		case "number":
			out = append(out, c.rangeClasses(flat, path, n)...)
		case "object":
			out = append(out, c.memberClasses(flat, path, n, depth)...)
		case "array":
			for i := range n {
				size := &value{kind: kindNumber, text: itoa(i)}
				out = append(out, ofType("array").and("minItems", size).and("maxItems", size))
			}
		case "boolean":
			for _, b := range []string{"true", "false"} {
				out = append(out, object1("const", &value{kind: kindBool, text: b}))
			}
		case "null":
			out = append(out, object1("const", &value{kind: kindNull, text: "null"}))
		}
		if err != nil {
			return nil, err
		}
	}
	if !single && len(out) > n {
		out = spread(out, names, n)
	}
	return out, nil
}

// spread selects n classes evenly from all types.
func spread(all []*value, names []string, n int) (out []*value) {
	step := float64(len(all)) / float64(n)
	for i := range n {
		out = append(out, all[int(float64(i)*step)])
	}
	return out
}

// firstLetters are classes of first letters with about as many words in each.
var firstLetters = []string{"sSjJ08", "cCnN19", "pPlLqQ2", "aAmM3", "dDbB4", "rRtTwW5", "eEfFhH6"}

// textClasses returns classes of strings by first letter, last letter or length, whichever gives
// the most classes.
func (c *compiler) textClasses(s *value, path string, n int) ([]*value, error) {
	class := func(pattern string) *value {
		return ofType("string").and(moreTexts, &value{kind: kindArray, list: texted([]string{pattern})})
	}
	var first, last, length []*value
	all := ""
	for _, letters := range firstLetters {
		first, last, all = append(first, class("^["+letters+"]")), append(last, class("["+letters+"]$")), all+letters
	}
	first, last = append(first, class("^[^"+all+"]")), append(last, class("[^"+all+"]$"))
	for i := range n {
		length = append(length, class("^(?:[^]{"+itoa(n)+"})*[^]{"+itoa(i)+"}$"))
	}
	if s.kind != kindObject {
		s = &value{kind: kindObject}
	}
	t, err := c.texts(s, path)
	if err != nil {
		return nil, err
	}
	if n <= len(first) && len(t.Want)+len(t.Unwanted) == 0 && t.Most != 0 {
		return first, nil
	}
	var best []*value
	for _, list := range [][]*value{first, last, length} {
		var some []*value
		for _, x := range list {
			with := t
			with.Want = append(slices.Clone(t.Want), x.get(moreTexts).list[0].text)
			ok, err := c.Inhabited(path, with)
			if err != nil {
				return nil, err
			}
			if ok {
				some = append(some, x)
			}
		}
		if len(some) > len(best) {
			best = some
		}
		if len(best) >= n {
			break
		}
	}
	return best, nil
}

// restClasses returns classes of whole numbers by their remainder modulo n.
func restClasses(n int) (out []*value) {
	for i := range n {
		rule := &value{kind: kindArray, list: []*value{{kind: kindNumber, text: itoa(n)},
			{kind: kindNumber, text: itoa(i)}, {kind: kindBool, text: "true"}}}
		out = append(out, ofType("integer").and(remainders, &value{kind: kindArray, list: []*value{rule}}))
	}
	return out
}

// rangeClasses returns classes of numbers: ranges of equal width between the bounds, or a default
// range if a bound is missing.
func (c *compiler) rangeClasses(s *value, path string, n int) (out []*value) {
	least, most := big.NewRat(-1, 1), new(big.Rat).SetInt(new(big.Int).Lsh(big.NewInt(1), uint(n-2)))
	even := false
	if s.kind == kindObject {
		if b, err := c.bounds(s, path); err == nil {
			switch even = b.Least != nil && b.Most != nil; {
			case even:
				least, most = b.Least, b.Most
			case b.Least != nil:
				least, most = b.Least, new(big.Rat).Add(b.Least, most)
			case b.Most != nil:
				least, most = new(big.Rat).Sub(b.Most, most), b.Most
			}
		}
	}
	cut := func(i int) *value {
		width := new(big.Rat).Sub(most, least)
		x := width.Mul(width, big.NewRat(int64(i), int64(n)))
		text := x.Add(x, least).FloatString(6)
		return &value{kind: kindNumber, text: text}
	}
	for i := range n {
		x := ofType("number")
		if i > 0 {
			x = x.and("minimum", cut(i))
		}
		if i < n-1 {
			x = x.and("exclusiveMaximum", cut(i+1))
		}
		out = append(out, x)
	}
	return out
}

// memberClasses returns classes of objects by the value of a required member: the first one whose
// values have enough classes.
func (c *compiler) memberClasses(s *value, path string, n, depth int) []*value {
	plain := []*value{ofType("object")}
	p := s.get("properties")
	if depth > 3 || p == nil || p.kind != kindObject {
		return plain
	}
	for _, m := range p.members {
		if !requires(s, m.name) {
			continue
		}
		at := path + "/properties/" + escapePointer(m.name)
		flat, err := c.flat(located{m.value, at}, 0)
		if err != nil || flat.get("enum") != nil || flat.get("const") != nil {
			continue
		}
		some, err := c.classesOf(flat, at, n, depth+1)
		if err != nil || len(some) < n {
			continue
		}
		var out []*value
		for _, x := range some {
			out = append(out, ofType("object").and("properties", object1(m.name, x)))
		}
		return out
	}
	return plain
}
