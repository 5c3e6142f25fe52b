package schema

import (
	"math/big"
	"slices"
	"strconv"

	"sandwich/runtime/grammar/internal/automaton"
	"sandwich/runtime/grammar/internal/schema/document"
)

// Distinct items that are not constants are distinguished by their first letter, their remainder or
// their length. An array has at most one item of each such class, so that some valid arrays cannot
// be generated.

const (
	// fewClasses is the number of classes whose items may appear in any order.
	fewClasses = maxInAnyOrder
	// maxDistinctClasses is the largest number of distinct items. Above fewClasses, the items
	// appear in the order of their classes.
	maxDistinctClasses = 64
)

// distinctByClass returns an expression for arrays of distinct items.
func (c *compiler) distinctByClass(s *document.Value, path string, lo, hi int) (automaton.Expr, error) {
	n := max(fewClasses, lo)
	if n > maxDistinctClasses {
		return nil, automaton.Refuse(document.Show(path)+"/uniqueItems",
			"at most %d distinct items that are not constants are supported; "+
				"minItems is %d", maxDistinctClasses, lo)
	}
	item := located{s.Get("items"), path + "/items"}
	if item.schema == nil {
		item = located{&document.Value{Kind: document.KindBool, Text: "true"}, path}
	}
	if item.schema.IsFalse() || hi == 0 {
		if lo > 0 {
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
	c.Partly = c.Partly || lo > 1
	u := &uniqueWriter{many: -1, min: lo, max: hi, inside: make([]bool, len(list))}
	for _, class := range list {
		e, err := c.merged(path, item, located{class, path})
		if err != nil {
			return nil, err
		}
		u.list = append(u.list, e)
	}
	if u.max < 0 || u.max > len(u.list) {
		u.max = len(u.list)
	}
	if lo > u.max {
		return nil, automaton.Refuse(document.Show(path)+"/uniqueItems",
			"only %d distinct items of this kind are supported; minItems is %d",
			len(u.list), lo)
	}
	return c.distinctItems(u), nil
}

// classesOf returns about n schemas that are pairwise disjoint, to be merged with a flat schema.
func (c *compiler) classesOf(flat *document.Value, path string, n, depth int) (out []*document.Value, err error) {
	names := document.TypeNames
	if flat.Kind == document.KindObject {
		if names, err = document.Types(flat, path); err != nil {
			return nil, err
		}
	}
	single := len(names) == 1
	for _, t := range names {
		switch t {
		case "string":
			var some []*document.Value
			if some, err = c.textClasses(flat, path, n); err == nil {
				out = append(out, some...)
			}
		case "integer":
			if !slices.Contains(names, "number") {
				out = append(out, restClasses(n)...)
			}
		case "number":
			out = append(out, c.rangeClasses(flat, path, n)...)
		case "object":
			out = append(out, c.memberClasses(flat, path, n, depth)...)
		case "array":
			for i := range n {
				size := &document.Value{Kind: document.KindNumber, Text: strconv.Itoa(i)}
				out = append(out, document.OfType("array").And("minItems", size).And("maxItems", size))
			}
		case "boolean":
			for _, b := range []string{"true", "false"} {
				out = append(out, document.OneMember("const", &document.Value{Kind: document.KindBool, Text: b}))
			}
		case "null":
			out = append(out, document.OneMember("const", &document.Value{Kind: document.KindNull, Text: "null"}))
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
func spread(all []*document.Value, names []string, n int) (out []*document.Value) {
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
func (c *compiler) textClasses(s *document.Value, path string, n int) ([]*document.Value, error) {
	class := func(pattern string) *document.Value {
		return document.OfType("string").And(document.MoreTexts, &document.Value{Kind: document.KindArray,
			List: document.Texted([]string{pattern})})
	}
	var first, last, length []*document.Value
	all := ""
	for _, letters := range firstLetters {
		first, last, all = append(first, class("^["+letters+"]")), append(last, class("["+letters+"]$")), all+letters
	}
	first, last = append(first, class("^[^"+all+"]")), append(last, class("[^"+all+"]$"))
	for i := range n {
		length = append(length, class("^(?:[^]{"+strconv.Itoa(n)+"})*[^]{"+strconv.Itoa(i)+"}$"))
	}
	if s.Kind != document.KindObject {
		s = &document.Value{Kind: document.KindObject}
	}
	t, err := c.texts(s, path)
	if err != nil {
		return nil, err
	}
	if n <= len(first) && len(t.Want)+len(t.Unwanted) == 0 && t.Most != 0 {
		return first, nil
	}
	var best []*document.Value
	for _, list := range [][]*document.Value{first, last, length} {
		var some []*document.Value
		for _, x := range list {
			with := t
			with.Want = append(slices.Clone(t.Want), x.Get(document.MoreTexts).List[0].Text)
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
func restClasses(n int) (out []*document.Value) {
	for i := range n {
		rule := &document.Value{Kind: document.KindArray, List: []*document.Value{{Kind: document.KindNumber,
			Text: strconv.Itoa(n)},
			{Kind: document.KindNumber, Text: strconv.Itoa(i)}, {Kind: document.KindBool, Text: "true"}}}
		out = append(out, document.OfType("integer").And(document.Remainders, &document.Value{Kind: document.KindArray,
			List: []*document.Value{rule}}))
	}
	return out
}

// rangeClasses returns classes of numbers: ranges of equal width between the bounds, or a default
// range if a bound is missing.
func (c *compiler) rangeClasses(s *document.Value, path string, n int) (out []*document.Value) {
	lo, hi := big.NewRat(-1, 1), new(big.Rat).SetInt(new(big.Int).Lsh(big.NewInt(1), uint(n-2)))
	even := false
	if s.Kind == document.KindObject {
		if b, err := c.bounds(s, path); err == nil {
			switch even = b.Least != nil && b.Most != nil; {
			case even:
				lo, hi = b.Least, b.Most
			case b.Least != nil:
				lo, hi = b.Least, new(big.Rat).Add(b.Least, hi)
			case b.Most != nil:
				lo, hi = new(big.Rat).Sub(b.Most, hi), b.Most
			}
		}
	}
	cut := func(i int) *document.Value {
		width := new(big.Rat).Sub(hi, lo)
		x := width.Mul(width, big.NewRat(int64(i), int64(n)))
		text := x.Add(x, lo).FloatString(6)
		return &document.Value{Kind: document.KindNumber, Text: text}
	}
	for i := range n {
		x := document.OfType("number")
		if i > 0 {
			x = x.And("minimum", cut(i))
		}
		if i < n-1 {
			x = x.And("exclusiveMaximum", cut(i+1))
		}
		out = append(out, x)
	}
	return out
}

// memberClasses returns classes of objects by the value of a required member: the first one whose
// values have enough classes.
func (c *compiler) memberClasses(s *document.Value, path string, n, depth int) []*document.Value {
	plain := []*document.Value{document.OfType("object")}
	p := s.Get("properties")
	if depth > 3 || p == nil || p.Kind != document.KindObject {
		return plain
	}
	for _, m := range p.Members {
		if !document.Requires(s, m.Name) {
			continue
		}
		at := path + "/properties/" + document.EscapePointer(m.Name)
		flat, err := c.flat(located{m.Value, at}, 0)
		if err != nil || flat.Get("enum") != nil || flat.Get("const") != nil {
			continue
		}
		some, err := c.classesOf(flat, at, n, depth+1)
		if err != nil || len(some) < n {
			continue
		}
		var out []*document.Value
		for _, x := range some {
			out = append(out, document.OfType("object").And("properties", document.OneMember(m.Name, x)))
		}
		return out
	}
	return plain
}
