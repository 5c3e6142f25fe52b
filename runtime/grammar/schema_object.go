package grammar

import (
	"regexp"
	"slices"
	"strings"
)

// objectWriter makes the objects of a schema: its properties in their order, each where it is
// required or chosen, then any number of additional members.
//
// An object of the answer has each property once at most. Additional names are free: where few
// names are possible (at most mostListed), they count as properties and none repeats; where more
// are, those that minProperties demands differ from each other, and a further one may repeat a
// name, since an automaton cannot remember which were used.
type objectWriter struct {
	*compiler
	path        string
	props       []property
	extras      []extra
	least, most int
	names       nameRule
	members     []expr // by property
	any         expr   // an additional member
	distinct    []expr // additional members whose names differ (nameClasses)
}

// property is a member of an object by its name.
type property struct {
	name     string
	value    expr
	required bool
}

// extra are members that are not declared: their names, and the value of each.
type extra struct {
	names  texts
	others bool // names are any but those of the properties
	value  expr
}

func (c *compiler) object(s *value, path string) (expr, error) {
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
		return nil, refuse(show(path)+"/patternProperties", "it must be an object of at most %d expressions",
			mostPatterns)
	}
	if patterns != nil {
		for _, m := range patterns.members {
			if _, err := c.compiled(show(path)+"/patternProperties/"+escapePointer(m.name), m.name); err != nil {
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
	free := len(w.extras) == 1 && len(w.extras[0].names.want)+len(w.extras[0].names.unwanted) == 0 &&
		w.extras[0].names.least == 0 && w.extras[0].names.most < 0
	if len(w.props) == 0 && free && w.least <= 1 {
		return c.table(c.text(0, -1), w.extras[0].value, w.least, w.most), nil
	}
	if err := w.check(); err != nil {
		return nil, err
	}
	if err := w.prepare(); err != nil {
		return nil, err
	}
	return automaton(w.write), nil
}

// places returns how many places there are by property and number of members, as far as these are
// counted.
func (w *objectWriter) places() (n int) {
	for i := range len(w.props) + 1 {
		n += min(i, max(w.least, w.most)) + 1
	}
	return n
}

// check refuses numbers of members that no object has or that are not counted, and drops those that
// say nothing.
func (w *objectWriter) check() error {
	at := show(w.path)
	required, possible := 0, 0
	for _, p := range w.props {
		if p.required {
			required++
		}
		if _, never := p.value.(nothing); !never {
			possible++
		}
	}
	switch {
	case w.most >= 0 && required > w.most:
		return unsatisfied(at+"/maxProperties", "%d properties are required", required)
	case len(w.extras) == 0 && w.least > possible:
		return unsatisfied(at+"/minProperties", "an object has at most %d members", possible)
	case w.least <= required && (w.most < 0 || len(w.extras) == 0 && w.most >= possible):
		w.least, w.most = 0, -1
	case w.places() > mostPlacesCounted:
		return refuse(at, "minProperties and maxProperties are not supported for so many properties")
	case len(w.extras) > 0 && w.least > len(w.props)+mostDistinct:
		return refuse(at+"/minProperties", "at most %d names of free choice are kept from being equal", mostDistinct)
	}
	return nil
}

const (
	// mostPatterns is how many patternProperties an object has: names are told apart by all of
	// them.
	mostPatterns = 40
	// mostDistinct is how many free names are kept from being equal, where they cannot be listed.
	mostDistinct = 6
	// mostListed is how many free names of an object are listed.
	mostListed = 64
	// mostPlacesCounted is how many places an object has by property and number of members.
	mostPlacesCounted = 1 << 14
)

// declared are the properties, and behind them names that are required and not declared.
func (w *objectWriter) declared(s, patterns *value) error {
	required := map[string]bool{}
	var list []*value
	if r := s.get("required"); r != nil {
		list = r.list
		if r.kind != kindArray || slices.ContainsFunc(list, func(n *value) bool { return n.kind != kindString }) {
			return refuse(show(w.path)+"/required", "it must be a list of names")
		}
	}
	for _, n := range list {
		required[n.text] = true
	}
	var names []string
	p := s.get("properties")
	if p != nil {
		if p.kind != kindObject {
			return refuse(show(w.path)+"/properties", "it must be an object")
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
		var value expr = nothing{}
		if w.names.allows(w.compiler, name) {
			var err error
			if value, err = w.valueOf(s, patterns, name); err != nil {
				return err
			}
		}
		if _, never := value.(nothing); !never || required[name] {
			w.props = append(w.props, property{name, value, required[name]})
		} else {
			w.props = append(w.props, property{name: name, value: nothing{}})
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

// valueOf is what the member of a name is: what is declared, and what the expressions that match
// its name say; or what additional ones are.
func (w *objectWriter) valueOf(s, patterns *value, name string) (expr, error) {
	var all []located
	if p := s.get("properties"); p != nil && p.get(name) != nil {
		all = append(all, located{p.get(name), w.path + "/properties/" + escapePointer(name)})
	}
	if patterns != nil {
		for _, m := range patterns.members {
			if w.matches(m.name, name, true) {
				all = append(all, located{m.value, w.path + "/patternProperties/" + escapePointer(m.name)})
			}
		}
	}
	return w.together(s, all)
}

// together is the value that all of some schemas allow; that of additional members where there are
// none.
func (w *objectWriter) together(s *value, all []located) (expr, error) {
	switch {
	case len(all) == 1:
		return w.refer(all[0].path)
	case len(all) > 1:
		return w.merged(w.path, all...)
	case s.get("additionalProperties") == nil:
		return w.anyValue(), nil
	case s.get("additionalProperties").isFalse():
		return nothing{}, nil
	}
	return w.part(w.path, "additionalProperties")
}

// additional finds the members that are not declared: for each way in which expressions match their
// names or do not, what their values are.
func (w *objectWriter) additional(s, patterns *value) error {
	if w.names.only != nil {
		return nil // each name is one of the properties
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
		e := extra{names: w.names.texts, others: len(list) == 0 && len(known) > 0}
		e.names.want, e.names.unwanted = slices.Clone(e.names.want), slices.Clone(e.names.unwanted)
		var all []located
		for i, m := range list {
			at := w.path + "/patternProperties/" + escapePointer(m.name)
			if set>>i&1 == 0 {
				e.names.unwanted = append(e.names.unwanted, m.name)
				continue
			}
			e.names.want = append(e.names.want, m.name)
			all = append(all, located{m.value, at})
		}
		if len(known) > 0 {
			e.names.unwanted = append(e.names.unwanted, "^(?:"+strings.Join(known, "|")+")$")
		}
		value, err := w.together(s, all)
		if err != nil {
			return err
		}
		if e.value = value; value != (nothing{}) {
			w.extras = append(w.extras, e)
		}
	}
	return nil
}

// wanted are the sets of expressions, by bits, that match a name together and without the others.
func (w *objectWriter) wanted(list []member, known []string) ([]uint64, error) {
	if len(list) == 0 {
		return []uint64{0}, nil
	}
	t := w.names.texts
	t.want, t.unwanted = slices.Clone(t.want), slices.Clone(t.unwanted)
	if len(known) > 0 {
		t.unwanted = append(t.unwanted, "^(?:"+strings.Join(known, "|")+")$")
	}
	for _, m := range list {
		if _, err := w.compiled(show(w.path+"/patternProperties/"+escapePointer(m.name)), m.name); err != nil {
			return nil, err
		}
		t.asked = append(t.asked, m.name)
	}
	return w.sets(show(w.path)+"/patternProperties", t)
}

// name returns what spells the names of an extra that are of a class.
func (w *objectWriter) name(e extra, class nameClass) (expr, error) {
	t := class.of(e.names)
	if t.mod == 0 && len(t.want) == 0 && t.least == 0 && t.most < 0 {
		switch {
		case len(t.unwanted) == 0:
			return w.text(0, -1), nil
		case len(t.unwanted) == 1 && e.others:
			return w.otherNames(w.props), nil
		}
	}
	if t.mod == 0 && len(t.want) == 1 && len(t.unwanted) == 0 {
		return w.pattern(show(w.path), t.want[0], t.least, t.most)
	}
	return w.product(show(w.path), t)
}
