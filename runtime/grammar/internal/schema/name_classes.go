package schema

import (
	"regexp"
	"strconv"
	"strings"

	"sandwich/runtime/grammar/internal/automaton"
	"sandwich/runtime/grammar/internal/pattern"
	"sandwich/runtime/grammar/internal/schema/document"
)

// nameClass is a subset of the names that an object allows.
type nameClass struct {
	mod, rest      int      // by the number of characters; see texts
	want, unwanted []string // by expressions
}

// of restricts a set of texts to the class.
func (n nameClass) of(t pattern.Texts) pattern.Texts {
	t.Mod, t.Rest = n.mod, n.rest
	t.Want = append(t.Want[:len(t.Want):len(t.Want)], n.want...)
	t.Unwanted = append(t.Unwanted[:len(t.Unwanted):len(t.Unwanted)], n.unwanted...)
	return t
}

// nameClasses partitions the additional names of an object into n classes that all contain a name.
// It returns an error if there are fewer than n names.
func (w *objectWriter) nameClasses(n int) ([]nameClass, error) {
	for _, classes := range [][]nameClass{byLength(n), byCharacter(n, 0), byCharacter(n, 1), byCharacter(n, 2)} {
		all := true
		for _, class := range classes {
			ok, err := w.has(class)
			if err != nil {
				return nil, err
			}
			if all = all && ok; !all {
				break
			}
		}
		if all {
			return classes, nil
		}
	}
	return w.byName(n)
}

// has reports whether a class contains an additional name.
func (w *objectWriter) has(class nameClass) (bool, error) {
	for _, e := range w.extras {
		ok, err := w.Inhabited(document.Show(w.path), class.of(e.names))
		if ok || err != nil {
			return ok, err
		}
	}
	return false, nil
}

// byLength returns classes by the number of characters modulo n.
func byLength(n int) (out []nameClass) {
	for i := range n {
		out = append(out, nameClass{mod: n, rest: i})
	}
	return out
}

// letters are the characters that distinguish names, common ones first.
const letters = "etaoinsrhldcumfpgwybvkxjqz0123456789ETAOINSRHLDCUMFPGWYBVKXJQZ_-"

// byCharacter returns classes by the character after the first skip ones. Names without that
// character are in the first class.
func byCharacter(n, skip int) []nameClass {
	sets := make([]string, n)
	for i, r := range letters {
		sets[i%n] += regexp.QuoteMeta(string(r))
	}
	out := make([]nameClass, n)
	for i := 1; i < n; i++ {
		text := "^[^]{" + strconv.Itoa(skip) + "}[" + strings.ReplaceAll(sets[i], "-", `\-`) + "]"
		out[i].want = []string{text}
		out[0].unwanted = append(out[0].unwanted, text)
	}
	return out
}

// byName returns a class for each of some names, and one for all others.
func (w *objectWriter) byName(n int) (out []nameClass, err error) {
	rest := nameClass{}
	for len(out) < n-1 {
		name, ok, err := w.example(rest)
		if err != nil {
			return nil, err
		}
		if !ok {
			break
		}
		text := document.Exactly(name)
		out = append(out, nameClass{want: []string{text}})
		rest.unwanted = append(rest.unwanted, text)
	}
	ok, err := w.has(rest)
	if err != nil {
		return nil, err
	}
	if !ok {
		return nil, automaton.Unsatisfied(document.Show(w.path)+"/minProperties",
			"it requires %d distinct names, but there are only %d",
			w.min, len(w.props)+len(out))
	}
	return append(out, rest), nil
}

// example returns one of the shortest additional names of a class.
func (w *objectWriter) example(class nameClass) (name string, ok bool, err error) {
	for _, e := range w.extras {
		name, ok, err = w.Shortest(document.Show(w.path), class.of(e.names))
		if ok || err != nil {
			return name, ok, err
		}
	}
	return "", false, nil
}
