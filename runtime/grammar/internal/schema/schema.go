// Package schema compiles JSON Schemas to programs of package automaton.
package schema

import (
	"strconv"
	"strings"

	"sandwich/runtime/grammar/internal/automaton"
	"sandwich/runtime/grammar/internal/pattern"
)

// Compile returns the program of a JSON Schema (draft 2020-12, and items, definitions and
// dependencies of draft 7). Answers have the members of objects in the order of the schema's
// properties, followed by additional ones. An unsupported keyword is an *automaton.Error with the
// path of the keyword. Keywords that only describe and unknown formats are ignored.
func Compile(schema []byte, m *automaton.Meter) (*automaton.Program, error) {
	m.Begin()
	root, err := readSchema(schema, m)
	if err != nil {
		return nil, err
	}
	c := newCompiler(automaton.NewBuilder(m), root)
	p, err := c.compile("")
	if err != nil {
		return nil, c.where(err)
	}
	return p, nil
}

// compiler creates the rules of a schema, one per subschema, named by its path.
type compiler struct {
	*pattern.Patterns
	root   *value
	at     map[string]automaton.RuleID
	inWork string  // path of the schema whose rule is being created
	schema *Schema // the schema whose keywords may be left out; nil if none may
	// leaves maps leafKey to rules.
	leaves map[string]automaton.RuleID
	todo   []string
	made   int               // number of schemas created by merging; their paths begin with !
	merges int               // total number of merged values
	flats  int               // number of flattened subschemas
	within map[*value]bool   // schemas that are being flattened
	wides  map[*value]*value // cache of widened
	denied int               // number of negated schemas
	told   bool              // negate formats as well, to distinguish the schemas of a oneOf
	extra  map[string]*value
	// anchors maps names to paths; it is nil until the first look-up. twice contains ambiguous
	// names.
	anchors map[string]string
	twice   map[string]bool
	inner   bool // a schema below the root has an $id
	// origin maps a merged schema to the path that it was created for, and alike a text to its
	// path.
	origin, alike map[string]string
	// none is the error of the first unsatisfiable schema.
	none *automaton.Error
}

func newCompiler(b *automaton.Builder, root *value) *compiler {
	return &compiler{Patterns: pattern.PatternsOf(b), root: root, at: map[string]automaton.RuleID{},
		leaves: map[string]automaton.RuleID{}}
}

// compile returns the program of the schema at a path.
func (c *compiler) compile(path string) (*automaton.Program, error) {
	e, err := c.rules(path)
	if err != nil {
		return nil, err
	}
	p, err := c.Link(e.Rule)
	if over, ok := err.(*automaton.Error); ok && over.None && c.none != nil {
		return nil, c.none
	}
	if err != nil {
		return nil, err
	}
	return p, nil
}

// rules defines the rule of the schema at a path and those of all schemas that it refers to.
func (c *compiler) rules(path string) (root automaton.Call, err error) {
	c.inWork = path
	err = automaton.Guard(func() (err error) {
		root, err = c.allRules(path)
		return err
	}, func() string { return show(c.inWork) })
	return root, err
}

func (c *compiler) allRules(path string) (automaton.Call, error) {
	if _, err := c.find(path); err != nil {
		return automaton.Call{}, err
	}
	root, err := c.refer(path)
	if err != nil {
		return automaton.Call{}, err
	}
	for len(c.todo) > 0 {
		path := c.todo[len(c.todo)-1]
		c.todo = c.todo[:len(c.todo)-1]
		c.inWork = path
		e, err := c.exprAt(path)
		for err != nil && c.schema != nil && c.schema.Relax(err, path, false) {
			e, err = c.exprAt(path)
		}
		if err != nil {
			return automaton.Call{}, err
		}
		c.Define(c.at[path], e)
	}
	return root, nil
}

// exprAt returns an expression for the schema at a path.
func (c *compiler) exprAt(path string) (automaton.Expr, error) {
	s, err := c.find(path)
	if err != nil {
		return nil, err
	}
	e, err := c.expr(s, path)
	if refused := c.Refused; refused != nil {
		c.Refused = nil
		if refused.Path == "" {
			refused.Path = show(path)
		}
		return nil, refused
	}
	return e, err
}

// refer returns a call of the rule of the schema at a path, which is defined later.
func (c *compiler) refer(path string) (automaton.Call, error) {
	if r, ok := c.at[path]; ok {
		return automaton.Call{Rule: r}, nil
	}
	s, err := c.find(path)
	if err != nil {
		return automaton.Call{}, err
	}
	key := leafKey(s)
	if r, ok := c.leaves[key]; ok && key != "" {
		c.Meter.Take(automaton.EntryCost + len(path))
		c.at[path] = r
		return automaton.Call{Rule: r}, nil
	}
	visible := c.visible(show(path))
	c.Meter.Take(2*automaton.EntryCost + 3*len(path) + len(visible) + len(key))
	r := c.Rule(visible)
	if c.schema != nil {
		c.Builder.Rules[r].Of = c.schema
	}
	c.at[path] = r
	if c.leaves[key] = r; len(c.leaves) > 1<<16 {
		clear(c.leaves)
	}
	c.todo = append(c.todo, path)
	return automaton.Call{Rule: r}, nil
}

// leafKey returns a key of a schema without subschemas; equal schemas have equal keys, so that the
// few schemas that large tool sets repeat share their rules. It returns an empty string for others.
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

// show formats a path for errors.
func show(path string) string { return "#" + path }

// find returns the schema at a path: a JSON pointer into the root or into a merged schema.
func (c *compiler) find(path string) (*value, error) {
	c.Meter.Work(len(path) / 4)
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
			return nil, automaton.Refuse(show(path), "the path does not exist in the schema")
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

// part returns the rule of a schema below another one.
func (c *compiler) part(path string, names ...string) (automaton.Expr, error) {
	for _, n := range names {
		path += "/" + escapePointer(n)
	}
	return c.refer(path)
}

// expr returns an expression for a schema.
func (c *compiler) expr(s *value, path string) (automaton.Expr, error) {
	switch {
	case s.isTrue():
		return c.AnyValue(), nil
	case s.isFalse():
		return automaton.Nothing{}, nil
	case s.kind != kindObject:
		return nil, automaton.Refuse(show(path), "a schema must be an object, true or false")
	}
	for _, combine := range []func(*value, string) (automaton.Expr, bool, error){c.unevaluated, c.conditions,
		c.reference,
		c.allOf, c.choices, c.constants} {
		if e, done, err := combine(s, path); done || err != nil {
			return e, err
		}
	}
	return c.typed(s, path)
}

// typeNames are the types of JSON Schema. "number" includes integers.
var typeNames = []string{"object", "array", "string", "number", "integer", "boolean", "null"}

// types returns the types of the keyword type, or all types if it is missing.
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
		return nil, automaton.Refuse(show(path)+"/type", "the value must be the name of a type or a list of them")
	}
	var out []string
	for _, x := range list {
		if x.text == neverType {
			return nil, nil
		}
		if x.kind != kindString || !contains(typeNames, x.text) {
			return nil, automaton.Refuse(show(path)+"/type", "%q is not a type; the types are %s",
				automaton.Clip(x.text),
				strings.Join(typeNames, ", "))
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

// typed returns an expression for the keywords of each type.
func (c *compiler) typed(s *value, path string) (automaton.Expr, error) {
	names, err := types(s, path)
	if err != nil {
		return nil, err
	}
	var out automaton.Choice
	for _, t := range names {
		var e automaton.Expr
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
			e = automaton.Words{"true", "false"}
		case "null":
			e = automaton.Literal("null")
		}
		if none, ok := err.(*automaton.Error); ok && none.None {
			if c.none == nil {
				c.none = none
			}
			continue // other types may be satisfiable
		}
		if err != nil {
			return nil, err
		}
		out = append(out, e)
	}
	return out, nil
}
