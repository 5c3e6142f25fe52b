package schema

import (
	"slices"

	"sandwich/runtime/grammar/internal/automaton"
)

// unevaluatedKeys are the keywords for members and items that no other keyword evaluates.
var unevaluatedKeys = []string{"unevaluatedProperties", "unevaluatedItems"}

// evaluated are the members and items that the keywords of a schema evaluate for any value.
type evaluated struct {
	names, patterns []string
	members, items  bool // all of them
}

// Keywords that evaluate members or items only if a subschema applies.
var (
	evaluating = []string{"properties", "patternProperties", "additionalProperties", "unevaluatedProperties", "items",
		"prefixItems", "additionalItems", "unevaluatedItems", "contains", "$ref", "$dynamicRef", "$recursiveRef"}
	choosing = []string{"anyOf", "oneOf", "if", "then", "else", "dependentSchemas", "dependencies"}
)

// add adds what a schema evaluates. It returns an error if that depends on the value.
func (e *evaluated) add(c *compiler, x located, depth int) error {
	s := x.schema
	if s.kind != kindObject {
		return nil
	}
	switch c.flats++; {
	case depth > mostNested:
		return automaton.Refuse(show(x.path),
			"the schema refers to itself without end, or $ref and allOf are nested more than %d "+
				"levels deep", mostNested)
	case c.flats > mostFlat:
		return automaton.Refuse(show(x.path), "more than %d schemas apply to the same value", mostFlat)
	}
	c.Meter.Work(1 + len(s.members))
	for _, k := range choosing {
		if v := s.get(k); v != nil && v.says(evaluating) {
			return automaton.Refuse(show(x.path)+"/"+k,
				"the keyword is not supported together with unevaluated keywords")
		}
	}
	if s.get("contains") != nil {
		return automaton.Refuse(show(x.path)+"/contains",
			"the keyword is not supported together with unevaluated keywords")
	}
	for _, m := range s.members {
		switch m.name {
		case "properties":
			for _, p := range m.value.members {
				e.names = append(e.names, p.name)
			}
		case "patternProperties":
			for _, p := range m.value.members {
				e.patterns = append(e.patterns, p.name)
			}
		case "additionalProperties", "unevaluatedProperties":
			e.members = true
		case "items":
			e.items = e.items || m.value.kind != kindArray
		case "additionalItems", "unevaluatedItems":
			e.items = true
		}
	}
	parts, err := c.inPlace(x)
	for _, p := range parts {
		if err == nil {
			err = e.add(c, p, depth+1)
		}
	}
	return err
}

// says reports whether one of the keywords occurs anywhere in a value.
func (v *value) says(keys []string) bool {
	for _, m := range v.members {
		if slices.Contains(keys, m.name) || m.value.says(keys) {
			return true
		}
	}
	return slices.ContainsFunc(v.list, func(x *value) bool { return x.says(keys) })
}

// limits reports whether a schema restricts unevaluated members or items.
func (v *value) limits() bool {
	return slices.ContainsFunc(unevaluatedKeys, func(k string) bool { return v.get(k) != nil && !v.get(k).isTrue() })
}

// sealed returns a flat schema that includes the restrictions of by on what e does not contain.
func (c *compiler) sealed(flat, by *value, e evaluated, path string) (*value, error) {
	if flat.kind != kindObject && flat.isFalse() {
		return flat, nil
	}
	out := &value{kind: kindObject}
	members, items := by.get(unevaluatedKeys[0]), by.get(unevaluatedKeys[1])
	members, items = unless(e.members, members), unless(e.items, items)
	for _, m := range flat.members {
		switch {
		case members != nil && m.name == "properties":
			props := &value{kind: kindObject}
			for _, p := range m.value.members {
				if !slices.Contains(e.names, p.name) && !slices.ContainsFunc(e.patterns,
					func(re string) bool { return c.Matches(re, p.name, false) }) {
					p.value = both(p.value, members)
				}
				props.members = append(props.members, p)
			}
			m.value = props
		case members != nil && m.name == "additionalProperties", items != nil && m.name == "additionalItems",
			items != nil && m.name == "items" && m.value.kind != kindArray:
			return nil, automaton.Refuse(show(path), "the unevaluated members or items cannot be determined")
		}
		out.members = append(out.members, m)
	}
	if members != nil {
		out = out.and("additionalProperties", members)
	}
	if it := flat.get("items"); items != nil && it != nil {
		out = out.and("additionalItems", items)
	} else if items != nil {
		out = out.and("items", items)
	}
	return out, nil
}

// unless returns v if it restricts something and is not passed over, or else nil.
func unless(passed bool, v *value) *value {
	if passed || v == nil || v.isTrue() {
		return nil
	}
	return v
}

// unevaluated handles schemas with unevaluated keywords. Next to anyOf or oneOf, it applies them to
// each alternative separately.
func (c *compiler) unevaluated(s *value, path string) (automaton.Expr, bool, error) {
	if !s.limits() {
		return nil, false, nil
	}
	key := "anyOf"
	if s.get(key) == nil {
		key = "oneOf"
	}
	list := s.get(key)
	if list == nil || !list.says(evaluating) || s.get("anyOf") != nil && s.get("oneOf") != nil {
		e, err := c.merged(path, located{s, path})
		return e, true, err
	}
	if key == "oneOf" {
		_, conflicts, err := c.overlapping(list, path)
		if err != nil {
			return nil, false, err
		}
		for i, others := range conflicts {
			if len(others) > 0 {
				return nil, false, overlaps(path, i, others[0])
			}
		}
	}
	var out automaton.Choice
	for _, x := range list.list {
		// An allOf of both evaluates what both evaluate.
		one := s.but(key)
		all := &value{kind: kindArray, list: []*value{x}}
		if old := s.get("allOf"); old != nil {
			all.list = append(all.list, old.list...)
			one = one.but("allOf")
		}
		e, err := c.merged(path, located{one.and("allOf", all), path})
		if err != nil {
			return nil, false, err
		}
		out = append(out, e)
	}
	return out, true, nil
}
