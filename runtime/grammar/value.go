package grammar

// value is a JSON value with the members of objects in the order given. Values are shared and do
// not change once a schema is settled.
type value struct {
	kind    byte // one of kindNull to kindArray
	text    string
	list    []*value
	members []member
	index   map[string]int // of the members, where they are many
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

// get is a member of an object; nil where there is none.
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

// isTrue tells the value true.
func (v *value) isTrue() bool { return v != nil && v.kind == kindBool && v.text == "true" }

// isFalse tells the value false.
func (v *value) isFalse() bool { return v != nil && v.kind == kindBool && v.text == "false" }

// write appends the value as compact JSON: the one spelling in which constants are generated.
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

// appendQuoted writes a string with the escapes that it needs and no others.
func appendQuoted(to []byte, s string) []byte {
	to = append(to, '"')
	for _, r := range s {
		to = appendChar(to, r)
	}
	return append(to, '"')
}
