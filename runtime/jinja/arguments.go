package jinja

// arguments are what a filter, test, method, function or macro is called with, by position or by
// name.
type arguments struct {
	who        string // for errors
	m          *meter
	positional []any
	named      []namedValue
}

type namedValue struct {
	name  string
	value any
}

// value returns argument i, and whether it was given.
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

// need returns argument i, which must be given.
func (a *arguments) need(i int, name string) any {
	v, ok := a.value(i, name)
	if !ok {
		fail("%s needs the argument %s", a.who, name)
	}
	return v
}

// text returns argument i as a string without origins, or otherwise where it is not given or None.
func (a *arguments) text(i int, name, otherwise string) string {
	v, ok := a.value(i, name)
	if !ok || v == nil {
		return otherwise
	}
	s, ok := plain(v)
	if !ok {
		strict(v)
		fail("%s takes a string as %s", a.who, name)
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
		fail("%s takes a whole number as %s", a.who, name)
	}
	return n
}

func (a *arguments) flag(i int, name string, otherwise bool) bool {
	if v, ok := a.value(i, name); ok {
		return truth(v)
	}
	return otherwise
}

// after are the arguments from position i on, and those with names.
func (a *arguments) after(i int) *arguments {
	rest := *a
	rest.positional = a.positional[min(i, len(a.positional)):]
	return &rest
}
