package schema

import (
	"slices"
	"strconv"

	"sandwich/runtime/grammar/internal/automaton"
	"sandwich/runtime/grammar/internal/schema/document"
)

// exclusive returns an expression for a oneOf whose schemas overlap. For each type it excludes from
// a schema what the overlapping ones allow. If that is not supported, it drops types that the
// schema does not mention. flat and conflicts are the results of overlapping.
func (c *compiler) exclusive(list, rest *document.Value, path string, flat []*document.Value,
	conflicts [][]int) (automaton.Expr, error) {
	var out automaton.Choice
	whole := document.TypeNames
	if rest != nil {
		if v, err := c.wide(located{rest, path}, 0); err == nil && v.Kind == document.KindObject {
			whole = c.typesOf(v, 0)
		}
	}
	for i, x := range list.List {
		at := located{x, path + "/oneOf/" + strconv.Itoa(i)}
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
				return !overlap([]string{t}, theirs) || flat[i].Kind == document.KindObject &&
					flat[j].Kind == document.KindObject &&
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
			e, err := c.merged(path, append(all, located{document.OfType(free...), path})...)
			if err != nil {
				return nil, err
			}
			out = append(out, e)
		}
	}
	return out, nil
}

func overlaps(path string, i, j int) *automaton.Error {
	return automaton.Refuse(document.Show(path)+"/oneOf",
		"schemas %d and %d may match the same value; use anyOf, or give them distinct "+
			"types or constants", min(i, j), max(i, j))
}

// onlyIn returns schemas that match values of a type that none of the others allows.
func (c *compiler) onlyIn(t string, mine *document.Value, list *document.Value, path string, flat []*document.Value,
	others []int) ([]located,
	error) {
	if len(others) > maxExclusive {
		return nil, automaton.Refuse(document.Show(path)+"/oneOf", "more than %d schemas overlap", maxExclusive)
	}
	all := []located{{document.OfType(t), path}}
	outer := c.told
	c.told = true
	defer func() { c.told = outer }()
	for _, j := range others {
		not, err := c.negated(located{list.List[j], path + "/oneOf/" + strconv.Itoa(j)}, 0)
		names := foreign(mine, flat[j])
		if err != nil && (t != "object" || len(names) == 0) {
			return nil, err
		}
		some := &document.Value{Kind: document.KindArray}
		if err == nil {
			some.List = append(some.List, not)
		}
		if t == "object" {
			for _, name := range names {
				some.List = append(some.List, document.OfType("object").And("required",
					&document.Value{Kind: document.KindArray,
						List: document.Texted([]string{name})}))
			}
		}
		all = append(all, located{document.OneMember("anyOf", some), path})
	}
	return all, nil
}

// foreign returns properties of one schema of objects that another one does not allow.
func foreign(mine, theirs *document.Value) (names []string) {
	p, q := mine.Get("properties"), theirs.Get("properties")
	if p == nil || !theirs.Get("additionalProperties").IsFalse() || theirs.Get("patternProperties") != nil {
		return nil
	}
	for _, m := range p.Members {
		if !m.Value.IsFalse() && (q == nil || q.Get(m.Name) == nil) && len(names) < maxExclusive {
			names = append(names, m.Name)
		}
	}
	return names
}

// speaksOf reports whether a schema restricts a type.
func speaksOf(s *document.Value, t string) bool {
	if s.Get("type") != nil || s.Get("enum") != nil || s.Get("const") != nil || s.Get("anyOf") != nil ||
		s.Get("oneOf") != nil || s.Kind != document.KindObject {
		return true
	}
	for _, key := range map[string][]string{
		"object": {"properties", "required", "additionalProperties", "patternProperties", "minProperties"},
		"array":  {"items", "prefixItems", "minItems", "contains"}, "string": {"pattern", "minLength", "format"},
		"number": {"minimum", "maximum", "multipleOf"}, "integer": {"minimum", "maximum", "multipleOf"}}[t] {
		if s.Get(key) != nil {
			return true
		}
	}
	return false
}
