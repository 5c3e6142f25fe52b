package schema

import (
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"sandwich/runtime/grammar/internal/automaton"
	"sandwich/runtime/grammar/internal/pattern"
)

// nameRule is the meaning of propertyNames.
type nameRule struct {
	pattern.Texts
	only []string // if not nil, the only allowed names
}

// nameRule reads propertyNames.
func (c *compiler) nameRule(s *value, path string) (n nameRule, err error) {
	n.Most = -1
	v := s.get("propertyNames")
	if v == nil {
		return n, nil
	}
	path += "/propertyNames"
	if v, err = c.flat(located{v, path}, 0); err != nil || v.isTrue() {
		return n, err
	}
	if v.isFalse() {
		n.only = []string{}
		return n, nil
	}
	if v.kind != kindObject {
		return n, automaton.Refuse(show(path), "a schema must be an object, true or false")
	}
	if list := v.get("anyOf"); list != nil {
		return c.anyName(v, list, path)
	}
	for _, m := range v.members {
		if !slices.Contains(describing, m.name) && !slices.Contains([]string{"type", "pattern", "format", "minLength",
			"maxLength", "enum", "const", moreTexts, neverTexts}, m.name) {
			return n, automaton.Refuse(show(path)+"/"+escapePointer(m.name),
				"the keyword is not supported in propertyNames")
		}
	}
	kinds, err := types(v, path)
	if err != nil {
		return n, err
	}
	if !slices.Contains(kinds, "string") {
		n.only = []string{}
		return n, nil
	}
	if n.Texts, err = c.texts(v, path); err != nil {
		return n, err
	}
	if list := constantsOf(v); list != nil {
		n.only = []string{}
		for _, x := range list {
			if x.kind == kindString && c.hasText(n.Texts, x.text) {
				n.only = append(n.only, x.text)
			}
		}
	}
	return n, nil
}

// anyName reads propertyNames with anyOf. The alternatives become one expression with look-ahead,
// or a list of names if all are constants.
func (c *compiler) anyName(v, list *value, path string) (n nameRule, err error) {
	n.Most = -1
	rest := v.without("anyOf")
	var ways []string
	only := true
	for i, x := range list.list {
		one, err := c.nameRule(object1("propertyNames", bothOf(x, rest)), path+"/anyOf/"+itoa(i))
		if err != nil {
			return n, err
		}
		if only = only && one.only != nil; one.only != nil {
			n.only = append(n.only, one.only...)
			for _, name := range one.only {
				ways = append(ways, regexp.QuoteMeta(name)+"$")
			}
			continue
		}
		way := ""
		for _, p := range one.Want {
			way += "(?=[^]*(?:" + p + "))"
		}
		for _, p := range one.Unwanted {
			way += "(?![^]*(?:" + p + "))"
		}
		if one.Least > 0 || one.Most >= 0 {
			upTo := ""
			if one.Most >= 0 {
				upTo = itoa(one.Most)
			}
			way += "(?=[^]{" + itoa(one.Least) + "," + upTo + "}$)"
		}
		ways = append(ways, way)
	}
	if only {
		n.only = append([]string{}, n.only...)
		return n, nil
	}
	n.only = nil
	text := "^(?:" + strings.Join(ways, "|") + ")"
	if _, err := c.Compiled(show(path), text); err != nil {
		return n, err
	}
	n.Want = []string{text}
	return n, nil
}

// allows reports whether a member may have the given name.
func (n *nameRule) allows(c *compiler, name string) bool {
	return (n.only == nil || slices.Contains(n.only, name)) && c.hasText(n.Texts, name)
}

// hasText reports whether a string is in t. The expressions of t must have been parsed.
func (c *compiler) hasText(t pattern.Texts, s string) bool {
	n := utf8.RuneCountInString(s)
	if n < t.Least || t.Most >= 0 && n > t.Most {
		return false
	}
	for _, p := range t.Want {
		if !c.Matches(p, s, false) {
			return false
		}
	}
	return !slices.ContainsFunc(t.Unwanted, func(p string) bool { return c.Matches(p, s, true) })
}

// otherNames returns any name except those of the properties. A prefix of a property's name must be
// spelled without escapes, so that no spelling of such a name is accepted.
func (c *compiler) otherNames(props []property) automaton.Expr {
	root := &nameNode{}
	for _, p := range props {
		c.Meter.Take(automaton.ValueCost * (1 + len(p.name)))
		root.add(p.name)
	}
	others := c.TextRest() // after a character that no property continues with
	return automaton.Sequence{automaton.Literal(`"`), automaton.Automaton(func(b *automaton.Builder, from, to int32) {
		rest := b.State()
		b.Write(others, rest, to)
		root.write(b, rest, from, to)
	}), automaton.Literal(`"`)}
}

// nameNode is a node of a trie of names.
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

// write writes paths for all texts that are not a name of the trie. It leads to rest after a
// character that no name continues with.
func (n *nameNode) write(b *automaton.Builder, rest, from, to int32) {
	if !n.name {
		b.Eps(from, to)
	}
	var known automaton.Runes
	for _, r := range n.keys {
		known = append(known, automaton.RuneRange{Lo: r, Hi: r})
		spelled := automaton.AppendChar(nil, r)
		next := b.State()
		b.Write(automaton.Literal(spelled), from, next)
		n.next[r].write(b, rest, next, to)
	}
	others := automaton.AnyRune.Except(automaton.Escaped).Except(known.InOrder())
	b.Write(others, from, rest)
}
