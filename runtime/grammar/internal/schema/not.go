package schema

import (
	"math/big"
	"slices"
	"strconv"

	"sandwich/runtime/grammar/internal/automaton"
	"sandwich/runtime/grammar/internal/schema/document"
)

// alternatives returns what the conditional keywords of a schema require, as schemas that apply in
// addition to the rest.
func (c *compiler) alternatives(s *document.Value, path string, depth int) (all []*document.Value, err error) {
	choice := func(of ...*document.Value) {
		all = append(all, &document.Value{Kind: document.KindObject, Members: []document.Member{{Name: "anyOf",
			Value: &document.Value{Kind: document.KindArray, List: of}}}})
	}
	if n := s.Get("not"); n != nil {
		x, err := c.negated(located{n, path + "/not"}, depth)
		if err != nil {
			return nil, err
		}
		all = append(all, x)
	}
	if cond := s.Get("if"); cond != nil && (s.Get("then") != nil || s.Get("else") != nil) {
		not, err := c.negated(located{cond, path + "/if"}, depth)
		if err != nil {
			return nil, err
		}
		choice(document.BothOf(cond, s.Get("then")), document.BothOf(not, s.Get("else")))
	}
	for _, key := range []string{"dependentRequired", "dependentSchemas", "dependencies"} {
		list := s.Get(key)
		if list == nil {
			continue
		}
		if list.Kind != document.KindObject {
			return nil, automaton.Refuse(document.Show(path)+"/"+key, "the value must be an object")
		}
		for _, m := range list.Members {
			then := m.Value
			if then.Kind == document.KindArray {
				then = document.OneMember("required", then)
			} else if key == "dependentRequired" {
				return nil, automaton.Refuse(document.Show(path)+"/"+key+"/"+document.EscapePointer(m.Name),
					"the value must be a list of names")
			}
			choice(document.WithoutMember(m.Name), then)
		}
	}
	return all, nil
}

// maxDenied is the largest number of schemas of a grammar that are negated. Further ones are
// ignored.
const maxDenied = 1 << 10

// negated returns a schema that allows only values that another one does not allow, but not
// necessarily all of them. It returns an error if it finds none. It must be applied to the original
// schema, not to a rewritten one: negating a subset would allow invalid values.
func (c *compiler) negated(x located, depth int) (*document.Value, error) {
	switch s := x.schema; {
	case s.IsTrue():
		return &document.Value{Kind: document.KindBool, Text: "false"}, nil
	case s.IsFalse():
		return &document.Value{Kind: document.KindBool, Text: "true"}, nil
	case s.Kind != document.KindObject:
		return nil, automaton.Refuse(document.Show(x.path), "a schema must be an object, true or false")
	case depth > 64 || c.denied >= maxDenied:
		c.Partly = true
		return nil, automaton.Refuse(document.Show(x.path), "the negated schema has too many parts")
	}
	c.Meter.Take(automaton.ValueCost)
	c.denied++
	var out []*document.Value
	asserts := false
	for _, m := range x.schema.Members {
		if slices.Contains(document.Describing, m.Name) {
			continue
		}
		asserts = true
		some, err := c.negatedMember(x, m, depth)
		if err != nil {
			c.Partly = true // the result is a smaller subset, but still correct
			continue
		}
		out = append(out, some...)
	}
	switch {
	case !asserts:
		return &document.Value{Kind: document.KindBool, Text: "false"}, nil
	case len(out) == 0:
		return nil, automaton.Refuse(document.Show(x.path), "negating this schema is not supported")
	}
	return document.OneMember("anyOf", &document.Value{Kind: document.KindArray, List: out}), nil
}

// negatedMember returns schemas of values that a keyword of a schema does not allow.
func (c *compiler) negatedMember(x located, m document.Member, depth int) (out []*document.Value, err error) {
	not := func(v *document.Value, names ...string) {
		at := x.path
		for _, n := range names {
			at += "/" + document.EscapePointer(n)
		}
		some, failed := c.negated(located{v, at}, depth+1)
		if out = append(out, some); failed != nil {
			out, c.Partly = out[:len(out)-1], true
		}
	}
	switch m.Name {
	case "$ref", "$dynamicRef", "$recursiveRef":
		target, err := c.resolve(m.Name, m.Value, x.path)
		if err != nil {
			return nil, err
		}
		v, err := c.find(target)
		if err != nil {
			return nil, err
		}
		some, err := c.negated(located{v, target}, depth+1)
		return []*document.Value{some}, err
	case "allOf":
		for i, y := range m.Value.List {
			not(y, "allOf", strconv.Itoa(i))
		}
	case "not":
		out = append(out, m.Value)
	case "if":
		if then := x.schema.Get("then"); then != nil {
			if not(then, "then"); len(out) > 0 {
				out[0] = document.BothOf(m.Value, out[0])
			}
		}
		if other := x.schema.Get("else"); other != nil {
			some, err := c.negated(located{m.Value, x.path + "/if"}, depth+1)
			last := len(out)
			if not(other, "else"); err == nil && len(out) > last {
				out[last] = document.BothOf(some, out[last])
			} else {
				out, c.Partly = out[:last], true
			}
		}
	case "dependentRequired", "dependentSchemas", "dependencies":
		c.Partly = true
	case "contains":
		out = negatedContains(x.schema)
	case "items":
		if m.Value.Kind == document.KindArray || x.schema.Get("prefixItems") != nil {
			c.Partly = true
			break
		}
		other, err := c.negated(located{m.Value, x.path + "/items"}, depth+1)
		if err != nil {
			return nil, err
		}
		out = append(out, document.OfType("array").And("contains", other).And("minContains",
			&document.Value{Kind: document.KindNumber,
				Text: "1"}))
	case "multipleOf":
		c.Partly = true // numbers with a fraction are left out
		if r, ok := document.Rational(m.Value); ok && r.IsInt() {
			rule := &document.Value{Kind: document.KindArray, List: []*document.Value{m.Value,
				{Kind: document.KindNumber, Text: "0"}, {Kind: document.KindBool,
					Text: "false"}}}
			out = append(out, document.OfType("integer").And(document.Remainders,
				&document.Value{Kind: document.KindArray, List: []*document.Value{rule}}))
		}
	default:
		return c.negatedKeyword(m, x.path, depth)
	}
	return out, nil
}

// negatedKeyword is negatedMember for keywords that do not depend on others.
func (c *compiler) negatedKeyword(m document.Member, path string, depth int) (out []*document.Value, err error) {
	v := m.Value
	switch m.Name {
	case "type":
		if rest := otherTypes(v); len(rest) > 0 {
			out = append(out, document.OfType(rest...))
		}
	case "const":
		return negatedConstants([]*document.Value{v}), nil
	case "enum":
		return negatedConstants(v.List), nil
	case "minimum":
		out = append(out, document.OfType("number").And("exclusiveMaximum", v))
	case "maximum":
		out = append(out, document.OfType("number").And("exclusiveMinimum", v))
	case "exclusiveMinimum":
		out = append(out, document.OfType("number").And("maximum", v))
	case "exclusiveMaximum":
		out = append(out, document.OfType("number").And("minimum", v))
	case "minLength":
		out = c.otherCounts(v, "string", "maxLength", -1)
	case "maxLength":
		out = c.otherCounts(v, "string", "minLength", 1)
	case "minItems":
		out = c.otherCounts(v, "array", "maxItems", -1)
	case "maxItems":
		out = c.otherCounts(v, "array", "minItems", 1)
	case "minProperties":
		out = c.otherCounts(v, "object", "maxProperties", -1)
	case "maxProperties":
		out = c.otherCounts(v, "object", "minProperties", 1)
	case "pattern":
		out = append(out, document.OfType("string").And(document.NeverTexts, &document.Value{Kind: document.KindArray,
			List: []*document.Value{v}}))
	case "format":
		if wide := document.WideFormats[v.Text]; wide != "" && c.told {
			out = append(out, document.OfType("string").And(document.NeverTexts,
				&document.Value{Kind: document.KindArray, List: document.Texted([]string{wide})}))
			break
		}
		c.Partly = true
	case "required":
		for _, n := range v.List {
			out = append(out, document.WithoutMember(n.Text).And("type", document.OfType("object").Members[0].Value))
		}
	case "properties":
		for _, p := range v.Members {
			x, err := c.negated(located{p.Value, path + "/properties/" + document.EscapePointer(p.Name)}, depth+1)
			if err != nil {
				c.Partly = true // the result is a smaller subset, but still correct
				continue
			}
			out = append(out, document.OfType("object").And("required", &document.Value{Kind: document.KindArray,
				List: document.Texted([]string{p.Name})}).
				And("properties", document.OneMember(p.Name, x)))
		}
	case "anyOf":
		all := &document.Value{Kind: document.KindArray}
		for i, y := range v.List {
			x, err := c.negated(located{y, path + "/anyOf/" + strconv.Itoa(i)}, depth+1)
			if err != nil {
				return nil, err
			}
			all.List = append(all.List, x)
		}
		out = append(out, document.OneMember("allOf", all))
	case "minContains", "maxContains", "then", "else": // with contains, with if
	default:
		c.Partly = true
	}
	return out, nil
}

// otherCounts returns the values of a type whose length is limited by a keyword to the count v plus
// a shift.
func (c *compiler) otherCounts(v *document.Value, kind, key string, shift int64) (out []*document.Value) {
	n, ok := document.Rational(v)
	if !ok || !n.IsInt() || n.Num().BitLen() > 62 {
		c.Partly = true
		return nil
	}
	if n := n.Num().Int64() + shift; n >= 0 {
		out = append(out, document.OfType(kind).And(key, &document.Value{Kind: document.KindNumber,
			Text: strconv.FormatInt(n, 10)}))
	}
	return out
}

// otherTypes returns the types that a type keyword does not list. Integers count as numbers.
func otherTypes(v *document.Value) []string {
	named := v.List
	if v.Kind == document.KindString {
		named = []*document.Value{v}
	}
	var rest []string
	for _, t := range document.TypeNames {
		if !slices.ContainsFunc(named, func(x *document.Value) bool {
			return x.Text == t || t == "number" && x.Text == "integer" || t == "integer" && x.Text == "number"
		}) {
			rest = append(rest, t)
		}
	}
	return rest
}

// negatedConstants returns other types than those of the constants, other strings, the other
// boolean, and the numbers below and above all constants.
func negatedConstants(list []*document.Value) (out []*document.Value) {
	var rest []string
	never := &document.Value{Kind: document.KindArray}
	var lo, hi *big.Rat
	truths := map[string]bool{}
	numbers := true
	for _, x := range list {
		switch x.Kind {
		case document.KindString:
			never.List = append(never.List, &document.Value{Kind: document.KindString, Text: document.Exactly(x.Text)})
		case document.KindBool:
			truths[x.Text] = true
		case document.KindNumber:
			n, ok := document.Rational(x)
			if numbers = numbers && ok; !ok {
				continue
			}
			if lo == nil || n.Cmp(lo) < 0 {
				lo = n
			}
			if hi == nil || n.Cmp(hi) > 0 {
				hi = n
			}
		}
	}
	has := func(kind byte) bool {
		return slices.ContainsFunc(list, func(x *document.Value) bool { return x.Kind == kind })
	}
	for _, t := range []struct {
		name string
		kind byte
	}{{"object", document.KindObject}, {"array", document.KindArray}, {"null", document.KindNull}, {"number",
		document.KindNumber}, {"string", document.KindString},
		{"boolean", document.KindBool}} {
		if !has(t.kind) {
			rest = append(rest, t.name)
		}
	}
	if len(rest) > 0 {
		out = append(out, document.OfType(rest...))
	}
	if len(never.List) > 0 && len(never.List) <= 16 {
		out = append(out, document.OfType("string").And(document.NeverTexts, never))
	}
	if len(truths) == 1 {
		other := "true"
		if truths["true"] {
			other = "false"
		}
		out = append(out, document.OneMember("enum", &document.Value{Kind: document.KindArray,
			List: []*document.Value{{Kind: document.KindBool, Text: other}}}))
	}
	if numbers && lo != nil {
		number := func(n *big.Rat) *document.Value {
			return &document.Value{Kind: document.KindNumber,
				Text: n.FloatString(automaton.BoundDigits)}
		}
		out = append(out, document.OfType("number").And("exclusiveMaximum", number(lo)),
			document.OfType("number").And("exclusiveMinimum", number(hi)))
	}
	return out
}

// negatedContains returns the arrays with too few and with too many items that match contains.
func negatedContains(s *document.Value) (out []*document.Value) {
	number := func(n int) *document.Value { return &document.Value{Kind: document.KindNumber, Text: strconv.Itoa(n)} }
	arrays := document.OfType("array").And("contains", s.Get("contains"))
	if few, err := document.Count(s, "", "minContains", 1); err == nil && few > 0 {
		out = append(out, arrays.And("minContains", number(0)).And("maxContains", number(few-1)))
	}
	if many, err := document.Count(s, "", "maxContains", -1); err == nil && many >= 0 {
		out = append(out, arrays.And("minContains", number(many+1)))
	}
	return out
}
