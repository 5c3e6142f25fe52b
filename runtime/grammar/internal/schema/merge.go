package schema

import (
	"math/big"
	"slices"
	"strconv"
	"strings"

	"sandwich/runtime/grammar/internal/automaton"
)

// located is a schema and its path.
type located struct {
	schema *value
	path   string
}

// mostMerged is the largest number of schemas that one grammar may merge, mostValues the largest
// total number of values in them, and mostFlat the largest number of subschemas visited for
// merging. Merged schemas share their parts, so a few of them can have long texts.
const (
	mostMerged = 2000
	mostValues = 1 << 20
	mostFlat   = 1 << 16
)

// weight returns the number of values in a value. It stops soon after most.
func (v *value) weight(most int) int {
	n := 1 + len(v.text)/64
	for i := 0; i < len(v.list) && n <= most; i++ {
		n += v.list[i].weight(most - n)
	}
	for i := 0; i < len(v.members) && n <= most; i++ {
		n += v.members[i].value.weight(most - n)
	}
	return n
}

// merged returns the rule of the conjunction of schemas, which it merges into one schema.
func (c *compiler) merged(path string, all ...located) (automaton.Expr, error) {
	var sum *value
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
		c.extra, c.origin, c.alike = map[string]*value{}, map[string]string{}, map[string]string{}
	}
	weight := sum.weight(mostValues)
	c.Meter.Work(weight)
	if c.merges += weight; c.merges > mostValues {
		return nil, automaton.Refuse(show(path), "the merged schemas have more than %d values", mostValues)
	}
	text := string(sum.write(nil))
	c.Meter.Take(3*automaton.EntryCost + len(text) + len(path))
	if name, met := c.alike[text]; met {
		return c.refer(name) // a recursive schema that is merged with itself terminates here
	}
	if c.made++; c.made > mostMerged {
		return nil, automaton.Refuse(show(path), "more than %d schemas are merged", mostMerged)
	}
	name := "!" + itoa(c.made)
	c.extra[name], c.origin[name], c.alike[text] = sum, path, name
	return c.refer(name)
}

// merge returns the conjunction of two flat schemas.
func (c *compiler) merge(a, b *value, path string) (*value, error) {
	switch {
	case a.isTrue() || b.isFalse():
		return b, nil
	case b.isTrue() || a.isFalse():
		return a, nil
	case a.kind != kindObject || b.kind != kindObject:
		return nil, automaton.Refuse(show(path), "a schema must be an object, true or false")
	}
	c.Meter.Take(automaton.ValueCost + 24*(len(a.members)+len(b.members)))
	c.Meter.Work(len(a.members) * len(b.members))
	out := &value{kind: kindObject}
	// Keywords that are merged together.
	apart := []string{"properties", "patternProperties", "additionalProperties"}
	places := mergePlaces(a, b)
	if places != nil {
		apart = append(apart, "prefixItems", "items", "additionalItems")
	}
	for _, m := range a.members {
		if !slices.Contains(apart, m.name) {
			out.members = append(out.members, m)
		}
	}
	var more []member
	for _, m := range b.members {
		if slices.Contains(apart, m.name) {
			continue
		}
		i := slices.IndexFunc(out.members, func(x member) bool { return x.name == m.name })
		if i < 0 {
			out.members = append(out.members, m)
			continue
		}
		if (m.name == "pattern" || m.name == "format") && !m.value.equal(out.members[i].value) {
			more = append(more, m)
			continue
		}
		if m.name == "const" && !m.value.equal(out.members[i].value) {
			return &value{kind: kindBool, text: "false"}, nil
		}
		v, err := c.mergeKeyword(m.name, out.members[i].value, m.value, path)
		if err != nil {
			return nil, err
		}
		out.members[i] = member{m.name, v}
	}
	members, err := c.mergeMembers(a, b, path)
	if err != nil {
		return nil, err
	}
	out.members = slices.Concat(out.members, members, places)
	return out.withTexts(more), nil
}

// withTexts adds patterns and formats to those of a schema.
func (v *value) withTexts(more []member) *value {
	list := &value{kind: kindArray}
	if old := v.get(moreTexts); old != nil {
		list.list = slices.Clone(old.list)
	}
	for _, m := range more {
		x := m.value
		if m.name == "format" {
			x = object1("format", x)
		}
		if expression(x, formats) != "" {
			list.list = append(list.list, x)
		}
	}
	if len(more) == 0 || len(list.list) == 0 {
		return v
	}
	out := &value{kind: kindObject}
	for _, m := range v.members {
		if m.name != moreTexts {
			out.members = append(out.members, m)
		}
	}
	out.members = append(out.members, member{moreTexts, list})
	return out
}

// both returns the allOf of two schemas; nil allows everything. It drops equal parts, so that
// merging recursive schemas terminates.
func both(a, b *value) *value {
	if b == nil || b.isTrue() || a == b {
		return a
	}
	if a == nil || a.isTrue() {
		return b
	}
	list := slices.Clone(together(a))
	for _, x := range together(b) {
		if !slices.ContainsFunc(list, func(y *value) bool { return x == y || x.sameRef(y) }) {
			list = append(list, x)
		}
	}
	if len(list) == 1 {
		return list[0]
	}
	return object1("allOf", &value{kind: kindArray, list: list})
}

// together returns the parts of a schema that consists of allOf only, or else the schema.
func together(v *value) []*value {
	if len(v.members) == 1 && v.members[0].name == "allOf" && len(v.members[0].value.list) > 0 {
		return v.members[0].value.list
	}
	return []*value{v}
}

// sameRef reports whether both schemas consist of the same $ref only.
func (v *value) sameRef(w *value) bool {
	return len(v.members) == 1 && len(w.members) == 1 && v.members[0].name == "$ref" &&
		w.members[0].name == "$ref" && v.members[0].value.text == w.members[0].value.text
}

// conflicting are the keywords whose different values cannot be merged into one schema. Unknown
// keywords do not affect validation.
var conflicting = slices.Concat(referring, conditional, []string{"allOf", "oneOf", "contains", "patternProperties",
	"prefixItems", "additionalItems", "unevaluatedProperties", "unevaluatedItems", "multipleOf", "pattern", "const"})

// mergeKeyword merges the values of a keyword that both schemas have.
func (c *compiler) mergeKeyword(key string, a, b *value, path string) (*value, error) {
	switch key {
	case "type":
		return mergeTypes(a, b), nil
	case "required":
		return &value{kind: kindArray, list: append(slices.Clone(a.list), b.list...)}, nil
	case "uniqueItems":
		return &value{kind: kindBool, text: strconv.FormatBool(a.isTrue() || b.isTrue())}, nil
	case "items", "propertyNames":
		return both(a, b), nil
	case "multipleOf":
		if m := commonMultiple(a, b); m != nil {
			return m, nil
		}
	case moreTexts, neverTexts, remainders:
		return &value{kind: kindArray, list: append(slices.Clone(a.list), b.list...)}, nil
	case "minimum", "exclusiveMinimum", "minLength", "minItems", "minProperties",
		"minContains":
		return extreme(a, b, 1), nil
	case "maximum", "exclusiveMaximum", "maxLength", "maxItems", "maxProperties",
		"maxContains":
		return extreme(a, b, -1), nil
	case "enum":
		c.Meter.Take(2 * automaton.EntryCost * len(b.list))
		known := keysOf(b.list)
		in := func(x *value) bool { return !known[x.key()] }
		return &value{kind: kindArray, list: slices.DeleteFunc(slices.Clone(a.list), in)}, nil
	case "anyOf":
		return c.crossed(a, b, path)
	}
	if !slices.Contains(conflicting, key) || a.equal(b) {
		return a, nil
	}
	return nil, automaton.Refuse(show(path)+"/"+escapePointer(key),
		"two schemas that apply to the same value have different "+
			"values, which is not supported for this keyword")
}

func mergeTypes(a, b *value) *value {
	names := func(v *value) (out []string) {
		if v.kind == kindString {
			return []string{v.text}
		}
		for _, x := range v.list {
			out = append(out, x.text)
		}
		return out
	}
	out := &value{kind: kindArray}
	na, nb := names(a), names(b)
	for _, t := range typeNames {
		inA := slices.Contains(na, t) || t == "integer" && slices.Contains(na, "number")
		inB := slices.Contains(nb, t) || t == "integer" && slices.Contains(nb, "number")
		if inA && inB {
			out.list = append(out.list, &value{kind: kindString, text: t})
		}
	}
	if len(out.list) == 0 {
		return &value{kind: kindString, text: neverType}
	}
	return out
}

// crossed returns the pairwise conjunctions of the alternatives of both schemas, without those that
// are known to be unsatisfiable: chains of if and then that compare constants do not grow.
func (c *compiler) crossed(a, b *value, path string) (*value, error) {
	c.Meter.Work(16 * len(a.list) * len(b.list))
	if len(a.list)*len(b.list) > 16*mostMerged {
		return nil, automaton.Refuse(show(path)+"/anyOf", "the combined alternatives are more than %d", mostMerged)
	}
	flatten := func(list []*value) (out []*value) {
		for _, x := range list {
			v, err := c.wide(located{x, path}, 0)
			if err != nil {
				v = &value{kind: kindBool, text: "true"}
			}
			out = append(out, v)
		}
		return out
	}
	out := &value{kind: kindArray}
	flatA, flatB := flatten(a.list), flatten(b.list)
	compared := len(a.list) > 2 || len(b.list) > 2
	for i, x := range a.list {
		for j, y := range b.list {
			if compared && c.disjoint(flatA[i], flatB[j], 0) {
				continue
			}
			if out.list = append(out.list, both(x, y)); len(out.list) > mostMerged {
				return nil, automaton.Refuse(show(path)+"/anyOf", "the combined alternatives are more than %d",
					mostMerged)
			}
		}
	}
	if len(out.list) == 0 {
		out.list = append(out.list, &value{kind: kindBool, text: "false"})
	}
	return out, nil
}

// commonMultiple returns the least common multiple of two decimal numbers, or nil for other values.
func commonMultiple(a, b *value) *value {
	x, ok1 := rational(a)
	y, ok2 := rational(b)
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
	return &value{kind: kindNumber, text: new(big.Rat).Quo(new(big.Rat).SetInt(of), scale).FloatString(n)}
}

// neverType is the type of an unsatisfiable schema.
const neverType = "(none)"

func extreme(a, b *value, sign int) *value {
	switch {
	case outermost(a, sign > 0):
		return b
	case outermost(b, sign > 0):
		return a
	}
	x, ok1 := rational(a)
	y, ok2 := rational(b)
	if ok1 && (!ok2 || (*big.Rat).Cmp(x, y)*sign < 0) {
		return b // keep an invalid value, so that it is refused later
	}
	return a
}

// where replaces the path of a merged schema in an error by that of the original schema.
func (c *compiler) where(err error) error {
	if e, ok := err.(*automaton.Error); ok {
		visible := *e
		visible.Path = c.visible(e.Path)
		return &visible
	}
	return err
}

// mostShown is the number of nested merged schemas that visible resolves exactly. Beyond it the
// path is that of an outer schema.
const mostShown = 16

// visible returns the path in the original schema for the path of a merged one.
func (c *compiler) visible(path string) string {
	for hops := 0; strings.HasPrefix(path, "#!"); hops++ {
		name, rest, below := strings.Cut(path[1:], "/")
		if path = show(c.origin[name]); below && hops < mostShown {
			path += "/" + rest
		}
	}
	return path
}
