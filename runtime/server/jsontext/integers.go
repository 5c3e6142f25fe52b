package jsontext

import (
	"encoding/json"
	"math"
	"reflect"
	"strconv"
	"strings"
)

// Integer is an integer of a request. It also accepts 8.0 and 0.8e1, because clients with a
// single number type write such values.
type Integer int64

func (n *Integer) UnmarshalJSON(data []byte) error {
	text := string(data)
	if text == "null" {
		return nil
	}
	v, ok := ParseInteger(text)
	if !ok {
		return &json.UnmarshalTypeError{Value: kindOf(text), Type: reflect.TypeFor[int64]()}
	}
	*n = Integer(v)
	return nil
}

// kindOf describes a JSON value like encoding/json does in its errors.
func kindOf(value string) string {
	switch value[0] {
	case '{':
		return "object"
	case '[':
		return "array"
	case '"':
		return "string"
	case 't', 'f':
		return "bool"
	}
	return "number " + Clip(value)
}

// ParseInteger returns the integer value of a JSON number. It returns false for numbers with a
// fraction, numbers out of range, and text that is not a number. Its running time does not depend
// on the exponent.
func ParseInteger(text string) (int64, bool) {
	if v, err := strconv.ParseInt(text, 10, 64); err == nil && text[0] != '+' {
		return v, true
	}
	digits, negative := strings.CutPrefix(text, "-")
	digits, exponent, scaled := cutAny(digits, "eE")
	before, after, _ := strings.Cut(digits, ".")
	digits = before + after
	if strings.Trim(digits, "0123456789") != "" || before == "" {
		return 0, false
	}
	point := 0 // position of the decimal point
	if scaled {
		var err error
		if point, err = strconv.Atoi(exponent); err != nil {
			point = math.MaxInt32 // beyond any number of digits
			if strings.HasPrefix(exponent, "-") {
				point = -math.MaxInt32
			}
		}
	}
	point += len(before)
	significant := strings.TrimLeft(digits, "0")
	point -= len(digits) - len(significant)
	significant = strings.TrimRight(significant, "0")
	switch {
	case significant == "":
		return 0, true
	case point < len(significant) || point > maxDigits:
		return 0, false
	}
	significant += strings.Repeat("0", point-len(significant))
	if negative {
		significant = "-" + significant
	}
	v, err := strconv.ParseInt(significant, 10, 64)
	return v, err == nil
}

// maxDigits is the number of decimal digits of the largest int64.
const maxDigits = 19

// cutAny cuts text around the first of some characters.
func cutAny(text, chars string) (before, after string, found bool) {
	if i := strings.IndexAny(text, chars); i >= 0 {
		return text[:i], text[i+1:], true
	}
	return text, "", false
}

// ParseTokenIDs reads a JSON list of token ids. raw must be valid JSON.
func ParseTokenIDs(raw json.RawMessage) (ids []int32, err error) {
	if err = json.Unmarshal(raw, &ids); err == nil {
		return ids, nil
	}
	var numbers []Integer // slower; accepts numbers such as 1.0
	if json.Unmarshal(raw, &numbers) != nil {
		return nil, err
	}
	ids = ids[:0]
	for _, n := range numbers {
		if n != Integer(int32(n)) {
			return nil, &json.UnmarshalTypeError{Value: "number " + strconv.FormatInt(int64(n), 10),
				Type: reflect.TypeFor[int32]()}
		}
		ids = append(ids, int32(n))
	}
	return ids, nil
}
