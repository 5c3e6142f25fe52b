package schema

import (
	"slices"

	"sandwich/runtime/grammar/internal/automaton"
	"sandwich/runtime/grammar/internal/schema/document"
)

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
	if s.Kind != document.KindObject {
		return nil
	}
	switch c.flats++; {
	case depth > maxNested:
		return automaton.Refuse(document.Show(x.path),
			"the schema refers to itself without end, or $ref and allOf are nested more than %d "+
				"levels deep", maxNested)
	case c.flats > maxFlat:
		return automaton.Refuse(document.Show(x.path), "more than %d schemas apply to the same value", maxFlat)
	}
	c.Meter.Work(1 + len(s.Members))
	for _, k := range choosing {
		if v := s.Get(k); v != nil && v.Says(evaluating) {
			return automaton.Refuse(document.Show(x.path)+"/"+k,
				"the keyword is not supported together with unevaluated keywords")
		}
	}
	if s.Get("contains") != nil {
		return automaton.Refuse(document.Show(x.path)+"/contains",
			"the keyword is not supported together with unevaluated keywords")
	}
	for _, m := range s.Members {
		switch m.Name {
		case "properties":
			for _, p := range m.Value.Members {
				e.names = append(e.names, p.Name)
			}
		case "patternProperties":
			for _, p := range m.Value.Members {
				e.patterns = append(e.patterns, p.Name)
			}
		case "additionalProperties", "unevaluatedProperties":
			e.members = true
		case "items":
			e.items = e.items || m.Value.Kind != document.KindArray
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

// sealed returns a flat schema that includes the restrictions of by on what e does not contain.
func (c *compiler) sealed(flat, by *document.Value, e evaluated, path string) (*document.Value, error) {
	if flat.Kind != document.KindObject && flat.IsFalse() {
		return flat, nil
	}
	out := &document.Value{Kind: document.KindObject}
	members, items := by.Get(document.UnevaluatedKeys[0]), by.Get(document.UnevaluatedKeys[1])
	members, items = unless(e.members, members), unless(e.items, items)
	for _, m := range flat.Members {
		switch {
		case members != nil && m.Name == "properties":
			props := &document.Value{Kind: document.KindObject}
			for _, p := range m.Value.Members {
				if !slices.Contains(e.names, p.Name) && !slices.ContainsFunc(e.patterns,
					func(re string) bool { return c.Matches(re, p.Name, false) }) {
					p.Value = document.Both(p.Value, members)
				}
				props.Members = append(props.Members, p)
			}
			m.Value = props
		case members != nil && m.Name == "additionalProperties", items != nil && m.Name == "additionalItems",
			items != nil && m.Name == "items" && m.Value.Kind != document.KindArray:
			return nil, automaton.Refuse(document.Show(path), "the unevaluated members or items cannot be determined")
		}
		out.Members = append(out.Members, m)
	}
	if members != nil {
		out = out.And("additionalProperties", members)
	}
	if it := flat.Get("items"); items != nil && it != nil {
		out = out.And("additionalItems", items)
	} else if items != nil {
		out = out.And("items", items)
	}
	return out, nil
}

// unless returns v if it restricts something and is not passed over, or else nil.
func unless(passed bool, v *document.Value) *document.Value {
	if passed || v == nil || v.IsTrue() {
		return nil
	}
	return v
}
