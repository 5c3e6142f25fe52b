package schema

import (
	"math/big"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"sandwich/runtime/grammar/internal/automaton"
)

func itoa(i int) string { return strconv.Itoa(i) }

// describing are keywords that do not affect validation.
var describing = []string{"title", "description", "default", "examples", "example", "deprecated", "readOnly",
	"writeOnly", "nullable", "discriminator", "$schema", "$id", "$comment", "$anchor", "$dynamicAnchor",
	"$recursiveAnchor", "$vocabulary", "$defs", "definitions", "strict"}

// without returns a schema without some of its keywords, or nil if only describing ones remain.
func (v *value) without(keys ...string) *value {
	out := &value{kind: kindObject}
	asserts := false
	for _, m := range v.members {
		if slices.Contains(keys, m.name) {
			continue
		}
		out.members = append(out.members, m)
		asserts = asserts || !slices.Contains(describing, m.name)
	}
	if !asserts {
		return nil
	}
	return out
}

// referring are the keywords that refer to a schema.
var referring = []string{"$ref", "$dynamicRef", "$recursiveRef"}

// reference resolves references. Other keywords of the schema apply as well.
func (c *compiler) reference(s *value, path string) (automaton.Expr, bool, error) {
	for _, key := range referring {
		r := s.get(key)
		if r == nil {
			continue
		}
		target, err := c.resolve(key, r, path)
		if err != nil {
			return nil, false, err
		}
		rest := s.without(key)
		if rest == nil {
			e, err := c.refer(target)
			return e, true, err
		}
		v, err := c.find(target)
		if err != nil {
			return nil, false, err
		}
		e, err := c.merged(path, located{v, target}, located{rest, path})
		return e, true, err
	}
	return nil, false, nil
}

// inPlace returns the schemas of references and allOf, which apply to the same value.
func (c *compiler) inPlace(x located) (parts []located, err error) {
	for _, key := range referring {
		r := x.schema.get(key)
		if r == nil {
			continue
		}
		target, err := c.resolve(key, r, x.path)
		if err != nil {
			return nil, err
		}
		v, err := c.find(target)
		if err != nil {
			return nil, err
		}
		parts = append(parts, located{v, target})
	}
	if l := x.schema.get("allOf"); l != nil {
		for i, y := range l.list {
			parts = append(parts, located{y, x.path + "/allOf/" + itoa(i)})
		}
	}
	return parts, nil
}

// resolve returns the path of a reference. A dynamic reference is resolved like a plain one if only
// one place of the document has the name, because no other dynamic scope can exist then.
func (c *compiler) resolve(key string, r *value, path string) (string, error) {
	at := show(path) + "/" + key
	ref, ok := strings.CutPrefix(r.text, "#")
	if r.kind != kindString || !ok {
		return "", automaton.Refuse(at,
			"%q is outside the schema; only references to paths and to $id inside the schema are "+
				"supported", automaton.Clip(r.text))
	}
	if c.anchors == nil {
		c.anchors, c.twice = map[string]string{}, map[string]bool{}
		c.noteAnchors(c.root, nil)
	}
	switch {
	case key == "$dynamicRef" && c.twice[ref], key == "$recursiveRef" && c.inner:
		return "", automaton.Refuse(at, "%q has no unique target, because it depends on the dynamic scope",
			automaton.Clip(r.text))
	case ref != "" && ref[0] != '/':
		if found, ok := c.anchors[ref]; ok {
			return found, nil
		}
		return "", automaton.Refuse(at, "the schema has no anchor %q", automaton.Clip(ref))
	}
	if plain, err := url.PathUnescape(ref); err == nil {
		if _, err := c.find(plain); err == nil {
			return plain, nil
		}
	}
	if _, err := c.find(ref); err != nil {
		return "", automaton.Refuse(at, "%q does not exist in the schema", automaton.Clip(r.text))
	}
	return ref, nil
}

// noteAnchors collects the anchors of the schema. The first of equal ones wins.
func (c *compiler) noteAnchors(v *value, at *trail) {
	c.Meter.Work(4)
	for _, key := range []string{"$anchor", "$dynamicAnchor"} {
		if a := v.get(key); a != nil && a.kind == kindString {
			if _, met := c.anchors[a.text]; met {
				c.twice[a.text] = true
			} else {
				path := at.path()
				c.Meter.Take(automaton.EntryCost + len(path))
				c.anchors[a.text] = path
			}
		}
	}
	if id := v.get("$id"); at != nil && id != nil && id.kind == kindString {
		c.inner = true
	}
	for _, m := range v.members {
		c.noteAnchors(m.value, &trail{at, m.name})
	}
	for i, x := range v.list {
		c.noteAnchors(x, &trail{at, itoa(i)})
	}
}

// allOf merges its schemas and the other keywords into one schema.
func (c *compiler) allOf(s *value, path string) (automaton.Expr, bool, error) {
	list := s.get("allOf")
	if list == nil {
		return nil, false, nil
	}
	if list.kind != kindArray || len(list.list) == 0 {
		return nil, false, automaton.Refuse(show(path)+"/allOf", "the value must be a list of schemas")
	}
	var all []located
	if rest := s.without("allOf"); rest != nil {
		all = append(all, located{rest, path})
	}
	for i, x := range list.list {
		all = append(all, located{x, path + "/allOf/" + itoa(i)})
	}
	e, err := c.merged(path, all...)
	return e, true, err
}

// choices handles anyOf and oneOf.
func (c *compiler) choices(s *value, path string) (automaton.Expr, bool, error) {
	key := "anyOf"
	list := s.get(key)
	if list == nil {
		if list = s.get("oneOf"); list == nil {
			return nil, false, nil
		}
		key = "oneOf"
	}
	if list.kind != kindArray || len(list.list) == 0 {
		return nil, false, automaton.Refuse(show(path)+"/"+key, "the value must be a list of schemas")
	}
	rest := s.without(key)
	if key == "oneOf" {
		flat, conflicts, err := c.overlapping(list, path)
		if err != nil {
			return nil, false, err
		}
		if slices.ContainsFunc(conflicts, func(others []int) bool { return len(others) > 0 }) {
			e, err := c.exclusive(list, rest, path, flat, conflicts)
			return e, true, err
		}
	}
	var out automaton.Choice
	met := map[automaton.RuleID]bool{}
	for i, x := range list.list {
		at := path + "/" + key + "/" + itoa(i)
		var e automaton.Expr
		var err error
		if rest == nil {
			if key := leafKey(x); key != "" {
				if r, known := c.leaves[key]; known && met[r] {
					continue // equal to an earlier alternative
				}
			}
			var r automaton.Call
			r, err = c.refer(at)
			met[r.Rule], e = true, r
		} else {
			e, err = c.merged(path, located{rest, path}, located{x, at})
		}
		if err != nil {
			return nil, false, err
		}
		out = append(out, e)
	}
	return out, true, nil
}

// constants handles enum and const. It drops values that the type or the bounds do not allow.
func (c *compiler) constants(s *value, path string) (automaton.Expr, bool, error) {
	list := s.get("enum")
	if k := s.get("const"); k != nil {
		if list != nil && !slices.ContainsFunc(list.list, func(x *value) bool { return x.equal(k) }) {
			return automaton.Nothing{}, true, nil
		}
		list = &value{kind: kindArray, list: []*value{k}}
	}
	if list == nil {
		return nil, false, nil
	}
	if list.kind != kindArray {
		return nil, false, automaton.Refuse(show(path)+"/enum", "the value must be a list")
	}
	names, err := types(s, path)
	if err != nil {
		return nil, false, err
	}
	t, err := c.texts(s, path)
	if err != nil {
		return nil, false, err
	}
	n, err := c.bounds(s, path)
	if err != nil {
		return nil, false, err
	}
	structured := slices.ContainsFunc(list.list, func(x *value) bool {
		return x.kind == kindObject ||
			x.kind == kindArray
	})
	for _, m := range s.members {
		if structured && slices.Contains(asserting, m.name) {
			return nil, false, automaton.Refuse(show(path)+"/"+escapePointer(m.name),
				"the keyword is not supported together with "+
					"constants that are objects or arrays")
		}
	}
	var w automaton.Words
	for _, x := range list.list {
		holds := x.kind != kindString || c.hasText(t, x.text)
		if r, ok := rational(x); x.kind == kindNumber {
			holds = n.None() || ok && n.Holds(r)
		}
		if holds && x.hasType(names) {
			text := string(x.write(nil))
			c.Meter.Take(16 + len(text))
			w = append(w, text)
		}
	}
	return w, true, nil
}

// asserting are the keywords that would have to be checked for each structured constant.
var asserting = []string{"properties", "required", "additionalProperties", "patternProperties", "items", "prefixItems",
	"additionalItems", "minItems", "maxItems", "minProperties", "maxProperties", "propertyNames", "uniqueItems",
	"contains"}

// hasType reports whether a value has one of the types.
func (v *value) hasType(names []string) bool {
	switch v.kind {
	case kindNull:
		return slices.Contains(names, "null")
	case kindBool:
		return slices.Contains(names, "boolean")
	case kindString:
		return slices.Contains(names, "string")
	case kindObject:
		return slices.Contains(names, "object")
	case kindArray:
		return slices.Contains(names, "array")
	}
	if slices.Contains(names, "number") {
		return true
	}
	x, ok := rational(v)
	return ok && x.IsInt() && slices.Contains(names, "integer")
}

// key returns a text that is the same for equal values only.
func (v *value) key() string {
	switch v.kind {
	case kindNumber:
		if x, ok := rational(v); ok {
			return "d" + x.RatString()
		}
	case kindArray:
		out := "["
		for _, x := range v.list {
			k := x.key()
			out += itoa(len(k)) + ":" + k
		}
		return out
	case kindObject:
		var all []string
		for _, m := range v.members {
			k := m.value.key()
			all = append(all, itoa(len(m.name))+":"+m.name+itoa(len(k))+":"+k)
		}
		slices.Sort(all)
		return "{" + strings.Join(all, ",")
	}
	return string(v.kind) + v.text
}

func keysOf(list []*value) map[string]bool {
	out := make(map[string]bool, len(list))
	for _, x := range list {
		out[x.key()] = true
	}
	return out
}

// equal reports whether two values are equal; numbers are compared by value.
func (v *value) equal(w *value) bool {
	if v.kind != w.kind || len(v.list) != len(w.list) || len(v.members) != len(w.members) {
		return false
	}
	if v.kind == kindNumber {
		a, ok1 := rational(v)
		b, ok2 := rational(w)
		return v.text == w.text || ok1 && ok2 && (*big.Rat).Cmp(a, b) == 0
	}
	for i := range v.list {
		if !v.list[i].equal(w.list[i]) {
			return false
		}
	}
	for _, m := range v.members {
		if x := w.get(m.name); x == nil || !m.value.equal(x) {
			return false
		}
	}
	return v.text == w.text
}
