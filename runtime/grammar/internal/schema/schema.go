// Package schema compiles JSON Schemas to programs of package automaton.
package schema

import (
	"slices"

	"sandwich/runtime/grammar/internal/automaton"
	"sandwich/runtime/grammar/internal/schema/document"
)

// Compile returns the program of a JSON Schema (draft 2020-12, and items, definitions and
// dependencies of draft 7). Answers have the members of objects in the order of the schema's
// properties, followed by additional ones. An unsupported keyword is an *automaton.Error with the
// path of the keyword. Keywords that only describe and unknown formats are ignored.
func Compile(schema []byte, m *automaton.Meter) (*automaton.Program, error) {
	m.Begin()
	root, err := document.ReadSchema(schema, m)
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
	}, func() string { return document.Show(c.inWork) })
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
			refused.Path = document.Show(path)
		}
		return nil, refused
	}
	return e, err
}

// expr returns an expression for a schema.
func (c *compiler) expr(s *document.Value, path string) (automaton.Expr, error) {
	switch {
	case s.IsTrue():
		return c.AnyValue(), nil
	case s.IsFalse():
		return automaton.Nothing{}, nil
	case s.Kind != document.KindObject:
		return nil, automaton.Refuse(document.Show(path), "a schema must be an object, true or false")
	}
	for _, combine := range []func(*document.Value, string) (automaton.Expr, bool, error){c.unevaluated, c.conditions,
		c.reference,
		c.allOf, c.choices, c.constants} {
		if e, done, err := combine(s, path); done || err != nil {
			return e, err
		}
	}
	return c.typed(s, path)
}

// typed returns an expression for the keywords of each type.
func (c *compiler) typed(s *document.Value, path string) (automaton.Expr, error) {
	names, err := document.Types(s, path)
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
			if t == "integer" && slices.Contains(names, "number") {
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
