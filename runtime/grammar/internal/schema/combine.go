package schema

import (
	"slices"
	"strconv"

	"sandwich/runtime/grammar/internal/automaton"
	"sandwich/runtime/grammar/internal/schema/document"
)

// allOf merges its schemas and the other keywords into one schema.
func (c *compiler) allOf(s *document.Value, path string) (automaton.Expr, bool, error) {
	list := s.Get("allOf")
	if list == nil {
		return nil, false, nil
	}
	if list.Kind != document.KindArray || len(list.List) == 0 {
		return nil, false, automaton.Refuse(document.Show(path)+"/allOf", "the value must be a list of schemas")
	}
	var all []located
	if rest := s.Without("allOf"); rest != nil {
		all = append(all, located{rest, path})
	}
	for i, x := range list.List {
		all = append(all, located{x, path + "/allOf/" + strconv.Itoa(i)})
	}
	e, err := c.merged(path, all...)
	return e, true, err
}

// choices handles anyOf and oneOf.
func (c *compiler) choices(s *document.Value, path string) (automaton.Expr, bool, error) {
	key := "anyOf"
	list := s.Get(key)
	if list == nil {
		if list = s.Get("oneOf"); list == nil {
			return nil, false, nil
		}
		key = "oneOf"
	}
	if list.Kind != document.KindArray || len(list.List) == 0 {
		return nil, false, automaton.Refuse(document.Show(path)+"/"+key, "the value must be a list of schemas")
	}
	rest := s.Without(key)
	if key == "oneOf" {
		flat, conflicts, err := c.overlapping(list, path)
		if err != nil {
			return nil, false, err
		}
		if slices.ContainsFunc(conflicts, func(others []int) bool { return len(others) > 0 }) {
			e, err := c.exclusive(list, rest, path, flat, conflicts)
			return e, true, err
		}
	}
	var out automaton.Choice
	met := map[automaton.RuleID]bool{}
	for i, x := range list.List {
		at := path + "/" + key + "/" + strconv.Itoa(i)
		var e automaton.Expr
		var err error
		if rest == nil {
			if key := leafKey(x); key != "" {
				if r, known := c.leaves[key]; known && met[r] {
					continue // equal to an earlier alternative
				}
			}
			var r automaton.Call
			r, err = c.refer(at)
			met[r.Rule], e = true, r
		} else {
			e, err = c.merged(path, located{rest, path}, located{x, at})
		}
		if err != nil {
			return nil, false, err
		}
		out = append(out, e)
	}
	return out, true, nil
}

// constants handles enum and const. It drops values that the type or the bounds do not allow.
func (c *compiler) constants(s *document.Value, path string) (automaton.Expr, bool, error) {
	list := s.Get("enum")
	if k := s.Get("const"); k != nil {
		if list != nil && !slices.ContainsFunc(list.List, func(x *document.Value) bool { return x.Equal(k) }) {
			return automaton.Nothing{}, true, nil
		}
		list = &document.Value{Kind: document.KindArray, List: []*document.Value{k}}
	}
	if list == nil {
		return nil, false, nil
	}
	if list.Kind != document.KindArray {
		return nil, false, automaton.Refuse(document.Show(path)+"/enum", "the value must be a list")
	}
	names, err := document.Types(s, path)
	if err != nil {
		return nil, false, err
	}
	t, err := c.texts(s, path)
	if err != nil {
		return nil, false, err
	}
	n, err := c.bounds(s, path)
	if err != nil {
		return nil, false, err
	}
	structured := slices.ContainsFunc(list.List, func(x *document.Value) bool {
		return x.Kind == document.KindObject ||
			x.Kind == document.KindArray
	})
	for _, m := range s.Members {
		if structured && slices.Contains(asserting, m.Name) {
			return nil, false, automaton.Refuse(document.Show(path)+"/"+document.EscapePointer(m.Name),
				"the keyword is not supported together with "+
					"constants that are objects or arrays")
		}
	}
	var w automaton.Words
	for _, x := range list.List {
		holds := x.Kind != document.KindString || c.hasText(t, x.Text)
		if r, ok := document.Rational(x); x.Kind == document.KindNumber {
			holds = n.None() || ok && n.Holds(r)
		}
		if holds && x.HasType(names) {
			text := string(x.Write(nil))
			c.Meter.Take(16 + len(text))
			w = append(w, text)
		}
	}
	return w, true, nil
}

// asserting are the keywords that would have to be checked for each structured constant.
var asserting = []string{"properties", "required", "additionalProperties", "patternProperties", "items", "prefixItems",
	"additionalItems", "minItems", "maxItems", "minProperties", "maxProperties", "propertyNames", "uniqueItems",
	"contains"}

// conditions handles schemas with such keywords.
func (c *compiler) conditions(s *document.Value, path string) (automaton.Expr, bool, error) {
	if !slices.ContainsFunc(document.Conditional, func(k string) bool { return s.Get(k) != nil }) {
		return nil, false, nil
	}
	e, err := c.merged(path, located{s, path})
	return e, true, err
}

// unevaluated handles schemas with unevaluated keywords. Next to anyOf or oneOf, it applies them to
// each alternative separately.
func (c *compiler) unevaluated(s *document.Value, path string) (automaton.Expr, bool, error) {
	if !s.Limits() {
		return nil, false, nil
	}
	key := "anyOf"
	if s.Get(key) == nil {
		key = "oneOf"
	}
	list := s.Get(key)
	if list == nil || !list.Says(evaluating) || s.Get("anyOf") != nil && s.Get("oneOf") != nil {
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
	for _, x := range list.List {
		// An allOf of both evaluates what both evaluate.
		one := s.But(key)
		all := &document.Value{Kind: document.KindArray, List: []*document.Value{x}}
		if old := s.Get("allOf"); old != nil {
			all.List = append(all.List, old.List...)
			one = one.But("allOf")
		}
		e, err := c.merged(path, located{one.And("allOf", all), path})
		if err != nil {
			return nil, false, err
		}
		out = append(out, e)
	}
	return out, true, nil
}

// reference resolves references. Other keywords of the schema apply as well.
func (c *compiler) reference(s *document.Value, path string) (automaton.Expr, bool, error) {
	for _, key := range document.Referring {
		r := s.Get(key)
		if r == nil {
			continue
		}
		target, err := c.resolve(key, r, path)
		if err != nil {
			return nil, false, err
		}
		rest := s.Without(key)
		if rest == nil {
			e, err := c.refer(target)
			return e, true, err
		}
		v, err := c.find(target)
		if err != nil {
			return nil, false, err
		}
		e, err := c.merged(path, located{v, target}, located{rest, path})
		return e, true, err
	}
	return nil, false, nil
}
