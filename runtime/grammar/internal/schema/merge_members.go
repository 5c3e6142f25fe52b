package schema

import (
	"regexp"
	"strings"

	"sandwich/runtime/grammar/internal/automaton"
)

// mergeMembers returns the member keywords of the conjunction of two schemas. A member that one
// schema does not name is an additional member there.
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

// membersOf returns the members of a keyword that maps names or expressions to schemas, or nil if
// the keyword is missing.
func membersOf(s *value, key, path string) ([]member, error) {
	p := s.get(key)
	if p == nil {
		return nil, nil
	}
	if p.kind != kindObject {
		return nil, automaton.Refuse(show(path)+"/"+key, "the value must be an object")
	}
	return p.members, nil
}

// additionalFor returns what the additionalProperties of a schema require of a member with a name.
// It returns nil if there is no requirement or if patternProperties matches the name.
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
		if _, err := c.Read(show(path)+"/patternProperties/"+escapePointer(m.name), m.name, false); err != nil {
			return nil, err
		}
		if c.Matches(m.name, name, false) {
			return nil, nil
		}
	}
	return rest, nil
}

// mergeNamed merges the properties of both schemas.
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
			var theirs *value
			if p := other.get("properties"); p != nil {
				theirs = p.get(m.name)
			}
			if theirs != nil && side == 1 {
				continue // already merged
			}
			if theirs == nil {
				var err error
				if theirs, err = c.additionalFor(other, m.name, path); err != nil {
					return nil, err
				}
			}
			out.members = append(out.members, member{m.name, both(m.value, theirs)})
		}
	}
	return out, nil
}

// mergePatterns merges the patternProperties of both schemas. For names that only one schema has an
// expression for, it adds what the other schema requires of additional members.
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
				continue // the other schema has the same expression
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
