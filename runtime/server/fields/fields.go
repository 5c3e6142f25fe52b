// Package fields decodes JSON bodies and checks their field names and values, with errors that name
// the field.
package fields

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net/http"
	"reflect"
	"strings"

	"sandwich/runtime/server/apierr"
	"sandwich/runtime/server/jsontext"
)

// Decode reads JSON into v. Errors name the field with the wrong type. within is the path of v in
// the body, "" for the body itself. Unknown fields are left to Check.
func Decode(data []byte, v any, within string) *apierr.Error {
	err := json.Unmarshal(data, v)
	if err == nil {
		return nil
	}
	var syntax *json.SyntaxError
	var wrong *json.UnmarshalTypeError
	switch {
	case errors.As(err, &wrong):
		name := Join(within, PathOf(v, wrong.Field))
		if name == "" {
			return apierr.New(http.StatusBadRequest, apierr.TypeInvalid, "", "the body must be a JSON object, not %s",
				ValueName(wrong.Value))
		}
		return apierr.Invalid(name, "must be %s, not %s", TypeName(wrong.Type), ValueName(wrong.Value))
	case errors.As(err, &syntax):
		return apierr.New(http.StatusBadRequest, apierr.TypeInvalid, "", "the body is not valid JSON: %v (byte %d)",
			syntax,
			syntax.Offset)
	}
	return apierr.New(http.StatusBadRequest, apierr.TypeInvalid, "", "the body is not valid JSON: %v", err)
}

// PathOf removes embedded structs, which encoding/json includes, from the path of a field of v.
func PathOf(v any, path string) string {
	for t := reflect.TypeOf(v).Elem(); t.Kind() == reflect.Struct; {
		head, rest, deeper := strings.Cut(path, ".")
		f, has := t.FieldByName(head)
		if !deeper || !has || !f.Anonymous {
			break
		}
		path, t = rest, f.Type
	}
	return path
}

// Join joins the path of a value and the name of one of its fields.
func Join(within, field string) string {
	if within == "" || field == "" {
		return within + field
	}
	return within + "." + field
}

// TypeName describes the JSON type for a Go type.
func TypeName(t reflect.Type) string {
	switch t.Kind() {
	case reflect.Bool:
		return "true or false"
	case reflect.String:
		return "a string"
	case reflect.Slice:
		return "a list"
	case reflect.Struct, reflect.Map:
		return "an object"
	case reflect.Float32, reflect.Float64:
		return "a number"
	}
	return fmt.Sprintf("an integer of %d bits", t.Bits())
}

// ValueName adds an article to encoding/json's description of a value.
func ValueName(value string) string {
	switch value {
	case "array":
		return "a list"
	case "object":
		return "an object"
	case "string":
		return "a string"
	case "bool":
		return "a boolean"
	case "number":
		return "a number"
	}
	return strings.TrimPrefix(value, "number ")
}

// WrongValue returns encoding/json's description of a value of the wrong type, or "" for other
// errors.
func WrongValue(err error) string {
	var wrong *json.UnmarshalTypeError
	if errors.As(err, &wrong) {
		return wrong.Value
	}
	return ""
}

// Each calls f for each element of a JSON list of up to limit elements and returns the first error.
// It decodes one element at a time, because a decoded list can take many times the memory of its
// JSON.
func Each(
	raw json.RawMessage, name string, limit int, f func(i int, item json.RawMessage) *apierr.Error,
) *apierr.Error {
	dec := json.NewDecoder(bytes.NewReader(raw))
	if t, err := dec.Token(); err != nil || t != json.Delim('[') {
		return apierr.Invalid(name, "must be a list")
	}
	for i := 0; dec.More(); i++ {
		if i == limit {
			return apierr.Invalid(name, "has more than the %d elements accepted", limit)
		}
		var item json.RawMessage
		if err := dec.Decode(&item); err != nil {
			return apierr.Invalid(name, "is not a valid list: %v", err)
		}
		if e := f(i, item); e != nil {
			return e
		}
	}
	return nil
}

// Number returns an optional number, or def if it is absent. The error names the field if the
// number is outside lo to hi.
func Number(v *float64, name string, lo, hi, def float64) (float32, *apierr.Error) {
	if v == nil {
		return float32(def), nil
	}
	if math.IsNaN(*v) || *v < lo || *v > hi {
		return 0, apierr.Invalid(name, "is %g and must be between %g and %g", *v, lo, hi)
	}
	return float32(*v), nil
}

// Integer returns an optional integer, or def if it is absent. The error names the field if the
// integer is outside lo to hi.
func Integer(v *jsontext.Integer, name string, lo, hi, def int64) (int, *apierr.Error) {
	if v == nil {
		return int(def), nil
	}
	if int64(*v) < lo || int64(*v) > hi {
		return 0, apierr.Invalid(name, "is %d and must be between %d and %d", *v, lo, hi)
	}
	return int(*v), nil
}

// String returns *s, or "" if s is nil.
func String(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}
