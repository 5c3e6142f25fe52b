package schema

import (
	"math/big"
	"slices"
	"strconv"

	"sandwich/runtime/grammar/internal/automaton"
	"sandwich/runtime/grammar/internal/schema/document"
)

// maxMerged is the largest number of schemas that one grammar may merge, and maxValues the
// largest total number of values in them. Merged schemas share their parts, so a few of them can
// have long texts.
const (
	maxMerged = 2000
	maxValues = 1 << 20
)

// merged returns the rule of the conjunction of schemas, which it merges into one schema.
func (c *compiler) merged(path string, all ...located) (automaton.Expr, error) {
	var sum *document.Value
	for _, x := range all {
		flat, err := c.flat(x, 0)
		if err != nil {
			return nil, err
		}
		if sum == nil {
			sum = flat
		} else if sum, err = c.merge(sum, flat, path); err != nil {
			return nil, err
		}
	}
	if c.extra == nil {
		c.extra, c.origin, c.alike = map[string]*document.Value{}, map[string]string{}, map[string]string{}
	}
	weight := sum.Weight(maxValues)
	c.Meter.Work(weight)
	if c.merges += weight; c.merges > maxValues {
		return nil, automaton.Refuse(document.Show(path), "the merged schemas have more than %d values", maxValues)
	}
	text := string(sum.Write(nil))
	c.Meter.Take(3*automaton.EntryCost + len(text) + len(path))
	if name, met := c.alike[text]; met {
		return c.refer(name) // a recursive schema that is merged with itself terminates here
	}
	if c.made++; c.made > maxMerged {
		return nil, automaton.Refuse(document.Show(path), "more than %d schemas are merged", maxMerged)
	}
	name := "!" + strconv.Itoa(c.made)
	c.extra[name], c.origin[name], c.alike[text] = sum, path, name
	return c.refer(name)
}

// merge returns the conjunction of two flat schemas.
func (c *compiler) merge(a, b *document.Value, path string) (*document.Value, error) {
	switch {
	case a.IsTrue() || b.IsFalse():
		return b, nil
	case b.IsTrue() || a.IsFalse():
		return a, nil
	case a.Kind != document.KindObject || b.Kind != document.KindObject:
		return nil, automaton.Refuse(document.Show(path), "a schema must be an object, true or false")
	}
	c.Meter.Take(automaton.ValueCost + 24*(len(a.Members)+len(b.Members)))
	c.Meter.Work(len(a.Members) * len(b.Members))
	out := &document.Value{Kind: document.KindObject}
	// Keywords that are merged together.
	apart := []string{"properties", "patternProperties", "additionalProperties"}
	places := mergePlaces(a, b)
	if places != nil {
		apart = append(apart, "prefixItems", "items", "additionalItems")
	}
	for _, m := range a.Members {
		if !slices.Contains(apart, m.Name) {
			out.Members = append(out.Members, m)
		}
	}
	var more []document.Member
	for _, m := range b.Members {
		if slices.Contains(apart, m.Name) {
			continue
		}
		i := slices.IndexFunc(out.Members, func(x document.Member) bool { return x.Name == m.Name })
		if i < 0 {
			out.Members = append(out.Members, m)
			continue
		}
		if (m.Name == "pattern" || m.Name == "format") && !m.Value.Equal(out.Members[i].Value) {
			more = append(more, m)
			continue
		}
		if m.Name == "const" && !m.Value.Equal(out.Members[i].Value) {
			return &document.Value{Kind: document.KindBool, Text: "false"}, nil
		}
		v, err := c.mergeKeyword(m.Name, out.Members[i].Value, m.Value, path)
		if err != nil {
			return nil, err
		}
		out.Members[i] = document.Member{Name: m.Name, Value: v}
	}
	members, err := c.mergeMembers(a, b, path)
	if err != nil {
		return nil, err
	}
	out.Members = slices.Concat(out.Members, members, places)
	return out.WithTexts(more), nil
}

// conflicting are the keywords whose different values cannot be merged into one schema. Unknown
// keywords do not affect validation.
var conflicting = slices.Concat(document.Referring, document.Conditional, []string{"allOf", "oneOf", "contains",
	"patternProperties",
	"prefixItems", "additionalItems", "unevaluatedProperties", "unevaluatedItems", "multipleOf", "pattern", "const"})

// mergeKeyword merges the values of a keyword that both schemas have.
func (c *compiler) mergeKeyword(key string, a, b *document.Value, path string) (*document.Value, error) {
	switch key {
	case "type":
		return mergeTypes(a, b), nil
	case "required":
		return &document.Value{Kind: document.KindArray, List: append(slices.Clone(a.List), b.List...)}, nil
	case "uniqueItems":
		return &document.Value{Kind: document.KindBool, Text: strconv.FormatBool(a.IsTrue() || b.IsTrue())}, nil
	case "items", "propertyNames":
		return document.Both(a, b), nil
	case "multipleOf":
		if m := commonMultiple(a, b); m != nil {
			return m, nil
		}
	case document.MoreTexts, document.NeverTexts, document.Remainders:
		return &document.Value{Kind: document.KindArray, List: append(slices.Clone(a.List), b.List...)}, nil
	case "minimum", "exclusiveMinimum", "minLength", "minItems", "minProperties",
		"minContains":
		return extreme(a, b, 1), nil
	case "maximum", "exclusiveMaximum", "maxLength", "maxItems", "maxProperties",
		"maxContains":
		return extreme(a, b, -1), nil
	case "enum":
		c.Meter.Take(2 * automaton.EntryCost * len(b.List))
		known := document.KeysOf(b.List)
		in := func(x *document.Value) bool { return !known[x.Key()] }
		return &document.Value{Kind: document.KindArray, List: slices.DeleteFunc(slices.Clone(a.List), in)}, nil
	case "anyOf":
		return c.crossed(a, b, path)
	}
	if !slices.Contains(conflicting, key) || a.Equal(b) {
		return a, nil
	}
	return nil, automaton.Refuse(document.Show(path)+"/"+document.EscapePointer(key),
		"two schemas that apply to the same value have different "+
			"values, which is not supported for this keyword")
}

func mergeTypes(a, b *document.Value) *document.Value {
	names := func(v *document.Value) (out []string) {
		if v.Kind == document.KindString {
			return []string{v.Text}
		}
		for _, x := range v.List {
			out = append(out, x.Text)
		}
		return out
	}
	out := &document.Value{Kind: document.KindArray}
	na, nb := names(a), names(b)
	for _, t := range document.TypeNames {
		inA := slices.Contains(na, t) || t == "integer" && slices.Contains(na, "number")
		inB := slices.Contains(nb, t) || t == "integer" && slices.Contains(nb, "number")
		if inA && inB {
			out.List = append(out.List, &document.Value{Kind: document.KindString, Text: t})
		}
	}
	if len(out.List) == 0 {
		return &document.Value{Kind: document.KindString, Text: document.NeverType}
	}
	return out
}

// crossed returns the pairwise conjunctions of the alternatives of both schemas, without those that
// are known to be unsatisfiable: chains of if and then that compare constants do not grow.
func (c *compiler) crossed(a, b *document.Value, path string) (*document.Value, error) {
	c.Meter.Work(16 * len(a.List) * len(b.List))
	if len(a.List)*len(b.List) > 16*maxMerged {
		return nil, automaton.Refuse(document.Show(path)+"/anyOf", "the combined alternatives are more than %d",
			maxMerged)
	}
	flatten := func(list []*document.Value) (out []*document.Value) {
		for _, x := range list {
			v, err := c.wide(located{x, path}, 0)
			if err != nil {
				v = &document.Value{Kind: document.KindBool, Text: "true"}
			}
			out = append(out, v)
		}
		return out
	}
	out := &document.Value{Kind: document.KindArray}
	flatA, flatB := flatten(a.List), flatten(b.List)
	compared := len(a.List) > 2 || len(b.List) > 2
	for i, x := range a.List {
		for j, y := range b.List {
			if compared && c.disjoint(flatA[i], flatB[j], 0) {
				continue
			}
			if out.List = append(out.List, document.Both(x, y)); len(out.List) > maxMerged {
				return nil, automaton.Refuse(document.Show(path)+"/anyOf", "the combined alternatives are more than %d",
					maxMerged)
			}
		}
	}
	if len(out.List) == 0 {
		out.List = append(out.List, &document.Value{Kind: document.KindBool, Text: "false"})
	}
	return out, nil
}

// commonMultiple returns the least common multiple of two decimal numbers, or nil for other values.
func commonMultiple(a, b *document.Value) *document.Value {
	x, ok1 := document.Rational(a)
	y, ok2 := document.Rational(b)
	if !ok1 || !ok2 || x.Sign() <= 0 || y.Sign() <= 0 {
		return nil
	}
	n, exact1 := x.FloatPrec()
	m, exact2 := y.FloatPrec()
	if n = max(n, m); !exact1 || !exact2 || n > automaton.FractionDigits {
		return nil
	}
	scale := new(big.Rat).SetInt(automaton.TenTo(n))
	of := lcm(new(big.Rat).Mul(x, scale).Num(), new(big.Rat).Mul(y, scale).Num())
	return &document.Value{Kind: document.KindNumber, Text: new(big.Rat).Quo(new(big.Rat).SetInt(of),
		scale).FloatString(n)}
}

func extreme(a, b *document.Value, sign int) *document.Value {
	switch {
	case document.Outermost(a, sign > 0):
		return b
	case document.Outermost(b, sign > 0):
		return a
	}
	x, ok1 := document.Rational(a)
	y, ok2 := document.Rational(b)
	if ok1 && (!ok2 || (*big.Rat).Cmp(x, y)*sign < 0) {
		return b // keep an invalid value, so that it is refused later
	}
	return a
}
