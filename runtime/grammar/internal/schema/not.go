package schema

import (
	"math/big"
	"slices"
	"strconv"

	"sandwich/runtime/grammar/internal/automaton"
)

// conditional are the keywords that depend on whether something else holds. They are rewritten into
// alternatives, which are merged with the rest of their schema.
var conditional = []string{"not", "if", "then", "else", "dependentRequired", "dependentSchemas", "dependencies"}

// conditions handles schemas with such keywords.
func (c *compiler) conditions(s *value, path string) (automaton.Expr, bool, error) {
	if !slices.ContainsFunc(conditional, func(k string) bool { return s.get(k) != nil }) {
		return nil, false, nil
	}
	e, err := c.merged(path, located{s, path})
	return e, true, err
}

// alternatives returns what the conditional keywords of a schema require, as schemas that apply in
// addition to the rest.
func (c *compiler) alternatives(s *value, path string, depth int) (all []*value, err error) {
	choice := func(of ...*value) {
		all = append(all, &value{kind: kindObject, members: []member{{"anyOf", &value{kind: kindArray, list: of}}}})
	}
	if n := s.get("not"); n != nil {
		x, err := c.negated(located{n, path + "/not"}, depth)
		if err != nil {
			return nil, err
		}
		all = append(all, x)
	}
	if cond := s.get("if"); cond != nil && (s.get("then") != nil || s.get("else") != nil) {
		not, err := c.negated(located{cond, path + "/if"}, depth)
		if err != nil {
			return nil, err
		}
		choice(bothOf(cond, s.get("then")), bothOf(not, s.get("else")))
	}
	for _, key := range []string{"dependentRequired", "dependentSchemas", "dependencies"} {
		list := s.get(key)
		if list == nil {
			continue
		}
		if list.kind != kindObject {
			return nil, automaton.Refuse(show(path)+"/"+key, "the value must be an object")
		}
		for _, m := range list.members {
			then := m.value
			if then.kind == kindArray {
				then = object1("required", then)
			} else if key == "dependentRequired" {
				return nil, automaton.Refuse(show(path)+"/"+key+"/"+escapePointer(m.name),
					"the value must be a list of names")
			}
			choice(without1(m.name), then)
		}
	}
	return all, nil
}

// bothOf returns the conjunction of two schemas; b may be nil.
func bothOf(a, b *value) *value {
	if x := both(a, b); x != nil {
		return x
	}
	return &value{kind: kindBool, text: "true"}
}

func object1(key string, v *value) *value {
	return &value{kind: kindObject, members: []member{{key, v}}}
}

// without1 returns the schema of values without a property of the given name.
func without1(name string) *value {
	return object1("properties", object1(name, &value{kind: kindBool, text: "false"}))
}

func ofType(names ...string) *value {
	return object1("type", &value{kind: kindArray, list: texted(names)})
}

// and returns a schema with one more keyword.
func (v *value) and(key string, x *value) *value {
	return &value{kind: kindObject, members: append(slices.Clone(v.members), member{key, x})}
}

// mostDenied is the largest number of schemas of a grammar that are negated. Further ones are
// ignored.
const mostDenied = 1 << 10

// negated returns a schema that allows only values that another one does not allow, but not
// necessarily all of them. It returns an error if it finds none. It must be applied to the original
// schema, not to a rewritten one: negating a subset would allow invalid values.
func (c *compiler) negated(x located, depth int) (*value, error) {
	switch s := x.schema; {
	case s.isTrue():
		return &value{kind: kindBool, text: "false"}, nil
	case s.isFalse():
		return &value{kind: kindBool, text: "true"}, nil
	case s.kind != kindObject:
		return nil, automaton.Refuse(show(x.path), "a schema must be an object, true or false")
	case depth > 64 || c.denied >= mostDenied:
		c.Partly = true
		return nil, automaton.Refuse(show(x.path), "the negated schema has too many parts")
	}
	c.Meter.Take(automaton.ValueCost)
	c.denied++
	var out []*value
	asserts := false
	for _, m := range x.schema.members {
		if slices.Contains(describing, m.name) {
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
		return &value{kind: kindBool, text: "false"}, nil
	case len(out) == 0:
		return nil, automaton.Refuse(show(x.path), "negating this schema is not supported")
	}
	return object1("anyOf", &value{kind: kindArray, list: out}), nil
}

// negatedMember returns schemas of values that a keyword of a schema does not allow.
func (c *compiler) negatedMember(x located, m member, depth int) (out []*value, err error) {
	not := func(v *value, names ...string) {
		at := x.path
		for _, n := range names {
			at += "/" + escapePointer(n)
		}
		some, failed := c.negated(located{v, at}, depth+1)
		if out = append(out, some); failed != nil {
			out, c.Partly = out[:len(out)-1], true
		}
	}
	switch m.name {
	case "$ref", "$dynamicRef", "$recursiveRef":
		target, err := c.resolve(m.name, m.value, x.path)
		if err != nil {
			return nil, err
		}
		v, err := c.find(target)
		if err != nil {
			return nil, err
		}
		some, err := c.negated(located{v, target}, depth+1)
		return []*value{some}, err
	case "allOf":
		for i, y := range m.value.list {
			not(y, "allOf", itoa(i))
		}
	case "not":
		out = append(out, m.value)
	case "if":
		if then := x.schema.get("then"); then != nil {
			if not(then, "then"); len(out) > 0 {
				out[0] = bothOf(m.value, out[0])
			}
		}
		if other := x.schema.get("else"); other != nil {
			some, err := c.negated(located{m.value, x.path + "/if"}, depth+1)
			last := len(out)
			if not(other, "else"); err == nil && len(out) > last {
				out[last] = bothOf(some, out[last])
			} else {
				out, c.Partly = out[:last], true
			}
		}
	case "dependentRequired", "dependentSchemas", "dependencies":
		c.Partly = true
	case "contains":
		out = negatedContains(x.schema)
	case "items":
		if m.value.kind == kindArray || x.schema.get("prefixItems") != nil {
			c.Partly = true
			break
		}
		other, err := c.negated(located{m.value, x.path + "/items"}, depth+1)
		if err != nil {
			return nil, err
		}
		out = append(out, ofType("array").and("contains", other).and("minContains", &value{kind: kindNumber,
			text: "1"}))
	case "multipleOf":
		c.Partly = true // numbers with a fraction are left out
		if r, ok := rational(m.value); ok && r.IsInt() {
			rule := &value{kind: kindArray, list: []*value{m.value, {kind: kindNumber, text: "0"}, {kind: kindBool,
				text: "false"}}}
			out = append(out, ofType("integer").and(remainders, &value{kind: kindArray, list: []*value{rule}}))
		}
	default:
		return c.negatedKeyword(m, x.path, depth)
	}
	return out, nil
}

// negatedKeyword is negatedMember for keywords that do not depend on others.
func (c *compiler) negatedKeyword(m member, path string, depth int) (out []*value, err error) {
	v := m.value
	integer := func(kind, key string, shift int64) {
		if n, ok := rational(v); ok && n.IsInt() {
			if n := n.Num().Int64() + shift; n >= 0 {
				out = append(out, ofType(kind).and(key, &value{kind: kindNumber, text: strconv.FormatInt(n, 10)}))
			}
		}
	}
	switch m.name {
	case "type":
		if rest := otherTypes(v); len(rest) > 0 {
			out = append(out, ofType(rest...))
		}
	case "const":
		return negatedConstants([]*value{v}), nil
	case "enum":
		return negatedConstants(v.list), nil
	case "minimum":
		out = append(out, ofType("number").and("exclusiveMaximum", v))
	case "maximum":
		out = append(out, ofType("number").and("exclusiveMinimum", v))
	case "exclusiveMinimum":
		out = append(out, ofType("number").and("maximum", v))
	case "exclusiveMaximum":
		out = append(out, ofType("number").and("minimum", v))
	case "minLength":
		integer("string", "maxLength", -1)
	case "maxLength":
		integer("string", "minLength", 1)
	case "minItems":
		integer("array", "maxItems", -1)
	case "maxItems":
		integer("array", "minItems", 1)
	case "minProperties":
		integer("object", "maxProperties", -1)
	case "maxProperties":
		integer("object", "minProperties", 1)
	case "pattern":
		out = append(out, ofType("string").and(neverTexts, &value{kind: kindArray, list: []*value{v}}))
	case "format":
		if wide := wideFormats[v.text]; wide != "" && c.told {
			out = append(out, ofType("string").and(neverTexts, &value{kind: kindArray, list: texted([]string{wide})}))
			break
		}
		c.Partly = true
	case "required":
		for _, n := range v.list {
			out = append(out, without1(n.text).and("type", ofType("object").members[0].value))
		}
	case "properties":
		for _, p := range v.members {
			x, err := c.negated(located{p.value, path + "/properties/" + escapePointer(p.name)}, depth+1)
			if err != nil {
				c.Partly = true // the result is a smaller subset, but still correct
				continue
			}
			out = append(out, ofType("object").and("required", &value{kind: kindArray, list: texted([]string{p.name})}).
				and("properties", object1(p.name, x)))
		}
	case "anyOf":
		all := &value{kind: kindArray}
		for i, y := range v.list {
			x, err := c.negated(located{y, path + "/anyOf/" + itoa(i)}, depth+1)
			if err != nil {
				return nil, err
			}
			all.list = append(all.list, x)
		}
		out = append(out, object1("allOf", all))
	case "minContains", "maxContains", "then", "else": // with contains, with if
	default:
		c.Partly = true
	}
	return out, nil
}

// otherTypes returns the types that a type keyword does not list. Integers count as numbers.
func otherTypes(v *value) []string {
	named := v.list
	if v.kind == kindString {
		named = []*value{v}
	}
	var rest []string
	for _, t := range typeNames {
		if !slices.ContainsFunc(named, func(x *value) bool {
			return x.text == t || t == "number" && x.text == "integer" || t == "integer" && x.text == "number"
		}) {
			rest = append(rest, t)
		}
	}
	return rest
}

// negatedConstants returns other types than those of the constants, other strings, the other
// boolean, and the numbers below and above all constants.
func negatedConstants(list []*value) (out []*value) {
	var rest []string
	never := &value{kind: kindArray}
	var least, most *big.Rat
	truths := map[string]bool{}
	numbers := true
	for _, x := range list {
		switch x.kind {
		case kindString:
			never.list = append(never.list, &value{kind: kindString, text: exactly(x.text)})
		case kindBool:
			truths[x.text] = true
		case kindNumber:
			n, ok := rational(x)
			if numbers = numbers && ok; !ok {
				continue
			}
			if least == nil || n.Cmp(least) < 0 {
				least = n
			}
			if most == nil || n.Cmp(most) > 0 {
				most = n
			}
		}
	}
	has := func(kind byte) bool { return slices.ContainsFunc(list, func(x *value) bool { return x.kind == kind }) }
	for _, t := range []struct {
		name string
		kind byte
	}{{"object", kindObject}, {"array", kindArray}, {"null", kindNull}, {"number", kindNumber}, {"string", kindString},
		{"boolean", kindBool}} {
		if !has(t.kind) {
			rest = append(rest, t.name)
		}
	}
	if len(rest) > 0 {
		out = append(out, ofType(rest...))
	}
	if len(never.list) > 0 && len(never.list) <= 16 {
		out = append(out, ofType("string").and(neverTexts, never))
	}
	if len(truths) == 1 {
		other := map[bool]string{true: "false", false: "true"}[truths["true"]]
		out = append(out, object1("enum", &value{kind: kindArray, list: []*value{{kind: kindBool, text: other}}}))
	}
	if numbers && least != nil {
		number := func(n *big.Rat) *value {
			return &value{kind: kindNumber,
				text: n.FloatString(automaton.BoundDigits)}
		}
		out = append(out, ofType("number").and("exclusiveMaximum", number(least)),
			ofType("number").and("exclusiveMinimum", number(most)))
	}
	return out
}
