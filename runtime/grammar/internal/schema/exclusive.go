package schema

import (
	"slices"

	"sandwich/runtime/grammar/internal/automaton"
)

// mostExclusive is the largest number of overlapping schemas that are excluded from a schema of a
// oneOf.
const mostExclusive = 8

// exclusive returns an expression for a oneOf whose schemas overlap. For each type it excludes from
// a schema what the overlapping ones allow. If that is not supported, it drops types that the
// schema does not mention. flat and conflicts are the results of overlapping.
func (c *compiler) exclusive(list, rest *value, path string, flat []*value, conflicts [][]int) (automaton.Expr, error) {
	var out automaton.Choice
	whole := typeNames
	if rest != nil {
		if v, err := c.wide(located{rest, path}, 0); err == nil && v.kind == kindObject {
			whole = c.typesOf(v, 0)
		}
	}
	for i, x := range list.list {
		at := located{x, path + "/oneOf/" + itoa(i)}
		all := []located{at}
		if rest != nil {
			all = append(all, located{rest, path})
		}
		free, mine := []string{}, c.typesOf(flat[i], 0)
		for _, t := range mine {
			if !overlap([]string{t}, whole) {
				continue
			}
			others := slices.DeleteFunc(slices.Clone(conflicts[i]), func(j int) bool {
				theirs := c.typesOf(flat[j], 0)
				return !overlap([]string{t}, theirs) || flat[i].kind == kindObject && flat[j].kind == kindObject &&
					c.disjointIn(t, flat[i], flat[j], 0)
			})
			if len(others) == 0 {
				free = append(free, t)
				continue
			}
			only, err := c.onlyIn(t, flat[i], list, path, flat, others)
			if err == nil {
				var e automaton.Expr
				if e, err = c.merged(path, slices.Concat(all, only)...); err == nil {
					out = append(out, e)
					continue
				}
			}
			if c.Partly = true; speaksOf(flat[i], t) {
				return nil, overlaps(path, i, others[0])
			}
		}
		switch {
		case len(free) == 0:
		case len(free) == len(mine) && rest == nil:
			e, err := c.refer(at.path)
			if err != nil {
				return nil, err
			}
			out = append(out, e)
		default:
			e, err := c.merged(path, append(all, located{ofType(free...), path})...)
			if err != nil {
				return nil, err
			}
			out = append(out, e)
		}
	}
	return out, nil
}

func overlaps(path string, i, j int) *automaton.Error {
	return automaton.Refuse(show(path)+"/oneOf",
		"schemas %d and %d may match the same value; use anyOf, or give them distinct "+
			"types or constants", min(i, j), max(i, j))
}

// onlyIn returns schemas that match values of a type that none of the others allows.
func (c *compiler) onlyIn(t string, mine *value, list *value, path string, flat []*value, others []int) ([]located,
	error) {
	if len(others) > mostExclusive {
		return nil, automaton.Refuse(show(path)+"/oneOf", "more than %d schemas overlap", mostExclusive)
	}
	all := []located{{ofType(t), path}}
	outer := c.told
	c.told = true
	defer func() { c.told = outer }()
	for _, j := range others {
		not, err := c.negated(located{list.list[j], path + "/oneOf/" + itoa(j)}, 0)
		names := foreign(mine, flat[j])
		if err != nil && (t != "object" || len(names) == 0) {
			return nil, err
		}
		some := &value{kind: kindArray}
		if err == nil {
			some.list = append(some.list, not)
		}
		if t == "object" {
			for _, name := range names {
				some.list = append(some.list, ofType("object").and("required", &value{kind: kindArray,
					list: texted([]string{name})}))
			}
		}
		all = append(all, located{object1("anyOf", some), path})
	}
	return all, nil
}

// foreign returns properties of one schema of objects that another one does not allow.
func foreign(mine, theirs *value) (names []string) {
	p, q := mine.get("properties"), theirs.get("properties")
	if p == nil || !theirs.get("additionalProperties").isFalse() || theirs.get("patternProperties") != nil {
		return nil
	}
	for _, m := range p.members {
		if !m.value.isFalse() && (q == nil || q.get(m.name) == nil) && len(names) < mostExclusive {
			names = append(names, m.name)
		}
	}
	return names
}

// speaksOf reports whether a schema restricts a type.
func speaksOf(s *value, t string) bool {
	if s.get("type") != nil || s.get("enum") != nil || s.get("const") != nil || s.get("anyOf") != nil ||
		s.get("oneOf") != nil || s.kind != kindObject {
		return true
	}
	for _, key := range map[string][]string{
		"object": {"properties", "required", "additionalProperties", "patternProperties", "minProperties"},
		"array":  {"items", "prefixItems", "minItems", "contains"}, "string": {"pattern", "minLength", "format"},
		"number": {"minimum", "maximum", "multipleOf"}, "integer": {"minimum", "maximum", "multipleOf"}}[t] {
		if s.get(key) != nil {
			return true
		}
	}
	return false
}
