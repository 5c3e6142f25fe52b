// Package document reads a JSON Schema: its values with the order of their members, with references
// resolved to paths, and the keywords of the supported drafts.
package document

import "sandwich/runtime/grammar/internal/automaton"

// Value is a JSON value that keeps the order of members. Values are shared and do not change after
// settle.
type Value struct {
	Kind    byte // one of kindNull to kindArray
	Text    string
	List    []*Value
	Members []Member
	index   map[string]int // index of members, if there are many
}

// Member is a member of an object.
type Member struct {
	Name  string
	Value *Value
}

const (
	KindNull   = 'n'
	KindBool   = 'b'
	KindNumber = 'd'
	KindString = 's'
	KindObject = '{'
	KindArray  = '['
)

// Get returns a member of an object, or nil.
func (v *Value) Get(name string) *Value {
	if len(v.Members) > 16 {
		if len(v.index) != len(v.Members) {
			v.index = make(map[string]int, len(v.Members))
			for i, m := range v.Members {
				v.index[m.Name] = i
			}
		}
		if i, ok := v.index[name]; ok {
			return v.Members[i].Value
		}
		return nil
	}
	for i := range v.Members {
		if v.Members[i].Name == name {
			return v.Members[i].Value
		}
	}
	return nil
}

// IsTrue reports whether v is the value true.
func (v *Value) IsTrue() bool { return v != nil && v.Kind == KindBool && v.Text == "true" }

// IsFalse reports whether v is the value false.
func (v *Value) IsFalse() bool { return v != nil && v.Kind == KindBool && v.Text == "false" }

// Write appends the value as compact JSON. This is the only spelling of constants that is
// generated.
func (v *Value) Write(to []byte) []byte {
	switch v.Kind {
	case KindString:
		return AppendQuoted(to, v.Text)
	case KindArray:
		to = append(to, '[')
		for i, x := range v.List {
			if i > 0 {
				to = append(to, ',')
			}
			to = x.Write(to)
		}
		return append(to, ']')
	case KindObject:
		to = append(to, '{')
		for i, m := range v.Members {
			if i > 0 {
				to = append(to, ',')
			}
			to = append(AppendQuoted(to, m.Name), ':')
			to = m.Value.Write(to)
		}
		return append(to, '}')
	}
	return append(to, v.Text...)
}

// AppendQuoted appends a JSON string without unnecessary escapes.
func AppendQuoted(to []byte, s string) []byte {
	to = append(to, '"')
	for _, r := range s {
		to = automaton.AppendChar(to, r)
	}
	return append(to, '"')
}
