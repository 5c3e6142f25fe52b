package schema

import (
	"slices"
	"strconv"
	"unicode/utf8"

	"sandwich/runtime/grammar/internal/automaton"
	"sandwich/runtime/grammar/internal/schema/document"
)

// maxCompared is the largest number of schemas of a oneOf that are compared with each other.
const maxCompared = 400

// overlapping returns for each schema of a oneOf the indices of the others that may match the same
// value.
func (c *compiler) overlapping(list *document.Value, path string) (flat []*document.Value, conflicts [][]int,
	err error) {
	if len(list.List) > maxCompared {
		return nil, nil, automaton.Refuse(document.Show(path)+"/oneOf",
			"oneOf supports at most %d schemas; use anyOf for more",
			maxCompared)
	}
	conflicts = make([][]int, len(list.List))
	for i, x := range list.List {
		v, err := c.wide(located{x, path + "/oneOf/" + strconv.Itoa(i)}, 0)
		if err != nil {
			return nil, nil, err
		}
		for j, other := range flat {
			if !c.disjoint(v, other, 0) {
				conflicts[i], conflicts[j] = append(conflicts[i], j), append(conflicts[j], i)
			}
		}
		flat = append(flat, v)
	}
	return flat, conflicts, nil
}

// disjoint reports whether no value matches both schemas. It returns false if that is unknown.
func (c *compiler) disjoint(a, b *document.Value, depth int) bool {
	if a.IsFalse() || b.IsFalse() {
		return true
	}
	if a.Kind != document.KindObject || b.Kind != document.KindObject || depth > 4 {
		return false
	}
	ka, kb := document.ConstantsOf(a), document.ConstantsOf(b)
	c.Meter.Work(64 + 4*len(ka)*max(1, len(kb)))
	if ka != nil && kb != nil {
		return !slices.ContainsFunc(ka, func(x *document.Value) bool { return slices.ContainsFunc(kb, x.Equal) })
	}
	if ka != nil {
		ka, kb, a, b = kb, ka, b, a
	}
	ta := c.typesOf(a, depth)
	if kb != nil {
		return !slices.ContainsFunc(kb, func(x *document.Value) bool { return x.HasType(ta) && !c.excludes(a, x) }) ||
			c.eachDisjoint(a, b, depth)
	}
	tb := c.typesOf(b, depth)
	if !overlap(ta, tb) || c.eachDisjoint(a, b, depth) || c.eachDisjoint(b, a, depth) {
		return true
	}
	for _, t := range document.TypeNames {
		if overlap([]string{t}, ta) && overlap([]string{t}, tb) && !c.disjointIn(t, a, b, depth) {
			return false
		}
	}
	return true
}

// excludes reports whether a schema does not allow a constant string or number.
func (c *compiler) excludes(s, x *document.Value) bool {
	switch x.Kind {
	case document.KindString:
		t, err := c.wideTexts(s, "")
		if err != nil {
			return false
		}
		n := utf8.RuneCountInString(x.Text)
		return n < t.Least || t.Most >= 0 && n > t.Most || slices.ContainsFunc(t.Want, func(p string) bool {
			_, err := c.Read("", p, true)
			return err == nil && !c.Matches(p, x.Text, true)
		})
	case document.KindNumber:
		n, err := c.bounds(s, "")
		r, ok := document.Rational(x)
		return err == nil && ok && !n.None() && !n.Holds(r)
	}
	return false
}

// eachDisjoint reports whether each alternative of a is disjoint from b.
func (c *compiler) eachDisjoint(a, b *document.Value, depth int) bool {
	for _, key := range []string{"anyOf", "oneOf"} {
		list := a.Get(key)
		if list == nil || len(list.List) == 0 || len(list.List) > maxExclusive*4 {
			continue
		}
		if !slices.ContainsFunc(list.List, func(x *document.Value) bool {
			v, err := c.wide(located{x, ""}, 0)
			return err != nil || !c.disjoint(v, b, depth+1)
		}) {
			return true
		}
	}
	return false
}

// typesOf returns the types of a schema as far as they are known, including its alternatives.
func (c *compiler) typesOf(s *document.Value, depth int) []string {
	c.Meter.Work(32)
	all, err := document.Types(s, "")
	if err != nil {
		return document.TypeNames
	}
	if k := document.ConstantsOf(s); k != nil {
		all = slices.DeleteFunc(slices.Clone(all), func(t string) bool {
			return !slices.ContainsFunc(k, func(x *document.Value) bool { return x.HasType([]string{t}) })
		})
	}
	for _, key := range []string{"anyOf", "oneOf"} {
		list := s.Get(key)
		if list == nil || len(list.List) == 0 || depth > 4 {
			continue
		}
		var some []string
		for _, x := range list.List {
			v, err := c.wide(located{x, ""}, 0)
			switch {
			case err != nil || v.IsTrue():
				some = document.TypeNames
			case v.Kind == document.KindObject:
				some = append(some, c.typesOf(v, depth+1)...)
			}
		}
		all = slices.DeleteFunc(slices.Clone(all), func(t string) bool { return !overlap([]string{t}, some) })
	}
	return all
}

// disjointIn reports whether no value of a type matches both schemas.
func (c *compiler) disjointIn(t string, a, b *document.Value, depth int) bool {
	switch t {
	case "object":
		return c.disjointObjects(a, b, depth) || c.disjointNames(a, b) || c.disjointNames(b, a)
	case "string":
		return c.disjointTexts(a, b)
	case "number", "integer":
		x, err1 := c.bounds(a, "")
		y, err2 := c.bounds(b, "")
		return err1 == nil && err2 == nil && (apart(x, y) || apart(y, x))
	case "array":
		return c.disjointArrays(a, b, depth)
	}
	return false
}

// apart reports whether all numbers in x are below those in y.
func apart(x, y automaton.Bounds) bool {
	if x.Most == nil || y.Least == nil {
		return false
	}
	order := x.Most.Cmp(y.Least)
	return order < 0 || order == 0 && (x.BelowMost || y.OverLeast)
}

// disjointTexts reports whether no string satisfies the expressions, formats and lengths of both.
func (c *compiler) disjointTexts(a, b *document.Value) bool {
	x, err1 := c.wideTexts(a, "")
	y, err2 := c.wideTexts(b, "")
	if err1 != nil || err2 != nil {
		return false
	}
	if x.Most >= 0 && x.Most < y.Least || y.Most >= 0 && y.Most < x.Least {
		return true
	}
	if len(x.Want)+len(x.Unwanted) == 0 || len(y.Want)+len(y.Unwanted) == 0 {
		return false
	}
	x.Want, x.Unwanted = slices.Concat(x.Want, y.Want), slices.Concat(x.Unwanted, y.Unwanted)
	ok, err := c.Inhabited("", x)
	return err == nil && !ok
}

// disjointArrays compares the lengths of arrays and the first items that one of them requires.
func (c *compiler) disjointArrays(a, b *document.Value, depth int) bool {
	minA, maxA, err1 := document.Span(a, "", "minItems", "maxItems")
	minB, maxB, err2 := document.Span(b, "", "minItems", "maxItems")
	if err1 != nil || err2 != nil {
		return false
	}
	if maxA >= 0 && maxA < minB || maxB >= 0 && maxB < minA {
		return true
	}
	at := func(s *document.Value, i int) *document.Value {
		first, rest := document.Places(s)
		if i < len(first) {
			return first[i]
		}
		return rest
	}
	for i := range min(max(minA, minB), 4) {
		x, y := at(a, i), at(b, i)
		if x == nil || y == nil {
			continue
		}
		v, err1 := c.wide(located{x, ""}, 0)
		w, err2 := c.wide(located{y, ""}, 0)
		if err1 == nil && err2 == nil && c.disjoint(v, w, depth+1) {
			return true
		}
	}
	return false
}

// disjointObjects looks for a required property whose schemas are disjoint.
func (c *compiler) disjointObjects(a, b *document.Value, depth int) bool {
	pa, pb := a.Get("properties"), b.Get("properties")
	if pa == nil || pb == nil || depth > 3 {
		return false
	}
	for _, m := range pa.Members {
		other := pb.Get(m.Name)
		if other == nil || !document.Requires(a, m.Name) && !document.Requires(b, m.Name) {
			continue
		}
		x, err1 := c.wide(located{m.Value, ""}, 0)
		y, err2 := c.wide(located{other, ""}, 0)
		if err1 == nil && err2 == nil && c.disjoint(x, y, depth+1) {
			return true
		}
	}
	return false
}

// disjointNames reports whether a requires a property that b does not allow.
func (c *compiler) disjointNames(a, b *document.Value) bool {
	r := a.Get("required")
	if r == nil || !b.Get("additionalProperties").IsFalse() || b.Get("patternProperties") != nil {
		return false
	}
	p := b.Get("properties")
	return slices.ContainsFunc(r.List, func(n *document.Value) bool { return p == nil || p.Get(n.Text) == nil })
}

func overlap(a, b []string) bool {
	return slices.ContainsFunc(a, func(t string) bool {
		return slices.Contains(b, t) || t == "integer" && slices.Contains(b, "number") ||
			t == "number" && slices.Contains(b, "integer")
	})
}

// maxExclusive is the largest number of overlapping schemas that are excluded from a schema of a
// oneOf.
const maxExclusive = 8
