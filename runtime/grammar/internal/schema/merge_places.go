package schema

// mergePlaces merges prefixItems and items of both schemas if one of them has prefixItems: an item
// must satisfy the schemas of its position in both.
func mergePlaces(a, b *value) []member {
	pa, ra := places(a)
	pb, rb := places(b)
	if len(pa)+len(pb) == 0 {
		return nil
	}
	at := func(p []*value, rest *value, i int) *value {
		if i < len(p) {
			return p[i]
		}
		return rest
	}
	all := &value{kind: kindArray}
	for i := range max(len(pa), len(pb)) {
		x := both(at(pa, ra, i), at(pb, rb, i))
		if x == nil {
			x = &value{kind: kindBool, text: "true"}
		}
		all.list = append(all.list, x)
	}
	out := []member{{"prefixItems", all}}
	if rest := both(ra, rb); rest != nil {
		out = append(out, member{"items", rest})
	}
	return out
}

// places returns the schemas of the first items and that of the others, or nil for missing
// keywords.
func places(s *value) ([]*value, *value) {
	it := s.get("items")
	if p := s.get("prefixItems"); p != nil {
		return p.list, it
	}
	if it != nil && it.kind == kindArray {
		return it.list, s.get("additionalItems")
	}
	return nil, it
}
