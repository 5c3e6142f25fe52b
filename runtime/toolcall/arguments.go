package toolcall

import (
	"encoding/json"
	"strings"
	"unicode/utf8"
)

// reader converts the arguments of one call to JSON while they arrive.
type reader struct {
	f *Format
	t *tool

	// State within a JSON object.
	begun         bool
	depth         int
	quoted, slash bool

	// State within named arguments.
	at    argState
	count int
	kind  param
}

type argState uint8

const (
	atEntry argState = iota
	atKey
	atValue
	atText // inside a string that is not quoted as JSON
)

func newReader(f *Format, t *tool) reader { return reader{f: f, t: t} }

// read consumes buf as far as possible. It returns the JSON produced, the unread rest of buf, and
// whether the arguments are complete.
func (r *reader) read(buf string) (text, rest string, done bool) {
	if r.f.args == nil {
		return r.readObject(buf)
	}
	for {
		made, left, more, whole := r.step(buf)
		text, buf = text+made, left
		if whole || !more {
			return text, buf, whole
		}
	}
}

// readObject copies a JSON object unchanged up to its closing brace.
func (r *reader) readObject(buf string) (text, rest string, done bool) {
	if !r.begun {
		buf = strings.TrimLeft(buf, " \t\r\n")
		switch {
		case buf == "":
			return "", "", false
		case buf[0] != '{':
			return "{}", buf, true
		}
		r.begun = true
	}
	for i := range len(buf) {
		switch c := buf[i]; {
		case r.slash:
			r.slash = false
		case r.quoted:
			r.slash, r.quoted = c == '\\', c != '"'
		case c == '"':
			r.quoted = true
		case c == '{' || c == '[':
			r.depth++
		case c == '}' || c == ']':
			if r.depth--; r.depth == 0 {
				return buf[:i+1], buf[i+1:], true
			}
		}
	}
	return buf, "", false
}

// step reads one key, one value or a part of a value; more tells the caller to call it again.
func (r *reader) step(buf string) (text, rest string, more, done bool) {
	switch r.at {
	case atEntry:
		return r.entry(buf)
	case atKey:
		return r.key(buf)
	case atValue:
		return r.value(buf)
	}
	return r.rawText(buf)
}

// entry reads up to the next key, or detects the end of the arguments.
func (r *reader) entry(buf string) (text, rest string, more, done bool) {
	buf = strings.TrimLeft(buf, " \t\r\n")
	if buf == "" {
		return "", buf, false, false
	}
	before := r.f.args.before
	if r.count > 0 {
		before = r.f.args.between + before
	}
	_, shut, maybeShut := prefix(buf, r.f.after)
	n, next, maybeNext := prefix(buf, before)
	switch {
	case shut, !maybeShut && !maybeNext:
		if r.count == 0 {
			return "{}", buf, false, true
		}
		return "}", buf, false, true
	case maybeShut:
	case next:
		r.at = atKey
		return "", buf[n:], true, false
	}
	return "", buf, false, false
}

// key reads the name of an argument and selects its parameter.
func (r *reader) key(buf string) (text, rest string, more, done bool) {
	signature := strings.Fields(r.f.args.middle)[0]
	i := strings.Index(buf, signature)
	if i < 0 {
		return "", buf, false, false
	}
	n, whole, ok := prefix(buf[i:], r.f.args.middle)
	if ok && !whole {
		return "", buf, false, false
	}
	name := strings.TrimSpace(buf[:i])
	r.kind = param{name: name}
	for _, p := range r.t.params {
		if p.name == name {
			r.kind = p
		}
	}
	text = ", "
	if r.count == 0 {
		text = "{"
	}
	r.count++
	r.at = atValue
	return text + quote(name) + ": ", buf[i+n:], true, false
}

// value reads a whole value, or the start of an unquoted string.
func (r *reader) value(buf string) (text, rest string, more, done bool) {
	a := r.f.args
	if r.kind.text && a.raw {
		r.at = atText
		return `"`, buf, true, false
	}
	if a.raw {
		end := strings.TrimRight(a.after, "\n")
		i := strings.Index(buf, end)
		if i < 0 {
			return "", buf, false, false
		}
		r.at = atEntry
		return plain(strings.TrimSpace(buf[:i]), false), buf[i+len(end):], true, false
	}
	buf = strings.TrimLeft(buf, " \t\r\n")
	if a.quote != "" {
		_, whole, ok := prefix(buf, a.quote)
		if buf == "" || ok && !whole {
			return "", buf, false, false
		}
		if whole {
			r.at = atText
			return `"`, buf[len(a.quote):], true, false
		}
	}
	n, whole := valueLength(buf)
	if !whole {
		return "", buf, false, false
	}
	r.at = atEntry
	return plain(buf[:n], a.python), buf[n:], true, false
}

// rawText copies an unquoted string, with JSON escapes, up to its end.
func (r *reader) rawText(buf string) (text, rest string, more, done bool) {
	end := strings.TrimRight(r.f.args.after, "\n")
	if r.f.args.quote != "" {
		end = r.f.args.quote
	}
	at, mark := find(buf, []string{end})
	for at > 0 && mark == "" && !utf8.ValidString(buf[:at]) && at > len(buf)-utf8.UTFMax {
		at--
	}
	text = quote(buf[:at])
	text = text[1 : len(text)-1]
	if mark == "" {
		return text, buf[at:], false, false
	}
	r.at = atEntry
	return text + `"`, buf[at+len(end):], true, false
}

// valueLength returns the length of the JSON or Python value at the start of text. whole is false
// if the value may continue after the end of text.
func valueLength(text string) (n int, whole bool) {
	depth := 0
	var open byte // quote character of the open string, 0 outside strings
	for i := 0; i < len(text); i++ {
		c := text[i]
		switch {
		case open != 0 && c == '\\':
			i++
		case open != 0:
			if c == open {
				if open = 0; depth == 0 {
					return i + 1, true
				}
			}
		case c == '"' || c == '\'':
			open = c
		case c == '{' || c == '[':
			depth++
		case depth > 0 && (c == '}' || c == ']'):
			if depth--; depth == 0 {
				return i + 1, true
			}
		case depth == 0 && strings.IndexByte(",)}]\n<", c) >= 0:
			return i, true
		}
	}
	return 0, false
}

// plain returns a value as JSON. Text that is not a JSON value becomes a string.
func plain(value string, python bool) string {
	if python {
		switch value {
		case "True":
			return "true"
		case "False":
			return "false"
		case "None":
			return "null"
		}
	}
	if json.Valid([]byte(value)) {
		return value
	}
	if n := len(value); n >= 2 && value[0] == '\'' && value[n-1] == '\'' {
		value = value[1 : n-1]
	}
	return quote(value)
}

// quote returns text as a JSON string.
func quote(text string) string {
	var b strings.Builder
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	_ = e.Encode(text) // a string can be encoded
	return strings.TrimSuffix(b.String(), "\n")
}
