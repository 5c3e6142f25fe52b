package schema

import (
	"regexp"
	"slices"
	"strings"

	"sandwich/runtime/grammar/internal/automaton"
	"sandwich/runtime/grammar/internal/pattern"
	"sandwich/runtime/grammar/internal/schema/document"
)

// objectWriter writes the objects of a schema: the properties in their order, each if it is
// required or chosen, and then any number of additional members.
//
// An object of the answer has each property at most once. Additional names are free. If only few
// names are possible (at most maxListed), they are treated as properties and do not repeat.
// Otherwise the members that minProperties requires have distinct names, but a further one may
// repeat a name, since an automaton cannot remember the names.
type objectWriter struct {
	*compiler
	path     string
	props    []property
	extras   []extra
	min, max int
	names    nameRule
	members  []automaton.Expr // by property
	any      automaton.Expr   // one additional member
	distinct []automaton.Expr // additional members with distinct names (nameClasses)
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

func (c *compiler) object(s *document.Value, path string) (automaton.Expr, error) {
	w := &objectWriter{compiler: c, path: path}
	var err error
	if w.min, w.max, err = document.Span(s, path, "minProperties", "maxProperties"); err != nil {
		return nil, err
	}
	if w.names, err = c.nameRule(s, path); err != nil {
		return nil, err
	}
	patterns := s.Get("patternProperties")
	if patterns != nil && (patterns.Kind != document.KindObject || len(patterns.Members) > maxPatterns) {
		return nil, automaton.Refuse(document.Show(path)+"/patternProperties",
			"the value must be an object of at most %d expressions",
			maxPatterns)
	}
	if patterns != nil {
		for _, m := range patterns.Members {
			if _, err := c.Compiled(document.Show(path)+"/patternProperties/"+document.EscapePointer(m.Name),
				m.Name); err != nil {
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
	if len(w.props) == 0 && free && w.min <= 1 {
		return c.Table(c.Text(0, -1), w.extras[0].value, w.min, w.max), nil
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
		n += min(i, max(w.min, w.max)) + 1
	}
	return n
}

// check returns an error for unsatisfiable or unsupported numbers of members, and drops bounds that
// have no effect.
func (w *objectWriter) check() error {
	at := document.Show(w.path)
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
	case w.max >= 0 && required > w.max:
		return automaton.Unsatisfied(at+"/maxProperties", "%d properties are required", required)
	case len(w.extras) == 0 && w.min > possible:
		return automaton.Unsatisfied(at+"/minProperties", "an object has at most %d members", possible)
	case w.min <= required && (w.max < 0 || len(w.extras) == 0 && w.max >= possible):
		w.min, w.max = 0, -1
	case w.places() > maxPlacesCounted:
		return automaton.Refuse(at,
			"minProperties and maxProperties are not supported together with so many properties")
	case len(w.extras) > 0 && w.min > len(w.props)+maxDistinct:
		return automaton.Refuse(at+"/minProperties", "at most %d additional members with distinct names are supported",
			maxDistinct)
	}
	return nil
}

const (
	// maxPatterns is the largest number of patternProperties. Names are classified by all of them.
	maxPatterns = 40
	// maxDistinct is the largest number of additional members with distinct names.
	maxDistinct = 6
	// maxListed is the largest number of additional names that are listed.
	maxListed = 64
	// maxPlacesCounted is the largest number of positions by property and number of members.
	maxPlacesCounted = 1 << 14
)

// declared collects the properties, followed by required names without a property.
func (w *objectWriter) declared(s, patterns *document.Value) error {
	required := map[string]bool{}
	var list []*document.Value
	if r := s.Get("required"); r != nil {
		list = r.List
		if r.Kind != document.KindArray || slices.ContainsFunc(list,
			func(n *document.Value) bool { return n.Kind != document.KindString }) {
			return automaton.Refuse(document.Show(w.path)+"/required", "the value must be a list of names")
		}
	}
	for _, n := range list {
		required[n.Text] = true
	}
	var names []string
	p := s.Get("properties")
	if p != nil {
		if p.Kind != document.KindObject {
			return automaton.Refuse(document.Show(w.path)+"/properties", "the value must be an object")
		}
		for _, m := range p.Members {
			names = append(names, m.Name)
		}
	}
	met := map[string]bool{}
	for _, n := range names {
		met[n] = true
	}
	for _, n := range slices.Concat(list, document.Texted(w.names.only)) {
		if !met[n.Text] {
			met[n.Text] = true
			names = append(names, n.Text)
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

// valueOf returns the value of the member with a name: what properties and all matching
// patternProperties require, or else what additionalProperties requires.
func (w *objectWriter) valueOf(s, patterns *document.Value, name string) (automaton.Expr, error) {
	var all []located
	if p := s.Get("properties"); p != nil && p.Get(name) != nil {
		all = append(all, located{p.Get(name), w.path + "/properties/" + document.EscapePointer(name)})
	}
	if patterns != nil {
		for _, m := range patterns.Members {
			if w.Matches(m.Name, name, true) {
				all = append(all, located{m.Value, w.path + "/patternProperties/" + document.EscapePointer(m.Name)})
			}
		}
	}
	return w.together(s, all)
}

// together returns the conjunction of schemas, or the value of additional members if all is empty.
func (w *objectWriter) together(s *document.Value, all []located) (automaton.Expr, error) {
	switch {
	case len(all) == 1:
		return w.refer(all[0].path)
	case len(all) > 1:
		return w.merged(w.path, all...)
	case s.Get("additionalProperties") == nil:
		return w.AnyValue(), nil
	case s.Get("additionalProperties").IsFalse():
		return automaton.Nothing{}, nil
	}
	return w.part(w.path, "additionalProperties")
}

// additional collects the additional members: one extra for each combination of patternProperties
// that names match.
func (w *objectWriter) additional(s, patterns *document.Value) error {
	if w.names.only != nil {
		return nil // all names are properties
	}
	var list []document.Member
	if patterns != nil {
		list = patterns.Members
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
			at := w.path + "/patternProperties/" + document.EscapePointer(m.Name)
			if set>>i&1 == 0 {
				e.names.Unwanted = append(e.names.Unwanted, m.Name)
				continue
			}
			e.names.Want = append(e.names.Want, m.Name)
			all = append(all, located{m.Value, at})
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
func (w *objectWriter) wanted(list []document.Member, known []string) ([]uint64, error) {
	if len(list) == 0 {
		return []uint64{0}, nil
	}
	t := w.names.Texts
	t.Want, t.Unwanted = slices.Clone(t.Want), slices.Clone(t.Unwanted)
	if len(known) > 0 {
		t.Unwanted = append(t.Unwanted, "^(?:"+strings.Join(known, "|")+")$")
	}
	for _, m := range list {
		if _, err := w.Compiled(document.Show(w.path+"/patternProperties/"+document.EscapePointer(m.Name)),
			m.Name); err != nil {
			return nil, err
		}
		t.Asked = append(t.Asked, m.Name)
	}
	return w.Sets(document.Show(w.path)+"/patternProperties", t)
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
		return w.Pattern(document.Show(w.path), t.Want[0], t.Least, t.Most)
	}
	return w.Product(document.Show(w.path), t)
}
