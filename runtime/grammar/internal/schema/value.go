package schema

import "sandwich/runtime/grammar/internal/automaton"

// value is a JSON value that keeps the order of members. Values are shared and do not change after
// settle.
type value struct {
	kind    byte // one of kindNull to kindArray
	text    string
	list    []*value
	members []member
	index   map[string]int // index of members, if there are many
}

type member struct {
	name  string
	value *value
}

const (
	kindNull   = 'n'
	kindBool   = 'b'
	kindNumber = 'd'
	kindString = 's'
	kindObject = '{'
	kindArray  = '['
)

// get returns a member of an object, or nil.
func (v *value) get(name string) *value {
	if len(v.members) > 16 {
		if len(v.index) != len(v.members) {
			v.index = make(map[string]int, len(v.members))
			for i, m := range v.members {
				v.index[m.name] = i
			}
		}
		if i, ok := v.index[name]; ok {
			return v.members[i].value
		}
		return nil
	}
	for i := range v.members {
		if v.members[i].name == name {
			return v.members[i].value
		}
	}
	return nil
}

// isTrue reports whether v is the value true.
func (v *value) isTrue() bool { return v != nil && v.kind == kindBool && v.text == "true" }

// isFalse reports whether v is the value false.
func (v *value) isFalse() bool { return v != nil && v.kind == kindBool && v.text == "false" }

// write appends the value as compact JSON. This is the only spelling of constants that is
// generated.
func (v *value) write(to []byte) []byte {
	switch v.kind {
	case kindString:
		return appendQuoted(to, v.text)
	case kindArray:
		to = append(to, '[')
		for i, x := range v.list {
			if i > 0 {
				to = append(to, ',')
			}
			to = x.write(to)
		}
		return append(to, ']')
	case kindObject:
		to = append(to, '{')
		for i, m := range v.members {
			if i > 0 {
				to = append(to, ',')
			}
			to = append(appendQuoted(to, m.name), ':')
			to = m.value.write(to)
		}
		return append(to, '}')
	}
	return append(to, v.text...)
}

// appendQuoted appends a JSON string without unnecessary escapes.
func appendQuoted(to []byte, s string) []byte {
	to = append(to, '"')
	for _, r := range s {
		to = automaton.AppendChar(to, r)
	}
	return append(to, '"')
}
