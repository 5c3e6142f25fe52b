package schema

import (
	"slices"

	"sandwich/runtime/grammar/internal/automaton"
	"sandwich/runtime/grammar/internal/schema/document"
)

// flat returns a schema without $ref and allOf at its top level, and with conditional keywords as
// alternatives. It allows a subset of what the schema allows.
func (c *compiler) flat(x located, depth int) (*document.Value, error) {
	return c.flatten(x, depth, true)
}

// wide is flat without conditional keywords. It allows a superset of what the schema allows.
func (c *compiler) wide(x located, depth int) (*document.Value, error) {
	return c.flatten(x, depth, false)
}

func (c *compiler) flatten(x located, depth int, conditions bool) (*document.Value, error) {
	switch s := x.schema; {
	case s.Kind != document.KindObject:
		return s, nil
	case c.within[s]:
		return nil, automaton.Refuse(document.Show(x.path), "the schema refers to itself without end")
	case depth > maxNested:
		return nil, automaton.Refuse(document.Show(x.path), "$ref and allOf are nested more than %d levels deep",
			maxNested)
	case c.flats > maxFlat:
		return nil, automaton.Refuse(document.Show(x.path), "more than %d schemas apply to the same value", maxFlat)
	}
	if c.within == nil {
		c.within = map[*document.Value]bool{}
	}
	c.within[x.schema] = true
	defer delete(c.within, x.schema)
	c.Meter.Work(len(x.schema.Members))
	if !conditions {
		return c.widened(x, depth)
	}
	return c.flattened(x, depth, true)
}

// widened is flatten without conditional keywords. Its results are cached.
func (c *compiler) widened(x located, depth int) (*document.Value, error) {
	if v := c.wides[x.schema]; v != nil {
		return v, nil
	}
	all := x.schema
	if slices.ContainsFunc(document.Conditional, func(k string) bool { return all.Get(k) != nil }) {
		if x.schema = all.Without(document.Conditional...); x.schema == nil {
			x.schema = &document.Value{Kind: document.KindObject}
		}
	}
	v, err := c.flattened(x, depth, false)
	if err != nil {
		return nil, err
	}
	if c.wides == nil {
		c.wides = map[*document.Value]*document.Value{}
	}
	c.wides[all] = v
	return v, nil
}

func (c *compiler) flattened(x located, depth int, conditions bool) (*document.Value, error) {
	x.schema = x.schema.WithContains().WithExclusive()
	whole, known := x.schema, evaluated{}
	if whole.Limits() {
		x.schema = whole.But(document.UnevaluatedKeys[0]).But(document.UnevaluatedKeys[1])
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
		if sum = x.schema.Without(slices.Concat(document.Referring, []string{"allOf"},
			document.Conditional)...); sum == nil {
			sum = &document.Value{Kind: document.KindBool, Text: "true"}
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
	if whole.Limits() {
		return c.sealed(sum, whole, known, x.path)
	}
	return sum, nil
}
