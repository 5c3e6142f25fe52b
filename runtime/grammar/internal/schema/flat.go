package schema

import (
	"slices"

	"sandwich/runtime/grammar/internal/automaton"
)

// flat returns a schema without $ref and allOf at its top level, and with conditional keywords as
// alternatives. It allows a subset of what the schema allows.
func (c *compiler) flat(x located, depth int) (*value, error) { return c.flatten(x, depth, true) }

// wide is flat without conditional keywords. It allows a superset of what the schema allows.
func (c *compiler) wide(x located, depth int) (*value, error) { return c.flatten(x, depth, false) }

// mostNested is the largest nesting depth of references between schemas that apply to the same
// value.
const mostNested = 256

func (c *compiler) flatten(x located, depth int, conditions bool) (*value, error) {
	switch s := x.schema; {
	case s.kind != kindObject:
		return s, nil
	case c.within[s]:
		return nil, automaton.Refuse(show(x.path), "the schema refers to itself without end")
	case depth > mostNested:
		return nil, automaton.Refuse(show(x.path), "$ref and allOf are nested more than %d levels deep", mostNested)
	case c.flats > mostFlat:
		return nil, automaton.Refuse(show(x.path), "more than %d schemas apply to the same value", mostFlat)
	}
	if c.within == nil {
		c.within = map[*value]bool{}
	}
	c.within[x.schema] = true
	defer delete(c.within, x.schema)
	c.Meter.Work(len(x.schema.members))
	if !conditions {
		return c.widened(x, depth)
	}
	return c.flattened(x, depth, true)
}

// widened is flatten without conditional keywords. Its results are cached.
func (c *compiler) widened(x located, depth int) (*value, error) {
	if v := c.wides[x.schema]; v != nil {
		return v, nil
	}
	all := x.schema
	if slices.ContainsFunc(conditional, func(k string) bool { return all.get(k) != nil }) {
		if x.schema = all.without(conditional...); x.schema == nil {
			x.schema = &value{kind: kindObject}
		}
	}
	v, err := c.flattened(x, depth, false)
	if err != nil {
		return nil, err
	}
	if c.wides == nil {
		c.wides = map[*value]*value{}
	}
	c.wides[all] = v
	return v, nil
}

func (c *compiler) flattened(x located, depth int, conditions bool) (*value, error) {
	x.schema = x.schema.withContains().withExclusive()
	whole, known := x.schema, evaluated{}
	if whole.limits() {
		x.schema = whole.but(unevaluatedKeys[0]).but(unevaluatedKeys[1])
		if err := known.add(c, x, depth); err != nil {
			return nil, err
		}
	}
	parts, err := c.inPlace(x)
	if err != nil {
		return nil, err
	}
	if conditions {
		more, err := c.alternatives(x.schema, x.path, depth)
		if err != nil {
			return nil, err
		}
		for _, a := range more {
			parts = append(parts, located{a, x.path})
		}
	}
	sum := x.schema
	if len(parts) > 0 {
		if sum = x.schema.without(slices.Concat(referring, []string{"allOf"}, conditional)...); sum == nil {
			sum = &value{kind: kindBool, text: "true"}
		}
	}
	c.flats += len(parts)
	for _, p := range parts {
		v, err := c.flatten(p, depth+1, conditions)
		if err == nil {
			sum, err = c.merge(sum, v, x.path)
		}
		if err != nil {
			return nil, err
		}
	}
	if whole.limits() {
		return c.sealed(sum, whole, known, x.path)
	}
	return sum, nil
}
