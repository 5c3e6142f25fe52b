package tokenizer

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"sort"
	"strings"

	"github.com/nikolalohinski/gonja/v2/exec"
)

// filterJSON is tojson as Hugging Face defines it for chat templates: Python's json.dumps with ensure_ascii=False. gonja's own
// writes \u003c for <, \u0027 for ' and no space after separators, which are other tokens than the model was trained on.
func filterJSON(e *exec.Evaluator, in *exec.Value, args *exec.VarArgs) *exec.Value {
	if in.IsError() {
		return in
	}
	w := &jsonWriter{limit: budgetOf(e.Environment.Context).bytes}
	if indent, ok := args.KwArgs["indent"]; ok && !indent.IsNil() {
		if !indent.IsInteger() || indent.Integer() < 0 || indent.Integer() > 32 {
			return exec.AsValue(errors.New("tojson takes an indent of 0 to 32"))
		}
		w.lines, w.indent = true, indent.Integer()
	}
	w.value(in, 0)
	return valueOr(w.text.String(), w.err)
}

// jsonWriter writes one document.
type jsonWriter struct {
	text   strings.Builder
	lines  bool // one entry a line, indented
	indent int
	limit  int
	err    error
}

func (w *jsonWriter) value(v *exec.Value, depth int) {
	switch {
	case w.err != nil:
	case depth > renderDepth:
		w.err = fmt.Errorf("tojson: more than %d levels", renderDepth)
	case w.text.Len() > w.limit:
		w.err = errTooLong
	case v.IsNil():
		w.text.WriteString("null")
	case v.IsString():
		w.quote(v.String())
	case v.IsBool():
		fmt.Fprint(&w.text, v.Bool())
	case v.IsInteger():
		fmt.Fprint(&w.text, v.Integer())
	case v.IsFloat():
		w.text.WriteString(v.String())
	case v.IsDict():
		w.entries('{', '}', depth, w.dictEntries(v, depth))
	case v.IsList():
		var items []func()
		v.Iterate(func(_, _ int, item, _ *exec.Value) bool {
			items = append(items, func() { w.value(item, depth+1) })
			return true
		}, func() {})
		w.entries('[', ']', depth, items)
	default:
		w.err = fmt.Errorf("tojson: cannot write a %T", v.Interface())
	}
}

// dictEntries are in the order of a literal, else in that of the keys: messages come as Go maps, which have none.
func (w *jsonWriter) dictEntries(v *exec.Value, depth int) (entries []func()) {
	entry := func(key string, value *exec.Value) {
		entries = append(entries, func() {
			w.quote(key)
			w.text.WriteString(": ")
			w.value(value, depth+1)
		})
	}
	if dict, ok := v.Interface().(*exec.Dict); ok {
		for _, pair := range dict.Pairs {
			entry(pair.Key.String(), pair.Value)
		}
		return entries
	}
	m := reflect.ValueOf(v.Interface())
	if m.Kind() != reflect.Map {
		w.err = fmt.Errorf("tojson: cannot write a %T", v.Interface())
		return nil
	}
	keys := m.MapKeys()
	sort.Slice(keys, func(i, j int) bool { return fmt.Sprint(keys[i]) < fmt.Sprint(keys[j]) })
	for _, key := range keys {
		entry(fmt.Sprint(key), exec.AsValue(m.MapIndex(key).Interface()))
	}
	return entries
}

func (w *jsonWriter) entries(opening, closing byte, depth int, entries []func()) {
	w.text.WriteByte(opening)
	for i, write := range entries {
		switch {
		case w.lines && i > 0:
			w.text.WriteByte(',')
		case i > 0:
			w.text.WriteString(", ")
		}
		w.line(depth + 1)
		write()
	}
	if len(entries) > 0 {
		w.line(depth)
	}
	w.text.WriteByte(closing)
}

func (w *jsonWriter) line(depth int) {
	if w.lines {
		w.text.WriteString("\n" + strings.Repeat(" ", depth*w.indent))
	}
}

func (w *jsonWriter) quote(s string) {
	var text strings.Builder
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(s); err != nil {
		w.err = err
		return
	}
	w.text.WriteString(pythonEscapes.Replace(strings.TrimSuffix(text.String(), "\n")))
}

// pythonEscapes undoes the two escapes of encoding/json that Python does not make. The pair of backslashes is in the list so
// that what follows an escaped backslash is left alone.
var pythonEscapes = strings.NewReplacer(`\\\\`, `\\\\`, `\u2028`, "\u2028", `\u2029`, "\u2029")
