package schema

import (
	"regexp"
	"slices"
	"strings"

	"sandwich/runtime/grammar/internal/automaton"
	"sandwich/runtime/grammar/internal/pattern"
)

// objectWriter writes the objects of a schema: the properties in their order, each if it is
// required or chosen, and then any number of additional members.
//
// An object of the answer has each property at most once. Additional names are free. If only few
// names are possible (at most mostListed), they are treated as properties and do not repeat.
// Otherwise the members that minProperties requires have distinct names, but a further one may
// repeat a name, since an automaton cannot remember the names.
type objectWriter struct {
	*compiler
	path        string
	props       []property
	extras      []extra
	least, most int
	names       nameRule
	members     []automaton.Expr // by property
	any         automaton.Expr   // one additional member
	distinct    []automaton.Expr // additional members with distinct names (nameClasses)
}

// property is a declared member of an object.
type property struct {
	name     string
	value    automaton.Expr
	required bool
}

// extra is a group of additional members: their names and their value.
type extra struct {
	names  pattern.Texts
	others bool // all names except those of the properties
	value  automaton.Expr
}

func (c *compiler) object(s *value, path string) (automaton.Expr, error) {
	w := &objectWriter{compiler: c, path: path}
	var err error
	if w.least, w.most, err = span(s, path, "minProperties", "maxProperties"); err != nil {
		return nil, err
	}
	if w.names, err = c.nameRule(s, path); err != nil {
		return nil, err
	}
	patterns := s.get("patternProperties")
	if patterns != nil && (patterns.kind != kindObject || len(patterns.members) > mostPatterns) {
		return nil, automaton.Refuse(show(path)+"/patternProperties",
			"the value must be an object of at most %d expressions",
			mostPatterns)
	}
	if patterns != nil {
		for _, m := range patterns.members {
			if _, err := c.Compiled(show(path)+"/patternProperties/"+escapePointer(m.name), m.name); err != nil {
				return nil, err
			}
		}
	}
	if err := w.declared(s, patterns); err != nil {
		return nil, err
	}
	if err := w.additional(s, patterns); err != nil {
		return nil, err
	}
	w.list()
	free := len(w.extras) == 1 && len(w.extras[0].names.Want)+len(w.extras[0].names.Unwanted) == 0 &&
		w.extras[0].names.Least == 0 && w.extras[0].names.Most < 0
	if len(w.props) == 0 && free && w.least <= 1 {
		return c.Table(c.Text(0, -1), w.extras[0].value, w.least, w.most), nil
	}
	if err := w.check(); err != nil {
		return nil, err
	}
	if err := w.prepare(); err != nil {
		return nil, err
	}
	return automaton.Automaton(w.write), nil
}

// places returns the number of positions by property and number of members, as far as these are
// counted.
func (w *objectWriter) places() (n int) {
	for i := range len(w.props) + 1 {
		n += min(i, max(w.least, w.most)) + 1
	}
	return n
}

// check returns an error for unsatisfiable or unsupported numbers of members, and drops bounds that
// have no effect.
func (w *objectWriter) check() error {
	at := show(w.path)
	required, possible := 0, 0
	for _, p := range w.props {
		if p.required {
			required++
		}
		if _, never := p.value.(automaton.Nothing); !never {
			possible++
		}
	}
	switch {
	case w.most >= 0 && required > w.most:
		return automaton.Unsatisfied(at+"/maxProperties", "%d properties are required", required)
	case len(w.extras) == 0 && w.least > possible:
		return automaton.Unsatisfied(at+"/minProperties", "an object has at most %d members", possible)
	case w.least <= required && (w.most < 0 || len(w.extras) == 0 && w.most >= possible):
		w.least, w.most = 0, -1
	case w.places() > mostPlacesCounted:
		return automaton.Refuse(at,
			"minProperties and maxProperties are not supported together with so many properties")
	case len(w.extras) > 0 && w.least > len(w.props)+mostDistinct:
		return automaton.Refuse(at+"/minProperties", "at most %d additional members with distinct names are supported",
			mostDistinct)
	}
	return nil
}

const (
	// mostPatterns is the largest number of patternProperties. Names are classified by all of them.
	mostPatterns = 40
	// mostDistinct is the largest number of additional members with distinct names.
	mostDistinct = 6
	// mostListed is the largest number of additional names that are listed.
	mostListed = 64
	// mostPlacesCounted is the largest number of positions by property and number of members.
	mostPlacesCounted = 1 << 14
)

// declared collects the properties, followed by required names without a property.
func (w *objectWriter) declared(s, patterns *value) error {
	required := map[string]bool{}
	var list []*value
	if r := s.get("required"); r != nil {
		list = r.list
		if r.kind != kindArray || slices.ContainsFunc(list, func(n *value) bool { return n.kind != kindString }) {
			return automaton.Refuse(show(w.path)+"/required", "the value must be a list of names")
		}
	}
	for _, n := range list {
		required[n.text] = true
	}
	var names []string
	p := s.get("properties")
	if p != nil {
		if p.kind != kindObject {
			return automaton.Refuse(show(w.path)+"/properties", "the value must be an object")
		}
		for _, m := range p.members {
			names = append(names, m.name)
		}
	}
	met := map[string]bool{}
	for _, n := range names {
		met[n] = true
	}
	for _, n := range slices.Concat(list, texted(w.names.only)) {
		if !met[n.text] {
			met[n.text] = true
			names = append(names, n.text)
		}
	}
	for _, name := range names {
		var value automaton.Expr = automaton.Nothing{}
		if w.names.allows(w.compiler, name) {
			var err error
			if value, err = w.valueOf(s, patterns, name); err != nil {
				return err
			}
		}
		if _, never := value.(automaton.Nothing); !never || required[name] {
			w.props = append(w.props, property{name, value, required[name]})
		} else {
			w.props = append(w.props, property{name: name, value: automaton.Nothing{}})
		}
	}
	return nil
}

func texted(names []string) (out []*value) {
	for _, n := range names {
		out = append(out, &value{kind: kindString, text: n})
	}
	return out
}

// valueOf returns the value of the member with a name: what properties and all matching
// patternProperties require, or else what additionalProperties requires.
func (w *objectWriter) valueOf(s, patterns *value, name string) (automaton.Expr, error) {
	var all []located
	if p := s.get("properties"); p != nil && p.get(name) != nil {
		all = append(all, located{p.get(name), w.path + "/properties/" + escapePointer(name)})
	}
	if patterns != nil {
		for _, m := range patterns.members {
			if w.Matches(m.name, name, true) {
				all = append(all, located{m.value, w.path + "/patternProperties/" + escapePointer(m.name)})
			}
		}
	}
	return w.together(s, all)
}

// together returns the conjunction of schemas, or the value of additional members if all is empty.
func (w *objectWriter) together(s *value, all []located) (automaton.Expr, error) {
	switch {
	case len(all) == 1:
		return w.refer(all[0].path)
	case len(all) > 1:
		return w.merged(w.path, all...)
	case s.get("additionalProperties") == nil:
		return w.AnyValue(), nil
	case s.get("additionalProperties").isFalse():
		return automaton.Nothing{}, nil
	}
	return w.part(w.path, "additionalProperties")
}

// additional collects the additional members: one extra for each combination of patternProperties
// that names match.
func (w *objectWriter) additional(s, patterns *value) error {
	if w.names.only != nil {
		return nil // all names are properties
	}
	var list []member
	if patterns != nil {
		list = patterns.members
	}
	var known []string
	for _, p := range w.props {
		known = append(known, regexp.QuoteMeta(p.name))
	}
	met, err := w.wanted(list, known)
	if err != nil {
		return err
	}
	for _, set := range met {
		e := extra{names: w.names.Texts, others: len(list) == 0 && len(known) > 0}
		e.names.Want, e.names.Unwanted = slices.Clone(e.names.Want), slices.Clone(e.names.Unwanted)
		var all []located
		for i, m := range list {
			at := w.path + "/patternProperties/" + escapePointer(m.name)
			if set>>i&1 == 0 {
				e.names.Unwanted = append(e.names.Unwanted, m.name)
				continue
			}
			e.names.Want = append(e.names.Want, m.name)
			all = append(all, located{m.value, at})
		}
		if len(known) > 0 {
			e.names.Unwanted = append(e.names.Unwanted, "^(?:"+strings.Join(known, "|")+")$")
		}
		value, err := w.together(s, all)
		if err != nil {
			return err
		}
		if e.value = value; value != (automaton.Nothing{}) {
			w.extras = append(w.extras, e)
		}
	}
	return nil
}

// wanted returns the combinations of expressions, as bit sets, that a name matches.
func (w *objectWriter) wanted(list []member, known []string) ([]uint64, error) {
	if len(list) == 0 {
		return []uint64{0}, nil
	}
	t := w.names.Texts
	t.Want, t.Unwanted = slices.Clone(t.Want), slices.Clone(t.Unwanted)
	if len(known) > 0 {
		t.Unwanted = append(t.Unwanted, "^(?:"+strings.Join(known, "|")+")$")
	}
	for _, m := range list {
		if _, err := w.Compiled(show(w.path+"/patternProperties/"+escapePointer(m.name)), m.name); err != nil {
			return nil, err
		}
		t.Asked = append(t.Asked, m.name)
	}
	return w.Sets(show(w.path)+"/patternProperties", t)
}

// name returns an expression for the names of an extra that are in a class.
func (w *objectWriter) name(e extra, class nameClass) (automaton.Expr, error) {
	t := class.of(e.names)
	if t.Mod == 0 && len(t.Want) == 0 && t.Least == 0 && t.Most < 0 {
		switch {
		case len(t.Unwanted) == 0:
			return w.Text(0, -1), nil
		case len(t.Unwanted) == 1 && e.others:
			return w.otherNames(w.props), nil
		}
	}
	if t.Mod == 0 && len(t.Want) == 1 && len(t.Unwanted) == 0 {
		return w.Pattern(show(w.path), t.Want[0], t.Least, t.Most)
	}
	return w.Product(show(w.path), t)
}
