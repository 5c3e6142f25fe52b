package object

import (
	"math"
	"slices"
	"strconv"
	"unicode/utf16"
	"unicode/utf8"
)

// JSONWriter writes the output of tojson: Python's json.dumps, as transformers defines it for chat
// templates. Any difference in spaces or escapes would change the tokens that the model was trained
// on.
type JSONWriter struct {
	*Builder
	Comma, Colon string
	Lines        bool   // write one element per line
	Pad          string // indentation of one level
	Sort         bool
	ASCII        bool // escape all characters above 0x7e
}

// Value writes a value at the given level of nesting.
func (w *JSONWriter) Value(v any, level int) {
	w.Meter.Enter()
	defer w.Meter.Leave()
	switch v := v.(type) {
	case *List:
		w.Print("[")
		for i, item := range v.Items {
			w.next(i, level+1)
			w.Value(item, level+1)
		}
		w.shut("]", len(v.Items), level)
	case *Dict:
		w.Print("{")
		for i, e := range w.order(v) {
			w.next(i, level+1)
			w.key(e.Key)
			w.Print(w.Colon)
			w.Value(e.Value, level+1)
		}
		w.shut("}", len(v.Entries), level)
	case string:
		w.quote(Text{Plain: v})
	case *Text:
		w.quote(*v)
	default:
		w.Print(jsonScalar(v))
	}
}

func jsonScalar(v any) string {
	switch v := v.(type) {
	case nil:
		return "null"
	case bool:
		return strconv.FormatBool(v)
	case int:
		return strconv.Itoa(v)
	case BigInt:
		return string(v)
	case float64:
		switch {
		case math.IsNaN(v):
			return "NaN"
		case math.IsInf(v, 1):
			return "Infinity"
		case math.IsInf(v, -1):
			return "-Infinity"
		}
		return floatText(v)
	}
	Strict(v)
	Fail("tojson cannot write a %s", TypeName(v))
	return ""
}

func (w *JSONWriter) order(d *Dict) []dictEntry {
	if !w.Sort {
		return d.Entries
	}
	w.Meter.Items(2 * len(d.Entries))
	entries := slices.Clone(d.Entries)
	slices.SortStableFunc(entries, func(a, b dictEntry) int { return w.Meter.Order(a.Key, b.Key) })
	return entries
}

func (w *JSONWriter) key(key any) {
	if t, ok := AsText(key); ok {
		w.quote(t)
	} else {
		w.quote(Text{Plain: jsonScalar(key)})
	}
}

func (w *JSONWriter) next(i, level int) {
	if i > 0 {
		w.Print(w.Comma)
	}
	w.line(level)
}

func (w *JSONWriter) shut(bracket string, n, level int) {
	if n > 0 {
		w.line(level)
	}
	w.Print(bracket)
}

func (w *JSONWriter) line(level int) {
	if w.Lines {
		w.Print("\n")
		w.Print(w.Meter.Repeat(w.Pad, level))
	}
}

// jsonEscapes maps a byte to its escape in JSON strings, or to an empty string.
var jsonEscapes = func() (table [256]string) {
	for c := range ' ' {
		table[c] = `\u00` + hexText(int(c), 2)
	}
	for c, escape := range map[byte]string{'"': `\"`, '\\': `\\`, '\n': `\n`, '\r': `\r`, '\t': `\t`, '\b': `\b`,
		'\f': `\f`} {
		table[c] = escape
	}
	return table
}()

func (w *JSONWriter) quote(t Text) {
	w.Print(`"`)
	if w.ASCII {
		w.escapeASCII(t)
	} else {
		w.Escape(t, &jsonEscapes)
	}
	w.Print(`"`)
}

// escapeASCII writes a text with escapes for control characters and all characters above 0x7e.
func (w *JSONWriter) escapeASCII(t Text) {
	from := 0
	for i := 0; i < len(t.Plain); {
		c, size := utf8.DecodeRuneInString(t.Plain[i:])
		if c > '~' {
			w.Escape(w.Meter.Cut(t, from, i), &jsonEscapes)
			text := `\u` + hexText(int(c), 4)
			if high, low := utf16.EncodeRune(c); c > 0xffff {
				text = `\u` + hexText(int(high), 4) + `\u` + hexText(int(low), 4)
			}
			w.writeFor(t, i, text)
			from = i + size
		}
		i += size
	}
	w.Escape(w.Meter.Cut(t, from, len(t.Plain)), &jsonEscapes)
}
