package schema

import (
	"slices"
	"strings"

	"sandwich/runtime/grammar/internal/automaton"
	"sandwich/runtime/grammar/internal/pattern"
	"sandwich/runtime/grammar/internal/schema/document"
)

// compiler creates the rules of a schema, one per subschema, named by its path.
type compiler struct {
	*pattern.Patterns
	root   *document.Value
	at     map[string]automaton.RuleID
	inWork string  // path of the schema whose rule is being created
	schema *Schema // the schema whose keywords may be left out; nil if none may
	// leaves maps leafKey to rules.
	leaves map[string]automaton.RuleID
	todo   []string
	made   int                                 // number of schemas created by merging; their paths begin with !
	merges int                                 // total number of merged values
	flats  int                                 // number of flattened subschemas
	within map[*document.Value]bool            // schemas that are being flattened
	wides  map[*document.Value]*document.Value // cache of widened
	denied int                                 // number of negated schemas
	told   bool                                // negate formats as well, to distinguish the schemas of a oneOf
	extra  map[string]*document.Value
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

func newCompiler(b *automaton.Builder, root *document.Value) *compiler {
	return &compiler{Patterns: pattern.PatternsOf(b), root: root, at: map[string]automaton.RuleID{},
		leaves: map[string]automaton.RuleID{}}
}

// located is a schema and its path.
type located struct {
	schema *document.Value
	path   string
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
	visible := c.visible(document.Show(path))
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

// find returns the schema at a path: a JSON pointer into the root or into a merged schema.
func (c *compiler) find(path string) (*document.Value, error) {
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
		v = document.Child(v, document.PointerText.Replace(token))
		if v == nil {
			return nil, automaton.Refuse(document.Show(path), "the path does not exist in the schema")
		}
	}
	return v, nil
}

// part returns the rule of a schema below another one.
func (c *compiler) part(path string, names ...string) (automaton.Expr, error) {
	for _, n := range names {
		path += "/" + document.EscapePointer(n)
	}
	return c.refer(path)
}

// leafKey returns a key of a schema without subschemas; equal schemas have equal keys, so that the
// few schemas that large tool sets repeat share their rules. It returns an empty string for others.
func leafKey(s *document.Value) string {
	if s.Kind != document.KindObject {
		return ""
	}
	key := []byte{'{'}
	for _, m := range s.Members {
		if slices.Contains(document.Describing, m.Name) {
			continue
		}
		for _, x := range append(m.Value.List, m.Value) {
			if x.Kind == document.KindObject || x.Kind == document.KindArray && x != m.Value {
				return ""
			}
		}
		key = m.Value.Write(append(document.AppendQuoted(key, m.Name), ':'))
	}
	return string(key)
}

// where replaces the path of a merged schema in an error by that of the original schema.
func (c *compiler) where(err error) error {
	if e, ok := err.(*automaton.Error); ok {
		visible := *e
		visible.Path = c.visible(e.Path)
		return &visible
	}
	return err
}

// maxShown is the number of nested merged schemas that visible resolves exactly. Beyond it the
// path is that of an outer schema.
const maxShown = 16

// visible returns the path in the original schema for the path of a merged one.
func (c *compiler) visible(path string) string {
	for hops := 0; strings.HasPrefix(path, "#!"); hops++ {
		name, rest, below := strings.Cut(path[1:], "/")
		if path = document.Show(c.origin[name]); below && hops < maxShown {
			path += "/" + rest
		}
	}
	return path
}

// Schema is a JSON Schema whose parts are used in a composed grammar. It must be used by only one
// compilation at a time.
type Schema struct {
	text []byte
	note func(path, reason string)
	root *document.Value // nil until parsed
	left int             // number of keywords that may still be left out; below 0: the whole schema was dropped
	of   *compiler
}

// maxFlat is the largest number of subschemas visited for merging.
const maxFlat = 1 << 16

// maxNested is the largest nesting depth of references between schemas that apply to the same
// value.
const maxNested = 256
