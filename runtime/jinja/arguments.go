package jinja

// arguments are the positional and named arguments of a call to a filter, test, method, function or
// macro.
type arguments struct {
	who        string // name of the called function, for errors
	m          *meter
	positional []any
	named      []namedValue
}

type namedValue struct {
	name  string
	value any
}

// value returns the argument at position i or with the given name, and whether it was given.
func (a *arguments) value(i int, name string) (any, bool) {
	if i >= 0 && i < len(a.positional) {
		return a.positional[i], true
	}
	for _, n := range a.named {
		a.m.spend(1)
		if n.name == name {
			return n.value, true
		}
	}
	return nil, false
}

// need returns an argument and fails if it was not given.
func (a *arguments) need(i int, name string) any {
	v, ok := a.value(i, name)
	if !ok {
		fail("%s needs the argument %s", a.who, name)
	}
	return v
}

// text returns a string argument without its origins. It returns otherwise if the argument is
// missing or None.
func (a *arguments) text(i int, name, otherwise string) string {
	v, ok := a.value(i, name)
	if !ok || v == nil {
		return otherwise
	}
	s, ok := plain(v)
	if !ok {
		strict(v)
		fail("%s needs a string as argument %s", a.who, name)
	}
	return s
}

func (a *arguments) integer(i int, name string, otherwise int) int {
	v, ok := a.value(i, name)
	if !ok || v == nil {
		return otherwise
	}
	n, ok := number(v).(int)
	if !ok {
		strict(v)
		fail("%s needs an integer as argument %s", a.who, name)
	}
	return n
}

func (a *arguments) flag(i int, name string, otherwise bool) bool {
	if v, ok := a.value(i, name); ok {
		return truth(v)
	}
	return otherwise
}

// after returns the positional arguments starting at position i, and all named ones.
func (a *arguments) after(i int) *arguments {
	rest := *a
	rest.positional = a.positional[min(i, len(a.positional)):]
	return &rest
}
