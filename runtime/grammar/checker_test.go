package grammar

import (
	"encoding/json"
	"math/big"
	"net/mail"
	"net/netip"
	"net/url"
	"reflect"
	"regexp"
	"strconv"
	"time"
	"unicode/utf8"
)

// checker reports whether a value is valid, by the text of JSON Schema 2020-12: it shares no code
// with the package under test.
type checker struct{ root any }

func (c checker) valid(s, v any) bool {
	if b, ok := s.(bool); ok {
		return b
	}
	o := s.(map[string]any)
	for key, x := range o {
		if !c.keyword(key, x, o, v) {
			return false
		}
	}
	return true
}

func (c checker) keyword(key string, x any, s map[string]any, v any) bool {
	switch key {
	case "$ref", "$dynamicRef":
		return c.valid(c.target(x.(string)), v)
	case "type":
		return c.anyType(x, v)
	case "enum":
		for _, y := range x.([]any) {
			if same(y, v) {
				return true
			}
		}
		return false
	case "const":
		return same(x, v)
	case "allOf":
		return c.holding(x, v) == len(x.([]any))
	case "anyOf":
		return c.holding(x, v) > 0
	case "oneOf":
		return c.holding(x, v) == 1
	case "not":
		return !c.valid(x, v)
	case "if":
		if then, ok := s["then"]; ok && c.valid(x, v) && !c.valid(then, v) {
			return false
		}
		other, ok := s["else"]
		return !ok || c.valid(x, v) || c.valid(other, v)
	}
	switch v := v.(type) {
	case string:
		return stringKeyword(key, x, v)
	case json.Number:
		return numberKeyword(key, x, rat(v))
	case []any:
		return c.arrayKeyword(key, x, s, v)
	case map[string]any:
		return c.objectKeyword(key, x, s, v)
	}
	return true
}

// holding is how many of the schemas hold.
func (c checker) holding(list, v any) (n int) {
	for _, s := range list.([]any) {
		if c.valid(s, v) {
			n++
		}
	}
	return n
}

func (c checker) anyType(x, v any) bool {
	if list, ok := x.([]any); ok {
		for _, y := range list {
			if c.anyType(y, v) {
				return true
			}
		}
		return false
	}
	switch v := v.(type) {
	case nil:
		return x == "null"
	case bool:
		return x == "boolean"
	case string:
		return x == "string"
	case []any:
		return x == "array"
	case map[string]any:
		return x == "object"
	case json.Number:
		return x == "number" || x == "integer" && rat(v).IsInt()
	}
	return false
}

func rat(x any) *big.Rat {
	r, ok := new(big.Rat).SetString(string(x.(json.Number)))
	if !ok {
		panic(x)
	}
	return r
}

func whole(x any) int {
	n, err := strconv.Atoi(string(x.(json.Number)))
	if err != nil {
		panic(err)
	}
	return n
}

func same(a, b any) bool {
	x, ok1 := a.(json.Number)
	y, ok2 := b.(json.Number)
	if ok1 && ok2 {
		return rat(x).Cmp(rat(y)) == 0
	}
	if m, ok := a.([]any); ok {
		n, ok := b.([]any)
		for i := 0; ok && i < len(m); i++ {
			ok = len(m) == len(n) && same(m[i], n[i])
		}
		return ok && len(m) == len(n)
	}
	if m, ok := a.(map[string]any); ok {
		n, ok := b.(map[string]any)
		for k, v := range m {
			w, has := n[k]
			ok = ok && has && same(v, w)
		}
		return ok && len(m) == len(n)
	}
	return reflect.DeepEqual(a, b)
}

func stringKeyword(key string, x any, v string) bool {
	switch key {
	case "minLength":
		return utf8.RuneCountInString(v) >= whole(x)
	case "maxLength":
		return utf8.RuneCountInString(v) <= whole(x)
	case "pattern":
		return regexp.MustCompile(x.(string)).MatchString(v)
	case "format":
		return formatted(x.(string), v)
	}
	return true
}

func formatted(format, v string) bool {
	var err error
	switch format {
	case "date":
		_, err = time.Parse("2006-01-02", v)
	case "time":
		_, err = time.Parse("15:04:05Z07:00", v)
	case "date-time":
		_, err = time.Parse(time.RFC3339, v)
	case "email":
		_, err = mail.ParseAddress(v)
	case "ipv4", "ipv6":
		var a netip.Addr
		a, err = netip.ParseAddr(v)
		return err == nil && a.Is4() == (format == "ipv4")
	case "uri":
		u, err := url.Parse(v)
		return err == nil && u.IsAbs() && u.Host != ""
	case "hostname":
		return len(v) < 254 && regexp.MustCompile(`^[A-Za-z0-9]([A-Za-z0-9-]{0,61}[A-Za-z0-9])?`+
			`(\.[A-Za-z0-9]([A-Za-z0-9-]{0,61}[A-Za-z0-9])?)*$`).MatchString(v)
	case "duration":
		return regexp.MustCompile(`^P(\d+W|(\d+Y)?(\d+M)?(\d+D)?(T(\d+H)?(\d+M)?(\d+S)?)?)$`).MatchString(v)
	case "json-pointer":
		return regexp.MustCompile(`^(/([^~/]|~[01])*)*$`).MatchString(v)
	case "relative-json-pointer":
		return regexp.MustCompile(`^(0|[1-9]\d*)(#|(/([^~/]|~[01])*)*)$`).MatchString(v)
	case "uuid":
		return regexp.MustCompile(`^[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}$`).MatchString(v)
	}
	return err == nil
}

func numberKeyword(key string, x any, v *big.Rat) bool {
	switch key {
	case "minimum":
		return v.Cmp(rat(x)) >= 0
	case "maximum":
		return v.Cmp(rat(x)) <= 0
	case "exclusiveMinimum":
		return v.Cmp(rat(x)) > 0
	case "exclusiveMaximum":
		return v.Cmp(rat(x)) < 0
	case "multipleOf":
		return new(big.Rat).Quo(v, rat(x)).IsInt()
	}
	return true
}

func (c checker) arrayKeyword(key string, x any, s map[string]any, v []any) bool {
	switch key {
	case "minItems":
		return len(v) >= whole(x)
	case "maxItems":
		return len(v) <= whole(x)
	case "uniqueItems":
		for i := range v {
			for j := range i {
				if x == true && same(v[i], v[j]) {
					return false
				}
			}
		}
	case "contains":
		n, smallest, largest := 0, 1, len(v)
		for _, y := range v {
			if c.valid(x, y) {
				n++
			}
		}
		if m, ok := s["minContains"]; ok {
			smallest = whole(m)
		}
		if m, ok := s["maxContains"]; ok {
			largest = whole(m)
		}
		return n >= smallest && n <= largest
	case "unevaluatedItems":
		for i := c.evaluatedItems(s, v, true); i < len(v); i++ {
			if !c.valid(x, v[i]) {
				return false
			}
		}
	case "prefixItems":
		for i, y := range x.([]any) {
			if i < len(v) && !c.valid(y, v[i]) {
				return false
			}
		}
	case "items":
		first, _ := s["prefixItems"].([]any)
		for i := len(first); i < len(v); i++ {
			if !c.valid(x, v[i]) {
				return false
			}
		}
	}
	return true
}

func (c checker) objectKeyword(key string, x any, s, v map[string]any) bool {
	switch key {
	case "minProperties":
		return len(v) >= whole(x)
	case "maxProperties":
		return len(v) <= whole(x)
	case "required":
		for _, n := range x.([]any) {
			if _, has := v[n.(string)]; !has {
				return false
			}
		}
	case "dependentRequired":
		for n, list := range x.(map[string]any) {
			if _, has := v[n]; has && !c.objectKeyword("required", list, s, v) {
				return false
			}
		}
	case "dependentSchemas":
		for n, y := range x.(map[string]any) {
			if _, has := v[n]; has && !c.valid(y, v) {
				return false
			}
		}
	case "propertyNames":
		for n := range v {
			if !c.valid(x, n) {
				return false
			}
		}
	case "unevaluatedProperties":
		seen := map[string]bool{}
		c.evaluated(s, v, seen, true)
		for n, y := range v {
			if !seen[n] && !c.valid(x, y) {
				return false
			}
		}
	case "properties", "patternProperties", "additionalProperties":
		for n, y := range v {
			if !c.member(key, x, s, n, y) {
				return false
			}
		}
	}
	return true
}

func (c checker) member(key string, x any, s map[string]any, name string, v any) bool {
	props, _ := s["properties"].(map[string]any)
	patterns, _ := s["patternProperties"].(map[string]any)
	p, declared := props[name]
	switch key {
	case "properties":
		return !declared || c.valid(p, v)
	case "patternProperties":
		for re, y := range patterns {
			if regexp.MustCompile(re).MatchString(name) && !c.valid(y, v) {
				return false
			}
		}
		return true
	}
	for re := range patterns {
		declared = declared || regexp.MustCompile(re).MatchString(name)
	}
	return declared || c.valid(x, v)
}
