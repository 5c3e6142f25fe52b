package library

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"sandwich/runtime/jinja/internal/object"
)

// timeLayouts maps conversions of strftime to layouts of package time.
var timeLayouts = map[byte]string{
	'd': "02", 'e': "_2", 'b': "Jan", 'h': "Jan", 'B': "January", 'm': "01", 'Y': "2006", 'y': "06",
	'H': "15", 'I': "03", 'M': "04", 'S': "05", 'A': "Monday", 'a': "Mon", 'p': "PM", 'P': "pm", 'j': "002",
	'F': time.DateOnly, 'T': time.TimeOnly, 'D': "01/02/06", 'R': "15:04", 'r': "03:04:05 PM",
	'c': "Mon Jan _2 15:04:05 2006", 'x': "01/02/06", 'X': time.TimeOnly,
	'Z': "MST", 'z': "-0700", 'n': "\n", 't': "\t",
}

// timeNumbers maps conversions of strftime without such a layout to a format and a value.
var timeNumbers = map[byte]struct {
	format string
	of     func(t time.Time) int
}{
	'C': {"%02d", func(t time.Time) int { return t.Year() / 100 }},
	'G': {"%04d", func(t time.Time) int { year, _ := t.ISOWeek(); return year }},
	'g': {"%02d", func(t time.Time) int { year, _ := t.ISOWeek(); return year % 100 }},
	'V': {"%02d", func(t time.Time) int { _, week := t.ISOWeek(); return week }},
	'U': {"%02d", func(t time.Time) int { return (t.YearDay() + 6 - int(t.Weekday())) / 7 }},
	'W': {"%02d", func(t time.Time) int { return (t.YearDay() + 6 - (int(t.Weekday())+6)%7) / 7 }},
	'u': {"%d", func(t time.Time) int { return (int(t.Weekday())+6)%7 + 1 }},
	'w': {"%d", func(t time.Time) int { return int(t.Weekday()) }},
	'k': {"%2d", time.Time.Hour},
	'l': {"%2d", func(t time.Time) int { return (t.Hour()+11)%12 + 1 }},
	'f': {"%06d", func(t time.Time) int { return t.Nanosecond() / 1000 }}, // Python only
	's': {"%d", func(t time.Time) int { return int(t.Unix()) }},
}

// strftimeNow formats the time of the rendering in the local time zone.
func strftimeNow(r *Run, a *Arguments) any {
	layout := a.text(0, "format", "")
	a.need(0, "format")
	out := &object.Builder{Meter: &r.Meter}
	for {
		text, verb, ok := strings.Cut(layout, "%")
		out.Print(text)
		if !ok || verb == "" {
			return out.String()
		}
		unpadded := verb[0] == '-' && len(verb) > 1 // glibc extension
		if unpadded {
			verb = verb[1:]
		}
		layout = verb[1:]
		value, known := formatTime(r.Now, verb[0])
		if !known {
			object.Fail("strftime_now does not support %%%s", object.Clip(verb, 4))
		}
		if _, err := strconv.Atoi(strings.TrimSpace(value)); err == nil && unpadded {
			value = strings.TrimLeft(value[:len(value)-1], "0 ") + value[len(value)-1:]
		}
		out.Print(value)
	}
}

// formatTime applies one conversion of strftime.
func formatTime(t time.Time, verb byte) (value string, known bool) {
	if verb == '%' {
		return "%", true
	}
	if layout, ok := timeLayouts[verb]; ok {
		return t.Format(layout), true
	}
	n, known := timeNumbers[verb]
	if !known {
		return "", false
	}
	return fmt.Sprintf(n.format, n.of(t)), true
}
