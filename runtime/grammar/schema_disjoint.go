package grammar

import "slices"

// checkDisjoint refuses a oneOf some of whose values might be in two of its schemas: schemas must
// differ in type, or be objects that must have a property whose constants differ.
func (c *compiler) checkDisjoint(list *value, path string) error {
	flat := make([]*value, len(list.list))
	for i, x := range list.list {
		v, err := c.wide(located{x, path + "/oneOf/" + itoa(i)}, 0)
		if err != nil {
			return err
		}
		flat[i] = v
	}
	if len(flat) > 400 {
		return refuse(show(path)+"/oneOf", "more than 400 schemas are not compared; anyOf takes any number")
	}
	for i, a := range flat {
		for j := range flat[:i] {
			if !c.disjoint(a, flat[j], 0) {
				return refuse(show(path)+"/oneOf", "schemas %d and %d might both hold; use anyOf, or give them "+
					"types or "+
					"constants that differ", j, i)
			}
		}
	}
	return nil
}

// disjoint tells that no value is in both schemas; false where it is not known.
func (c *compiler) disjoint(a, b *value, depth int) bool {
	if a.isFalse() || b.isFalse() {
		return true
	}
	if a.kind != kindObject || b.kind != kindObject || depth > 4 {
		return false
	}
	ka, kb := constantsOf(a), constantsOf(b)
	if ka != nil && kb != nil {
		return !slices.ContainsFunc(ka, func(x *value) bool { return slices.ContainsFunc(kb, x.equal) })
	}
	if ka != nil {
		ka, kb, a, b = kb, ka, b, a
	}
	ta, err1 := types(a, "")
	tb, err2 := types(b, "")
	if err1 != nil || err2 != nil {
		return false
	}
	if kb != nil {
		return !slices.ContainsFunc(kb, func(x *value) bool { return x.hasType(ta) })
	}
	if !overlap(ta, tb) {
		return true
	}
	if !slices.Equal(ta, []string{"object"}) || !slices.Equal(tb, []string{"object"}) {
		return false
	}
	return c.disjointObjects(a, b, depth) || c.disjointNames(a, b) || c.disjointNames(b, a)
}

// disjointObjects looks for a property that both must have and that cannot be the same.
func (c *compiler) disjointObjects(a, b *value, depth int) bool {
	pa, pb := a.get("properties"), b.get("properties")
	if pa == nil || pb == nil {
		return false
	}
	for _, m := range pa.members {
		other := pb.get(m.name)
		if other == nil || !requires(a, m.name) && !requires(b, m.name) {
			continue
		}
		x, err1 := c.wide(located{m.value, ""}, 0)
		y, err2 := c.wide(located{other, ""}, 0)
		if err1 == nil && err2 == nil && c.disjoint(x, y, depth+1) {
			return true
		}
	}
	return false
}

// disjointNames tells that a must have a property that b does not allow.
func (c *compiler) disjointNames(a, b *value) bool {
	r := a.get("required")
	if r == nil || !b.get("additionalProperties").isFalse() || b.get("patternProperties") != nil {
		return false
	}
	p := b.get("properties")
	return slices.ContainsFunc(r.list, func(n *value) bool { return p == nil || p.get(n.text) == nil })
}

func requires(s *value, name string) bool {
	r := s.get("required")
	return r != nil && slices.ContainsFunc(r.list, func(x *value) bool { return x.text == name })
}

func constantsOf(s *value) []*value {
	if k := s.get("const"); k != nil {
		return []*value{k}
	}
	if e := s.get("enum"); e != nil {
		return e.list
	}
	return nil
}

func overlap(a, b []string) bool {
	return slices.ContainsFunc(a, func(t string) bool {
		return slices.Contains(b, t) || t == "integer" && slices.Contains(b, "number") ||
			t == "number" && slices.Contains(b, "integer")
	})
}
