package schema

import (
	"regexp"
	"slices"
	"strconv"
	"strings"

	"sandwich/runtime/grammar/internal/automaton"
	"sandwich/runtime/grammar/internal/pattern"
	"sandwich/runtime/grammar/internal/schema/document"
)

// nameRule is the meaning of propertyNames.
type nameRule struct {
	pattern.Texts
	only []string // if not nil, the only allowed names
}

// nameRule reads propertyNames.
func (c *compiler) nameRule(s *document.Value, path string) (n nameRule, err error) {
	n.Most = -1
	v := s.Get("propertyNames")
	if v == nil {
		return n, nil
	}
	path += "/propertyNames"
	if v, err = c.flat(located{v, path}, 0); err != nil || v.IsTrue() {
		return n, err
	}
	if v.IsFalse() {
		n.only = []string{}
		return n, nil
	}
	if v.Kind != document.KindObject {
		return n, automaton.Refuse(document.Show(path), "a schema must be an object, true or false")
	}
	if list := v.Get("anyOf"); list != nil {
		return c.anyName(v, list, path)
	}
	for _, m := range v.Members {
		if !slices.Contains(document.Describing, m.Name) && !slices.Contains([]string{"type", "pattern", "format",
			"minLength",
			"maxLength", "enum", "const", document.MoreTexts, document.NeverTexts}, m.Name) {
			return n, automaton.Refuse(document.Show(path)+"/"+document.EscapePointer(m.Name),
				"the keyword is not supported in propertyNames")
		}
	}
	kinds, err := document.Types(v, path)
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
	if list := document.ConstantsOf(v); list != nil {
		n.only = []string{}
		for _, x := range list {
			if x.Kind == document.KindString && c.hasText(n.Texts, x.Text) {
				n.only = append(n.only, x.Text)
			}
		}
	}
	return n, nil
}

// anyName reads propertyNames with anyOf. The alternatives become one expression with look-ahead,
// or a list of names if all are constants.
func (c *compiler) anyName(v, list *document.Value, path string) (n nameRule, err error) {
	n.Most = -1
	rest := v.Without("anyOf")
	var ways []string
	only := true
	for i, x := range list.List {
		one, err := c.nameRule(document.OneMember("propertyNames", document.BothOf(x, rest)),
			path+"/anyOf/"+strconv.Itoa(i))
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
				upTo = strconv.Itoa(one.Most)
			}
			way += "(?=[^]{" + strconv.Itoa(one.Least) + "," + upTo + "}$)"
		}
		ways = append(ways, way)
	}
	if only {
		n.only = append([]string{}, n.only...)
		return n, nil
	}
	n.only = nil
	text := "^(?:" + strings.Join(ways, "|") + ")"
	if _, err := c.Compiled(document.Show(path), text); err != nil {
		return n, err
	}
	n.Want = []string{text}
	return n, nil
}

// allows reports whether a member may have the given name.
func (n *nameRule) allows(c *compiler, name string) bool {
	return (n.only == nil || slices.Contains(n.only, name)) && c.hasText(n.Texts, name)
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
