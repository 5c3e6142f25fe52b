package grammar

// object is the objects of a schema: its properties in their order, each where it is required or
// chosen, then any number of additional ones.
func (c *compiler) object(s *value, path string) (expr, error) {
	props, err := c.properties(s, path)
	if err != nil {
		return nil, err
	}
	name, extra, err := c.additional(s, path, props)
	if err != nil {
		return nil, err
	}
	least, most, err := span(s, path, "minProperties", "maxProperties")
	if err != nil {
		return nil, err
	}
	if len(props) == 0 && extra != nil {
		return c.table(name, extra, least, most), nil
	}
	required := 0
	for _, p := range props {
		if p.required {
			required++
		}
	}
	if most >= 0 && required > most {
		return nil, refuse(show(path)+"/maxProperties", "nothing satisfies it: %d properties are required", required)
	}
	if least > required || most >= 0 && (most < len(props) || extra != nil) {
		return nil, refuse(show(path), "minProperties and maxProperties are only supported where no property is "+
			"declared")
	}
	return c.members(props, name, extra), nil
}

// property is a declared member of an object.
type property struct {
	name     string
	value    expr
	required bool
}

func (c *compiler) properties(s *value, path string) ([]property, error) {
	required := map[string]bool{}
	if r := s.get("required"); r != nil {
		if r.kind != kindArray {
			return nil, refuse(show(path)+"/required", "it must be a list of names")
		}
		for _, n := range r.list {
			if n.kind != kindString {
				return nil, refuse(show(path)+"/required", "it must be a list of names")
			}
			required[n.text] = true
		}
	}
	var out []property
	if p := s.get("properties"); p != nil {
		if p.kind != kindObject {
			return nil, refuse(show(path)+"/properties", "it must be an object")
		}
		for _, m := range p.members {
			e, err := c.part(path, "properties", m.name)
			if err != nil {
				return nil, err
			}
			out = append(out, property{m.name, e, required[m.name]})
			delete(required, m.name)
		}
	}
	// Names that are required and not declared follow in the order of the list.
	if r := s.get("required"); r != nil {
		for _, n := range r.list {
			if !required[n.text] {
				continue
			}
			delete(required, n.text)
			e, err := c.undeclared(s, path)
			if err != nil {
				return nil, err
			}
			out = append(out, property{n.text, e, true})
		}
	}
	return out, nil
}

// undeclared is the value of a property that is not declared.
func (c *compiler) undeclared(s *value, path string) (expr, error) {
	if s.get("additionalProperties") == nil {
		return c.anyValue(), nil
	}
	return c.part(path, "additionalProperties")
}

// additional are names and values of members that are not declared; no value where there are none.
func (c *compiler) additional(s *value, path string, props []property) (name, value expr, err error) {
	if p := s.get("patternProperties"); p != nil && len(p.members) > 0 {
		only := len(p.members) == 1 && len(props) == 0 && s.get("additionalProperties").isFalse()
		if p.kind != kindObject || !only {
			return nil, nil, refuse(show(path)+"/patternProperties", "it is only supported with one pattern, "+
				"without properties, and with additionalProperties false")
		}
		pattern := p.members[0].name
		if name, err = c.pattern(show(path)+"/patternProperties", pattern, 0, -1); err != nil {
			return nil, nil, err
		}
		value, err = c.part(path, "patternProperties", pattern)
		return name, value, err
	}
	if s.get("additionalProperties").isFalse() {
		return nil, nil, nil
	}
	if value, err = c.undeclared(s, path); err != nil {
		return nil, nil, err
	}
	if len(props) == 0 {
		return c.text(0, -1), value, nil
	}
	return c.otherNames(props), value, nil
}

// members writes an object: for each property a state before its name, where it and those behind it
// up to the next required one may follow, and one behind the member before it.
func (c *compiler) members(props []property, name, extra expr) expr {
	space := c.space()
	value := func(v expr) expr { return sequence{space, literal(":"), space, v} }
	return automaton(func(b *builder, from, to int32) {
		n := len(props)
		names, behind := make([]int32, n+1), make([]int32, n+1)
		for i := range names {
			names[i], behind[i] = b.state(), b.state()
		}
		open, end := b.state(), b.state()
		b.edge(from, open, byteRange{'{', '{'})
		b.write(space, open, names[0])
		must := false // one of the properties from i on is required
		for i := n; i >= 0; i-- {
			if i < n {
				p := &props[i]
				b.write(sequence{literal(appendQuoted(nil, p.name)), value(p.value)}, names[i], behind[i+1])
				if !p.required {
					b.eps(names[i], names[i+1])
				}
				must = must || p.required
			} else if extra != nil {
				b.write(sequence{name, value(extra)}, names[n], behind[n])
			}
			if i > 0 && (i < n || extra != nil) {
				b.write(sequence{space, literal(","), space}, behind[i], names[i])
			}
			if !must {
				b.eps(behind[i], end)
			}
		}
		if !must {
			b.eps(open, end)
		}
		b.write(sequence{space, literal("}")}, end, to)
	})
}

// otherNames is any name but those of the properties. As long as it begins like one of them it is
// spelled without escapes, so that no spelling of theirs gets through.
func (c *compiler) otherNames(props []property) expr {
	root := &nameNode{}
	for _, p := range props {
		root.add(p.name)
	}
	any := repeat{c.char(), 0, -1}
	return sequence{literal(`"`), automaton(func(b *builder, from, to int32) { root.write(b, any, from, to) }),
		literal(`"`)}
}

// nameNode is a trie of names.
type nameNode struct {
	next map[rune]*nameNode
	keys []rune
	name bool
}

func (n *nameNode) add(name string) {
	for _, r := range name {
		if n.next == nil {
			n.next = map[rune]*nameNode{}
		}
		if n.next[r] == nil {
			n.next[r] = &nameNode{}
			n.keys = append(n.keys, r)
		}
		n = n.next[r]
	}
	n.name = true
}

// write makes ways for all texts that are no name of the trie.
func (n *nameNode) write(b *builder, any expr, from, to int32) {
	if !n.name {
		b.eps(from, to)
	}
	var known runes
	for _, r := range n.keys {
		known = append(known, runeRange{r, r})
		spelled := appendChar(nil, r)
		next := b.state()
		b.write(literal(spelled), from, next)
		n.next[r].write(b, any, next, to)
	}
	others := anyRune.except(escaped).except(known.inOrder())
	b.write(sequence{others, any}, from, to)
}

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
