package grammar

import (
	"regexp"
	"strings"
)

// mergeMembers are the keywords of members that say what those of two schemas say together. A
// member that one schema has no place of its own for is an additional one there.
func (c *compiler) mergeMembers(a, b *value, path string) (out []member, err error) {
	names, err1 := c.mergeNamed(a, b, path)
	patterns, err2 := c.mergePatterns(a, b, path)
	if err1 != nil || err2 != nil {
		return nil, firstError(err1, err2)
	}
	for _, m := range []member{{"properties", names}, {"patternProperties", patterns},
		{"additionalProperties", both(a.get("additionalProperties"), b.get("additionalProperties"))}} {
		if m.value != nil {
			out = append(out, m)
		}
	}
	return out, nil
}

func firstError(a, b error) error {
	if a != nil {
		return a
	}
	return b
}

// membersOf is a keyword whose members are schemas by names or by expressions; nil where it is
// missing.
func membersOf(s *value, key, path string) ([]member, error) {
	p := s.get(key)
	if p == nil {
		return nil, nil
	}
	if p.kind != kindObject {
		return nil, refuse(show(path)+"/"+key, "it must be an object")
	}
	return p.members, nil
}

// additionalFor is what a schema says of a member by its additional ones; nil where nothing, or
// where it has a place for the name, whose expressions say the rest.
func (c *compiler) additionalFor(s *value, name, path string) (*value, error) {
	rest := s.get("additionalProperties")
	if rest == nil || rest.isTrue() {
		return nil, nil
	}
	list, err := membersOf(s, "patternProperties", path)
	if err != nil {
		return nil, err
	}
	for _, m := range list {
		if _, err := c.read(show(path)+"/patternProperties/"+escapePointer(m.name), m.name, false); err != nil {
			return nil, err
		}
		if c.matches(m.name, name, false) {
			return nil, nil
		}
	}
	return rest, nil
}

// mergeNamed are the properties of both.
func (c *compiler) mergeNamed(a, b *value, path string) (*value, error) {
	pa, err1 := membersOf(a, "properties", path)
	pb, err2 := membersOf(b, "properties", path)
	if err := firstError(err1, err2); err != nil || a.get("properties") == nil && b.get("properties") == nil {
		return nil, err
	}
	out := &value{kind: kindObject}
	for side, list := range [][]member{pa, pb} {
		other := []*value{b, a}[side]
		for _, m := range list {
			var beside *value
			if p := other.get("properties"); p != nil {
				beside = p.get(m.name)
			}
			if beside != nil && side == 1 {
				continue // it is there
			}
			if beside == nil {
				var err error
				if beside, err = c.additionalFor(other, m.name, path); err != nil {
					return nil, err
				}
			}
			out.members = append(out.members, member{m.name, both(m.value, beside)})
		}
	}
	return out, nil
}

// mergePatterns are the expressions of both, and for names that an expression of one schema matches
// and that the other has no place for, what that says of additional ones.
func (c *compiler) mergePatterns(a, b *value, path string) (*value, error) {
	pa, err1 := membersOf(a, "patternProperties", path)
	pb, err2 := membersOf(b, "patternProperties", path)
	if err := firstError(err1, err2); err != nil || a.get("patternProperties") == nil &&
		b.get("patternProperties") == nil {
		return nil, err
	}
	out := &value{kind: kindObject}
	add := func(m member) {
		for i, old := range out.members {
			if old.name == m.name {
				out.members[i].value = both(old.value, m.value)
				return
			}
		}
		out.members = append(out.members, m)
	}
	for side, list := range [][]member{pa, pb} {
		other := []*value{b, a}[side]
		rest := other.get("additionalProperties")
		for _, m := range list {
			if add(m); rest == nil || rest.isTrue() {
				continue
			}
			theirs, err := membersOf(other, "patternProperties", path)
			if err != nil {
				return nil, err
			}
			var known []string
			var without strings.Builder
			same := false
			for _, x := range theirs {
				same = same || x.name == m.name
				without.WriteString("(?![^]*(?:" + x.name + "))")
			}
			if p := other.get("properties"); p != nil {
				for _, x := range p.members {
					known = append(known, regexp.QuoteMeta(x.name))
				}
			}
			if same {
				continue // each name that it matches has a place in the other schema
			}
			if len(known) > 0 {
				without.WriteString("(?!(?:" + strings.Join(known, "|") + ")$)")
			}
			if without.Len() == 0 {
				add(member{m.name, rest})
			} else {
				add(member{"^" + without.String() + "(?=[^]*(?:" + m.name + "))", rest})
			}
		}
	}
	return out, nil
}
