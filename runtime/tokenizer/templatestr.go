package tokenizer

import (
	"errors"
	"fmt"
	"strings"
	"unicode"

	"github.com/nikolalohinski/gonja/v2/exec"
)

// String methods as Python has them, where gonja's differ or can be made to fill the memory.

// list is a list whose negative indices count from the end; gonja's own lists miss the one that leads to the first element.
type list []any

// GetItem implements exec.ItemGetter.
func (l list) GetItem(key any) (*exec.Value, bool) {
	i, ok := key.(int)
	if i < 0 {
		i += len(l)
	}
	if !ok || i < 0 || i >= len(l) {
		return exec.AsValue(nil), false
	}
	return exec.ToValue(l[i]), true
}

// arguments hands out what a method was called with, by position or name.
type arguments struct {
	*exec.VarArgs
	err error
}

// take returns argument i, or nil.
func (a *arguments) take(i int, name string) *exec.Value {
	v := a.KwArgs[name]
	if i < len(a.Args) {
		v = a.Args[i]
	}
	if v == nil || v.IsNil() {
		return nil
	}
	return v
}

func (a *arguments) text(i int, name string) (string, bool) {
	v := a.take(i, name)
	if v == nil {
		return "", false
	}
	if !v.IsString() && a.err == nil {
		a.err = fmt.Errorf("%s must be a string", name)
	}
	return v.String(), true
}

func (a *arguments) number(i int, name string, otherwise int) int {
	v := a.take(i, name)
	if v == nil {
		return otherwise
	}
	if !v.IsInteger() && a.err == nil {
		a.err = fmt.Errorf("%s must be a whole number", name)
	}
	return v.Integer()
}

type strMethod = exec.Method[string]

// methodStrip is strip, lstrip or rstrip: of some characters, or of white space.
func methodStrip(left, right bool) strMethod {
	return func(self string, _ *exec.Value, args *exec.VarArgs) (any, error) {
		a := arguments{VarArgs: args}
		chars, given := a.text(0, "chars")
		drop := unicode.IsSpace
		if given {
			drop = func(r rune) bool { return strings.ContainsRune(chars, r) }
		}
		if left {
			self = strings.TrimLeftFunc(self, drop)
		}
		if right {
			self = strings.TrimRightFunc(self, drop)
		}
		return self, a.err
	}
}

// methodSplit is split or, fromRight, rsplit.
func methodSplit(fromRight bool) strMethod {
	return func(self string, _ *exec.Value, args *exec.VarArgs) (any, error) {
		a := arguments{VarArgs: args}
		between, given := a.text(0, "sep")
		most := a.number(1, "maxsplit", -1)
		if given && between == "" {
			return nil, errors.New("split by nothing")
		}
		next := func(s string) (head, tail string, ok bool) { return strings.Cut(s, between) }
		if !given {
			self = strings.TrimSpace(self)
			next = cutSpace
		}
		var parts list
		if fromRight {
			parts = splitRight(self, between, given, most)
		} else {
			for ; most != 0; most-- {
				head, tail, ok := next(self)
				if !ok {
					break
				}
				parts, self = append(parts, head), tail
			}
			if given || self != "" {
				parts = append(parts, self)
			}
		}
		return parts, a.err
	}
}

// cutSpace cuts around the first white space.
func cutSpace(s string) (head, tail string, ok bool) {
	i := strings.IndexFunc(s, unicode.IsSpace)
	if i < 0 {
		return s, "", false
	}
	return s[:i], strings.TrimLeftFunc(s[i:], unicode.IsSpace), true
}

func splitRight(s, between string, given bool, most int) (parts list) {
	for ; most != 0; most-- {
		var i int
		tail := ""
		if given {
			if i = strings.LastIndex(s, between); i >= 0 {
				tail = s[i+len(between):]
			}
		} else if i = strings.LastIndexFunc(s, unicode.IsSpace); i >= 0 {
			tail = strings.TrimLeftFunc(s[i:], unicode.IsSpace)
		}
		if i < 0 {
			break
		}
		parts, s = append(parts, tail), s[:i]
		if !given {
			s = strings.TrimRightFunc(s, unicode.IsSpace)
		}
	}
	if given || s != "" {
		parts = append(parts, s)
	}
	for i, j := 0, len(parts)-1; i < j; i, j = i+1, j-1 {
		parts[i], parts[j] = parts[j], parts[i]
	}
	return parts
}

// methodLimit bounds what a method makes: methods do not see the budget of their rendering.
const methodLimit = maxChatText

func methodReplace(self string, _ *exec.Value, args *exec.VarArgs) (any, error) {
	return replace(methodLimit, self, args)
}

// replace is the method and the filter, up to limit bytes.
func replace(limit int, text string, args *exec.VarArgs) (string, error) {
	a := arguments{VarArgs: args}
	from, _ := a.text(0, "old")
	to, given := a.text(1, "new")
	n := a.number(2, "count", -1)
	if !given || a.err != nil {
		return "", errors.New("replace takes the text to find, the text to put there and perhaps a count")
	}
	found := strings.Count(text, from)
	if n >= 0 {
		found = min(found, n)
	}
	if grow := len(to) - len(from); grow > 0 && found > max(0, limit-len(text))/grow {
		return "", errTooLong
	}
	return strings.Replace(text, from, to, n), nil
}

func methodJoin(self string, _ *exec.Value, args *exec.VarArgs) (any, error) {
	if len(args.Args) != 1 {
		return nil, errors.New("join takes one list")
	}
	return join(methodLimit, self, args.Args[0])
}

// join puts the texts of items together with between them, up to limit bytes.
func join(limit int, between string, items *exec.Value) (string, error) {
	var text strings.Builder
	var err error
	items.Iterate(func(i, _ int, item, _ *exec.Value) bool {
		s := item.String()
		if text.Len()+len(between)+len(s) > limit {
			err = errTooLong
			return false
		}
		if i > 0 {
			text.WriteString(between)
		}
		text.WriteString(s)
		return true
	}, func() {})
	return text.String(), err
}

// methodFormat is str.format with {}, {0} and {name} alone: no widths, no attributes.
func methodFormat(self string, _ *exec.Value, args *exec.VarArgs) (any, error) {
	var text strings.Builder
	next := 0
	for rest := self; rest != ""; {
		at := strings.IndexAny(rest, "{}")
		if at < 0 {
			text.WriteString(rest)
			break
		}
		text.WriteString(rest[:at])
		if strings.HasPrefix(rest[at:], "{{") || strings.HasPrefix(rest[at:], "}}") {
			text.WriteByte(rest[at])
			rest = rest[at+2:]
			continue
		}
		end := strings.IndexByte(rest[at:], '}')
		if rest[at] == '}' || end < 0 {
			return nil, errors.New("format has a brace without its partner")
		}
		field := rest[at+1 : at+end]
		rest = rest[at+end+1:]
		if field == "" {
			field = fmt.Sprint(next)
			next++
		}
		value := args.KwArgs[field]
		for i, arg := range args.Args {
			if field == fmt.Sprint(i) {
				value = arg
			}
		}
		if value == nil {
			return nil, fmt.Errorf("format has no argument for {%s}", field)
		}
		text.WriteString(value.String())
		if text.Len() > methodLimit {
			return nil, errTooLong
		}
	}
	return text.String(), nil
}
