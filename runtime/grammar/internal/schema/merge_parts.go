package schema

import (
	"regexp"
	"strings"

	"sandwich/runtime/grammar/internal/automaton"
	"sandwich/runtime/grammar/internal/schema/document"
)

// mergeMembers returns the member keywords of the conjunction of two schemas. A member that one
// schema does not name is an additional member there.
func (c *compiler) mergeMembers(a, b *document.Value, path string) (out []document.Member, err error) {
	names, err1 := c.mergeNamed(a, b, path)
	patterns, err2 := c.mergePatterns(a, b, path)
	if err1 != nil || err2 != nil {
		return nil, firstError(err1, err2)
	}
	for _, m := range []document.Member{{Name: "properties", Value: names}, {Name: "patternProperties",
		Value: patterns},
		{Name: "additionalProperties", Value: document.Both(a.Get("additionalProperties"),
			b.Get("additionalProperties"))}} {
		if m.Value != nil {
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
func membersOf(s *document.Value, key, path string) ([]document.Member, error) {
	p := s.Get(key)
	if p == nil {
		return nil, nil
	}
	if p.Kind != document.KindObject {
		return nil, automaton.Refuse(document.Show(path)+"/"+key, "the value must be an object")
	}
	return p.Members, nil
}

// additionalFor returns what the additionalProperties of a schema require of a member with a name.
// It returns nil if there is no requirement or if patternProperties matches the name.
func (c *compiler) additionalFor(s *document.Value, name, path string) (*document.Value, error) {
	rest := s.Get("additionalProperties")
	if rest == nil || rest.IsTrue() {
		return nil, nil
	}
	list, err := membersOf(s, "patternProperties", path)
	if err != nil {
		return nil, err
	}
	for _, m := range list {
		if _, err := c.Read(document.Show(path)+"/patternProperties/"+document.EscapePointer(m.Name), m.Name,
			false); err != nil {
			return nil, err
		}
		if c.Matches(m.Name, name, false) {
			return nil, nil
		}
	}
	return rest, nil
}

// mergeNamed merges the properties of both schemas.
func (c *compiler) mergeNamed(a, b *document.Value, path string) (*document.Value, error) {
	pa, err1 := membersOf(a, "properties", path)
	pb, err2 := membersOf(b, "properties", path)
	if err := firstError(err1, err2); err != nil || a.Get("properties") == nil && b.Get("properties") == nil {
		return nil, err
	}
	out := &document.Value{Kind: document.KindObject}
	for side, list := range [][]document.Member{pa, pb} {
		other := []*document.Value{b, a}[side]
		for _, m := range list {
			var theirs *document.Value
			if p := other.Get("properties"); p != nil {
				theirs = p.Get(m.Name)
			}
			if theirs != nil && side == 1 {
				continue // already merged
			}
			if theirs == nil {
				var err error
				if theirs, err = c.additionalFor(other, m.Name, path); err != nil {
					return nil, err
				}
			}
			out.Members = append(out.Members, document.Member{Name: m.Name, Value: document.Both(m.Value, theirs)})
		}
	}
	return out, nil
}

// mergePatterns merges the patternProperties of both schemas. For names that only one schema has an
// expression for, it adds what the other schema requires of additional members.
func (c *compiler) mergePatterns(a, b *document.Value, path string) (*document.Value, error) {
	pa, err1 := membersOf(a, "patternProperties", path)
	pb, err2 := membersOf(b, "patternProperties", path)
	if err := firstError(err1, err2); err != nil || a.Get("patternProperties") == nil &&
		b.Get("patternProperties") == nil {
		return nil, err
	}
	out := &document.Value{Kind: document.KindObject}
	add := func(m document.Member) {
		for i, old := range out.Members {
			if old.Name == m.Name {
				out.Members[i].Value = document.Both(old.Value, m.Value)
				return
			}
		}
		out.Members = append(out.Members, m)
	}
	for side, list := range [][]document.Member{pa, pb} {
		other := []*document.Value{b, a}[side]
		rest := other.Get("additionalProperties")
		for _, m := range list {
			if add(m); rest == nil || rest.IsTrue() {
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
				same = same || x.Name == m.Name
				without.WriteString("(?![^]*(?:" + x.Name + "))")
			}
			if p := other.Get("properties"); p != nil {
				for _, x := range p.Members {
					known = append(known, regexp.QuoteMeta(x.Name))
				}
			}
			if same {
				continue // the other schema has the same expression
			}
			if len(known) > 0 {
				without.WriteString("(?!(?:" + strings.Join(known, "|") + ")$)")
			}
			if without.Len() == 0 {
				add(document.Member{Name: m.Name, Value: rest})
			} else {
				add(document.Member{Name: "^" + without.String() + "(?=[^]*(?:" + m.Name + "))", Value: rest})
			}
		}
	}
	return out, nil
}

// mergePlaces merges prefixItems and items of both schemas if one of them has prefixItems: an item
// must satisfy the schemas of its position in both.
func mergePlaces(a, b *document.Value) []document.Member {
	pa, ra := document.Places(a)
	pb, rb := document.Places(b)
	if len(pa)+len(pb) == 0 {
		return nil
	}
	at := func(p []*document.Value, rest *document.Value, i int) *document.Value {
		if i < len(p) {
			return p[i]
		}
		return rest
	}
	all := &document.Value{Kind: document.KindArray}
	for i := range max(len(pa), len(pb)) {
		x := document.Both(at(pa, ra, i), at(pb, rb, i))
		if x == nil {
			x = &document.Value{Kind: document.KindBool, Text: "true"}
		}
		all.List = append(all.List, x)
	}
	out := []document.Member{{Name: "prefixItems", Value: all}}
	if rest := document.Both(ra, rb); rest != nil {
		out = append(out, document.Member{Name: "items", Value: rest})
	}
	return out
}
