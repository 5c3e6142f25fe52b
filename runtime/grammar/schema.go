package grammar

import (
	"context"
	"strconv"
	"strings"
)

// FromSchema reads a JSON Schema (draft 2020-12; items, definitions and dependencies of draft 7 are
// understood, too). Answers have the members of objects in the order in which the schema has its
// properties, additional ones last. What is not supported is refused by the path of its keyword;
// keywords that only describe are passed over, as are formats that are not known.
func FromSchema(schema []byte) (*Grammar, error) {
	return NewMeter(context.Background(), Limits{}).FromSchema(schema)
}

// FromSchema is the function FromSchema within the limits of the Meter.
func (m *Meter) FromSchema(schema []byte) (*Grammar, error) {
	m.begin()
	root, err := readSchema(schema, m)
	if err != nil {
		return nil, err
	}
	c := newCompiler(newBuilder(m), root)
	g, err := c.grammar("")
	if err != nil {
		return nil, c.where(err)
	}
	return g, nil
}

// compiler writes the rules of a schema, one for each of its parts, named by its path.
type compiler struct {
	*builder
	root   *value
	at     map[string]ruleID
	inWork string  // the path of the schema whose rule is being made
	schema *Schema // of which keywords may be left out; nil: none may
	// leaves are the rules of leafKey.
	leaves map[string]ruleID
	todo   []string
	made   int               // schemas that were made by merging, under names of their own in place of a path
	merges int               // values in all that were merged
	flats  int               // parts of schemas that were flattened
	within map[*value]bool   // schemas that are being flattened
	wides  map[*value]*value // of schemas, as of widened
	denied int               // schemas of which it was asked what they do not allow
	told   bool              // what formats do not allow is said, too: schemas of a oneOf are told apart
	extra  map[string]*value
	// anchors are paths by their names, nil before one is asked for; twice are names that several
	// places have.
	anchors map[string]string
	twice   map[string]bool
	inner   bool // a schema below the root has an $id of its own
	// origin is the path of the schema that a merged one was made for, alike the one of a text.
	origin, alike map[string]string
	// none is why nothing satisfies the first schema that was found so.
	none *Error
}

func newCompiler(b *builder, root *value) *compiler {
	return &compiler{builder: b, root: root, at: map[string]ruleID{}, leaves: map[string]ruleID{}}
}

func (c *compiler) grammar(path string) (*Grammar, error) {
	e, err := c.rules(path)
	if err != nil {
		return nil, err
	}
	p, err := c.link(e.rule)
	if over, ok := err.(*Error); ok && over.none && c.none != nil {
		return nil, c.none
	}
	if err != nil {
		return nil, err
	}
	return newGrammar(p, c.meter), nil
}

// rules defines the rule of the schema at a path and those of all schemas that it refers to.
func (c *compiler) rules(path string) (root call, err error) {
	c.inWork = path
	err = guard(func() (err error) {
		root, err = c.allRules(path)
		return err
	}, func() string { return show(c.inWork) })
	return root, err
}

func (c *compiler) allRules(path string) (call, error) {
	if _, err := c.find(path); err != nil {
		return call{}, err
	}
	root, err := c.refer(path)
	if err != nil {
		return call{}, err
	}
	for len(c.todo) > 0 {
		path := c.todo[len(c.todo)-1]
		c.todo = c.todo[:len(c.todo)-1]
		c.inWork = path
		e, err := c.exprAt(path)
		for err != nil && c.schema != nil && c.schema.relax(err, path, false) {
			e, err = c.exprAt(path)
		}
		if err != nil {
			return call{}, err
		}
		c.define(c.at[path], e)
	}
	return root, nil
}

// exprAt is what the schema at a path allows.
func (c *compiler) exprAt(path string) (expr, error) {
	s, err := c.find(path)
	if err != nil {
		return nil, err
	}
	e, err := c.expr(s, path)
	if refused := c.refused; refused != nil {
		c.refused = nil
		if refused.Path == "" {
			refused.Path = show(path)
		}
		return nil, refused
	}
	return e, err
}

// refer returns the rule of the schema at a path, which is defined later.
func (c *compiler) refer(path string) (call, error) {
	if r, ok := c.at[path]; ok {
		return call{r}, nil
	}
	s, err := c.find(path)
	if err != nil {
		return call{}, err
	}
	key := leafKey(s)
	if r, ok := c.leaves[key]; ok && key != "" {
		c.meter.take(entryCost + len(path))
		c.at[path] = r
		return call{r}, nil
	}
	visible := c.visible(show(path))
	c.meter.take(2*entryCost + 3*len(path) + len(visible) + len(key))
	r := c.rule(visible)
	c.builder.rules[r].of = c.schema
	c.at[path] = r
	if c.leaves[key] = r; len(c.leaves) > 1<<16 {
		clear(c.leaves)
	}
	c.todo = append(c.todo, path)
	return call{r}, nil
}

// leafKey is what a schema without schemas below it says, the same for all that say the same: large
// tool sets repeat a few of them and get one rule for each. Empty for others.
func leafKey(s *value) string {
	if s.kind != kindObject {
		return ""
	}
	key := []byte{'{'}
	for _, m := range s.members {
		if contains(describing, m.name) {
			continue
		}
		for _, x := range append(m.value.list, m.value) {
			if x.kind == kindObject || x.kind == kindArray && x != m.value {
				return ""
			}
		}
		key = m.value.write(append(appendQuoted(key, m.name), ':'))
	}
	return string(key)
}

// show is a path as errors have it.
func show(path string) string { return "#" + path }

// find is the schema at a path: a JSON pointer into the root, or into a merged one.
func (c *compiler) find(path string) (*value, error) {
	c.meter.work(len(path) / 4)
	v := c.root
	rest := path
	if strings.HasPrefix(path, "!") {
		name, tail, _ := strings.Cut(path, "/")
		v, rest = c.extra[name], ""
		if tail != "" {
			rest = "/" + tail
		}
	}
	for rest != "" {
		token, tail, more := strings.Cut(rest[1:], "/")
		rest = ""
		if more {
			rest = "/" + tail
		}
		v = child(v, pointerText.Replace(token))
		if v == nil {
			return nil, refuse(show(path), "there is no such place in the schema")
		}
	}
	return v, nil
}

var pointerText = strings.NewReplacer("~1", "/", "~0", "~")

func child(v *value, name string) *value {
	switch v.kind {
	case kindObject:
		return v.get(name)
	case kindArray:
		if i, err := strconv.Atoi(name); err == nil && i >= 0 && i < len(v.list) {
			return v.list[i]
		}
	}
	return nil
}

// part is the rule of a schema below another one.
func (c *compiler) part(path string, names ...string) (expr, error) {
	for _, n := range names {
		path += "/" + escapePointer(n)
	}
	return c.refer(path)
}

// expr is what a schema allows.
func (c *compiler) expr(s *value, path string) (expr, error) {
	switch {
	case s.isTrue():
		return c.anyValue(), nil
	case s.isFalse():
		return nothing{}, nil
	case s.kind != kindObject:
		return nil, refuse(show(path), "a schema must be an object, true or false")
	}
	for _, combine := range []func(*value, string) (expr, bool, error){c.unevaluated, c.conditions, c.reference,
		c.allOf, c.choices, c.constants} {
		if e, done, err := combine(s, path); done || err != nil {
			return e, err
		}
	}
	return c.typed(s, path)
}

// typeNames are the types that JSON Schema knows; every number is a "number".
var typeNames = []string{"object", "array", "string", "number", "integer", "boolean", "null"}

// types are the types that a schema allows: those of its keyword, or all.
func types(s *value, path string) ([]string, error) {
	t := s.get("type")
	if t == nil {
		return []string{"object", "array", "string", "number", "boolean", "null"}, nil
	}
	list := t.list
	if t.kind == kindString {
		list = []*value{t}
	}
	if len(list) == 0 {
		return nil, refuse(show(path)+"/type", "it must be the name of a type or a list of them")
	}
	var out []string
	for _, x := range list {
		if x.text == neverType {
			return nil, nil
		}
		if x.kind != kindString || !contains(typeNames, x.text) {
			return nil, refuse(show(path)+"/type", "%q is no type: there are %s", clip(x.text), strings.Join(typeNames,
				", "))
		}
		out = append(out, x.text)
	}
	return out, nil
}

func contains(list []string, s string) bool {
	for _, x := range list {
		if x == s {
			return true
		}
	}
	return false
}

// typed is what the keywords of each type allow.
func (c *compiler) typed(s *value, path string) (expr, error) {
	names, err := types(s, path)
	if err != nil {
		return nil, err
	}
	var out choice
	for _, t := range names {
		var e expr
		switch t {
		case "object":
			e, err = c.object(s, path)
		case "array":
			e, err = c.array(s, path)
		case "string":
			e, err = c.stringType(s, path)
		case "number", "integer":
			if t == "integer" && contains(names, "number") {
				continue
			}
			e, err = c.numberType(s, path, t == "integer")
		case "boolean":
			e = words{"true", "false"}
		case "null":
			e = literal("null")
		}
		if none, ok := err.(*Error); ok && none.none {
			if c.none == nil {
				c.none = none
			}
			continue // others may be left
		}
		if err != nil {
			return nil, err
		}
		out = append(out, e)
	}
	return out, nil
}
