package grammar

import (
	"regexp"
	"slices"
	"strings"
)

// objectWriter makes the objects of a schema: its properties in their order, each where it is
// required or chosen, then any number of additional ones.
type objectWriter struct {
	*compiler
	path        string
	props       []property
	extras      []extra
	least, most int
	names       nameRule
}

// property is a declared member of an object.
type property struct {
	name     string
	value    expr
	required bool
}

// extra are members that are not declared: their names, and the value of each.
type extra struct {
	names texts
	value expr
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
	if err := w.declared(s, patterns); err != nil {
		return nil, err
	}
	if err := w.additional(s, patterns); err != nil {
		return nil, err
	}
	free := len(w.extras) == 1 && len(w.extras[0].names.want)+len(w.extras[0].names.unwanted) == 0 &&
		w.extras[0].names.least == 0 && w.extras[0].names.most < 0
	if len(w.props) == 0 && free && w.least <= 1 {
		return c.table(c.text(0, -1), w.extras[0].value, w.least, w.most), nil
	}
	required := 0
	for _, p := range w.props {
		if p.required {
			required++
		}
	}
	switch {
	case w.most >= 0 && required > w.most:
		return nil, unsatisfied(show(path)+"/maxProperties", "%d properties are required", required)
	case w.least <= required && (w.most < 0 || len(w.extras) == 0 && w.most >= len(w.props)):
		w.least, w.most = 0, -1 // it is so anyway
	case (len(w.props)+1)*(max(w.least, w.most)+1) > 1<<14:
		return nil, refuse(show(path), "minProperties and maxProperties are counted beside fewer properties only")
	case len(w.extras) > 0 && w.least > required+mostDistinct:
		return nil, refuse(show(path)+"/minProperties", "more than %d names of free choice are not told apart",
			mostDistinct)
	}
	// Rules are made before any is written.
	w.space()
	w.char()
	w.text(0, -1)
	return automaton(w.write), nil
}

const (
	// mostPatterns is how many patternProperties an object has: names are told apart by all of
	// them.
	mostPatterns = 40
	// mostDistinct is how many free names are kept from being equal.
	mostDistinct = 6
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
		e := extra{names: w.names.texts}
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

// write makes for each property a state before its name, where it and those behind it up to the
// next required one may follow, and one behind the member before it; both for each number of
// members so far, where they are counted.
func (w *objectWriter) write(b *builder, from, to int32) {
	space := w.space()
	comma := sequence{space, literal(","), space}
	n, last := len(w.props), max(w.least, w.most)
	names, behind := make([][]int32, n+1), make([][]int32, n+1)
	for i := range names {
		for range last + 1 {
			names[i], behind[i] = append(names[i], b.state()), append(behind[i], b.state())
		}
	}
	open, end := b.state(), b.state()
	b.edge(from, open, byteRange{'{', '{'})
	b.write(space, open, names[0][0])
	must := false // one of the properties from i on is required
	for i := n; i >= 0; i-- {
		must = must || i < n && w.props[i].required
		for k := range last + 1 {
			if w.most < 0 || k < w.most {
				if i < n {
					p := &w.props[i]
					b.write(sequence{literal(appendQuoted(nil, p.name)), space, literal(":"), space, p.value},
						names[i][k],
						behind[i+1][min(k+1, last)])
				} else {
					w.writeExtras(b, names[n][k], k, behind[n])
				}
				if i > 0 && (i < n || len(w.extras) > 0) {
					b.write(comma, behind[i][k], names[i][k])
				}
			}
			if i < n && !w.props[i].required {
				b.eps(names[i][k], names[i+1][k])
			}
			if !must && k >= w.least {
				b.eps(behind[i][k], end)
			}
		}
	}
	if n == 0 && len(w.extras) > 0 {
		for k := range last + 1 {
			if w.most < 0 || k < w.most {
				b.write(comma, behind[0][k], names[0][k])
			}
		}
	}
	if !must && w.least == 0 {
		b.eps(open, end)
	}
	b.write(sequence{space, literal("}")}, end, to)
}

// writeExtras makes ways for members that are not declared, k members being there already. Where
// more than one is missing their names must differ: the lengths of so many leave different
// remainders when divided by their number.
func (w *objectWriter) writeExtras(b *builder, from int32, k int, behind []int32) {
	if len(w.extras) == 0 {
		return
	}
	last := len(behind) - 1
	missing := w.least - k
	if missing < 2 {
		w.pair(b, from, behind[min(k+1, last)], 0, 0)
		return
	}
	space := w.space()
	for first := range missing {
		at := from
		for j := range missing {
			next := b.state()
			w.pair(b, at, next, missing, (first+j)%missing)
			if at = next; j < missing-1 {
				at = b.state()
				b.write(sequence{space, literal(","), space}, next, at)
			}
		}
		b.eps(at, behind[w.least])
	}
}

// pair is a member that is not declared, whose name is of such a length.
func (w *objectWriter) pair(b *builder, from, to int32, mod, rest int) {
	space := w.space()
	for _, e := range w.extras {
		t := e.names
		t.mod, t.rest = mod, rest
		name, err := w.name(t)
		if err != nil {
			panic(err)
		}
		b.write(sequence{name, space, literal(":"), space, e.value}, from, to)
	}
}

// name is what spells the names of an extra.
func (w *objectWriter) name(t texts) (expr, error) {
	if t.mod == 0 && len(t.want) == 0 && t.least == 0 && t.most < 0 {
		switch {
		case len(t.unwanted) == 0:
			return w.text(0, -1), nil
		case len(t.unwanted) == 1 && len(w.props) > 0:
			return w.otherNames(w.props), nil
		}
	}
	if t.mod == 0 && len(t.want) == 1 && len(t.unwanted) == 0 {
		return w.pattern(show(w.path), t.want[0], t.least, t.most)
	}
	e, err := w.product(show(w.path), t)
	if err != nil {
		return nil, err
	}
	return e, nil
}
