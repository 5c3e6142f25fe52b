package server

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net/http"
	"reflect"
	"strings"
)

// decode reads JSON into v. Errors name the field with the wrong type. within is the path of v in
// the body, "" for the body itself. Unknown fields are left to checkFields.
func decode(data []byte, v any, within string) *apiError {
	err := json.Unmarshal(data, v)
	if err == nil {
		return nil
	}
	var syntax *json.SyntaxError
	var wrong *json.UnmarshalTypeError
	switch {
	case errors.As(err, &wrong):
		name := join(within, fieldOf(v, wrong.Field))
		if name == "" {
			return newError(http.StatusBadRequest, typeInvalid, "", "the body must be a JSON object, not %s",
				article(wrong.Value))
		}
		return invalid(name, "must be %s, not %s", wanted(wrong.Type), article(wrong.Value))
	case errors.As(err, &syntax):
		return newError(http.StatusBadRequest, typeInvalid, "", "the body is not valid JSON: %v (byte %d)", syntax,
			syntax.Offset)
	}
	return newError(http.StatusBadRequest, typeInvalid, "", "the body is not valid JSON: %v", err)
}

// fieldOf removes embedded structs, which encoding/json includes, from the path of a field of v.
func fieldOf(v any, path string) string {
	head, rest, deeper := strings.Cut(path, ".")
	if t := reflect.TypeOf(v).Elem(); deeper && t.Kind() == reflect.Struct {
		if f, has := t.FieldByName(head); has && f.Anonymous {
			return rest
		}
	}
	return path
}

// join joins the path of a value and the name of one of its fields.
func join(within, field string) string {
	if within == "" || field == "" {
		return within + field
	}
	return within + "." + field
}

// wanted describes the JSON type for a Go type.
func wanted(t reflect.Type) string {
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

// article adds an article to encoding/json's description of a value.
func article(value string) string {
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

// wrongValue returns encoding/json's description of a value of the wrong type, or "" for other
// errors.
func wrongValue(err error) string {
	var wrong *json.UnmarshalTypeError
	if errors.As(err, &wrong) {
		return wrong.Value
	}
	return ""
}

// isNull reports whether a field is absent or null; both mean the same.
func isNull(raw json.RawMessage) bool { return len(raw) == 0 || string(raw) == "null" }

// isEmpty reports whether a field has no content: absent, null, "", [] or {}.
func isEmpty(raw json.RawMessage) bool {
	var compact bytes.Buffer
	if isNull(raw) || json.Compact(&compact, raw) != nil {
		return true
	}
	s := compact.String()
	return s == `""` || s == "[]" || s == "{}"
}

// each calls f for each element of a JSON list with at most most elements. It decodes one element
// at a time, because decoded lists can take many times the memory of their JSON.
func each(raw json.RawMessage, name string, most int, f func(i int, item json.RawMessage) *apiError) *apiError {
	dec := json.NewDecoder(bytes.NewReader(raw))
	if t, err := dec.Token(); err != nil || t != json.Delim('[') {
		return invalid(name, "must be a list")
	}
	for i := 0; dec.More(); i++ {
		if i == most {
			return invalid(name, "has more than the %d elements accepted", most)
		}
		var item json.RawMessage
		if err := dec.Decode(&item); err != nil {
			return invalid(name, "is not a valid list: %v", err)
		}
		if e := f(i, item); e != nil {
			return e
		}
	}
	return nil
}

// number checks an optional number against its range and returns def if it is absent.
func number(v *float64, name string, lo, hi, def float64) (float32, *apiError) {
	if v == nil {
		return float32(def), nil
	}
	if math.IsNaN(*v) || *v < lo || *v > hi {
		return 0, invalid(name, "is %g and must be between %g and %g", *v, lo, hi)
	}
	return float32(*v), nil
}

// integer checks an optional integer against its range and returns def if it is absent.
func integer(v *wholeNumber, name string, lo, hi, def int64) (int, *apiError) {
	if v == nil {
		return int(def), nil
	}
	if int64(*v) < lo || int64(*v) > hi {
		return 0, invalid(name, "is %d and must be between %d and %d", *v, lo, hi)
	}
	return int(*v), nil
}
