package grammar

// array is the arrays of a schema: items of their own for the first places, one kind for the rest.
func (c *compiler) array(s *value, path string) (expr, error) {
	least, most, err := span(s, path, "minItems", "maxItems")
	if err != nil {
		return nil, err
	}
	first, key, rest := s.get("prefixItems"), "prefixItems", "items"
	if it := s.get("items"); first == nil && it != nil && it.kind == kindArray {
		first, key, rest = it, "items", "additionalItems" // as draft 7 has it
	}
	var item expr = c.anyValue()
	if r := s.get(rest); r.isFalse() {
		item = nil
	} else if r != nil {
		if item, err = c.part(path, rest); err != nil {
			return nil, err
		}
	}
	if first == nil {
		if item == nil {
			item = nothing{}
		}
		return c.list(item, least, most), nil
	}
	if first.kind != kindArray {
		return nil, refuse(show(path)+"/"+key, "it must be a list of schemas")
	}
	places := make([]expr, len(first.list))
	for i := range first.list {
		if places[i], err = c.refer(path + "/" + key + "/" + itoa(i)); err != nil {
			return nil, err
		}
	}
	return c.tuple(places, item, least, most), nil
}

// tuple is an array whose first items have places of their own; item is nil where no other follows.
func (c *compiler) tuple(places []expr, item expr, least, most int) expr {
	space := c.space()
	comma := sequence{space, literal(","), space}
	return automaton(func(b *builder, from, to int32) {
		end := b.state()
		at := b.state()
		b.edge(from, at, byteRange{'[', '['})
		n := len(places)
		for i := 0; ; i++ {
			if i >= least && (most < 0 || i <= most) {
				b.eps(at, end)
			}
			if i == n || i == most {
				break
			}
			next := b.state()
			if i == 0 {
				b.write(sequence{space, places[i]}, at, next)
			} else {
				b.write(sequence{comma, places[i]}, at, next)
			}
			at = next
		}
		if item != nil && n > 0 && (most < 0 || most > n) {
			left := most
			if most >= 0 {
				left = most - n
			}
			b.write(repeat{sequence{comma, item}, max(least-n, 0), left}, at, end)
		}
		b.write(sequence{space, literal("]")}, end, to)
	})
}
