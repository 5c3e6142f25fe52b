package document

import (
	"math/big"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// Without returns a schema without some of its keywords, or nil if only describing ones remain.
func (v *Value) Without(keys ...string) *Value {
	out := &Value{Kind: KindObject}
	asserts := false
	for _, m := range v.Members {
		if slices.Contains(keys, m.Name) {
			continue
		}
		out.Members = append(out.Members, m)
		asserts = asserts || !slices.Contains(Describing, m.Name)
	}
	if !asserts {
		return nil
	}
	return out
}

// But returns a schema without one keyword.
func (v *Value) But(key string) *Value {
	out := &Value{Kind: KindObject}
	for _, m := range v.Members {
		if m.Name != key {
			out.Members = append(out.Members, m)
		}
	}
	return out
}

// WithContains makes the default of minContains explicit, and drops minContains and maxContains
// without contains, so that schemas can be merged.
func (v *Value) WithContains() *Value {
	switch {
	case v.Kind != KindObject:
		return v
	case v.Get("contains") != nil && v.Get("minContains") == nil:
		return v.And("minContains", &Value{Kind: KindNumber, Text: "1"})
	case v.Get("contains") == nil && (v.Get("minContains") != nil || v.Get("maxContains") != nil):
		return v.But("minContains").But("maxContains")
	}
	return v
}

// WithExclusive converts the boolean exclusiveMinimum and exclusiveMaximum of draft 4 to the
// numbers of later drafts.
func (v *Value) WithExclusive() *Value {
	for _, k := range [][2]string{{"exclusiveMinimum", "minimum"}, {"exclusiveMaximum", "maximum"}} {
		x, bound := v.Get(k[0]), v.Get(k[1])
		if x == nil || x.Kind != KindBool {
			continue
		}
		if v = v.But(k[0]); bound != nil && x.IsTrue() {
			v = v.But(k[1]).And(k[0], bound)
		}
	}
	return v
}

// And returns a schema with one more keyword.
func (v *Value) And(key string, x *Value) *Value {
	return &Value{Kind: KindObject, Members: append(slices.Clone(v.Members), Member{key, x})}
}

// Key returns a text that is the same for equal values only.
func (v *Value) Key() string {
	switch v.Kind {
	case KindNumber:
		if x, ok := Rational(v); ok {
			return "d" + x.RatString()
		}
	case KindArray:
		out := "["
		for _, x := range v.List {
			k := x.Key()
			out += strconv.Itoa(len(k)) + ":" + k
		}
		return out
	case KindObject:
		var all []string
		for _, m := range v.Members {
			k := m.Value.Key()
			all = append(all, strconv.Itoa(len(m.Name))+":"+m.Name+strconv.Itoa(len(k))+":"+k)
		}
		slices.Sort(all)
		return "{" + strings.Join(all, ",")
	}
	return string(v.Kind) + v.Text
}

// Equal reports whether two values are equal; numbers are compared by value.
func (v *Value) Equal(w *Value) bool {
	if v.Kind != w.Kind || len(v.List) != len(w.List) || len(v.Members) != len(w.Members) {
		return false
	}
	if v.Kind == KindNumber {
		a, ok1 := Rational(v)
		b, ok2 := Rational(w)
		return v.Text == w.Text || ok1 && ok2 && (*big.Rat).Cmp(a, b) == 0
	}
	for i := range v.List {
		if !v.List[i].Equal(w.List[i]) {
			return false
		}
	}
	for _, m := range v.Members {
		if x := w.Get(m.Name); x == nil || !m.Value.Equal(x) {
			return false
		}
	}
	return v.Text == w.Text
}

// HasType reports whether a value has one of the types.
func (v *Value) HasType(names []string) bool {
	switch v.Kind {
	case KindNull:
		return slices.Contains(names, "null")
	case KindBool:
		return slices.Contains(names, "boolean")
	case KindString:
		return slices.Contains(names, "string")
	case KindObject:
		return slices.Contains(names, "object")
	case KindArray:
		return slices.Contains(names, "array")
	}
	if slices.Contains(names, "number") {
		return true
	}
	x, ok := Rational(v)
	return ok && x.IsInt() && slices.Contains(names, "integer")
}

// Says reports whether one of the keywords occurs anywhere in a value.
func (v *Value) Says(keys []string) bool {
	for _, m := range v.Members {
		if slices.Contains(keys, m.Name) || m.Value.Says(keys) {
			return true
		}
	}
	return slices.ContainsFunc(v.List, func(x *Value) bool { return x.Says(keys) })
}

// Limits reports whether a schema restricts unevaluated members or items.
func (v *Value) Limits() bool {
	return slices.ContainsFunc(UnevaluatedKeys, func(k string) bool { return v.Get(k) != nil && !v.Get(k).IsTrue() })
}

// KeysOf returns the keys of some values, see Value.Key.
func KeysOf(list []*Value) map[string]bool {
	out := make(map[string]bool, len(list))
	for _, x := range list {
		out[x.Key()] = true
	}
	return out
}

// OneMember returns an object with one member.
func OneMember(key string, v *Value) *Value {
	return &Value{Kind: KindObject, Members: []Member{{key, v}}}
}

// OfType returns the schema of values of some types.
func OfType(names ...string) *Value {
	return OneMember("type", &Value{Kind: KindArray, List: Texted(names)})
}

// WithoutMember returns the schema of values without a property of the given name.
func WithoutMember(name string) *Value {
	return OneMember("properties", OneMember(name, &Value{Kind: KindBool, Text: "false"}))
}

// Both returns the allOf of two schemas; nil allows everything. It drops equal parts, so that
// merging recursive schemas terminates.
func Both(a, b *Value) *Value {
	if b == nil || b.IsTrue() || a == b {
		return a
	}
	if a == nil || a.IsTrue() {
		return b
	}
	list := slices.Clone(together(a))
	for _, x := range together(b) {
		if !slices.ContainsFunc(list, func(y *Value) bool { return x == y || x.sameRef(y) }) {
			list = append(list, x)
		}
	}
	if len(list) == 1 {
		return list[0]
	}
	return OneMember("allOf", &Value{Kind: KindArray, List: list})
}

// BothOf returns the conjunction of two schemas; b may be nil.
func BothOf(a, b *Value) *Value {
	if x := Both(a, b); x != nil {
		return x
	}
	return &Value{Kind: KindBool, Text: "true"}
}

// together returns the parts of a schema that consists of allOf only, or else the schema.
func together(v *Value) []*Value {
	if len(v.Members) == 1 && v.Members[0].Name == "allOf" && len(v.Members[0].Value.List) > 0 {
		return v.Members[0].Value.List
	}
	return []*Value{v}
}

// Texted returns strings as values.
func Texted(names []string) (out []*Value) {
	for _, n := range names {
		out = append(out, &Value{Kind: KindString, Text: n})
	}
	return out
}

// Rational parses a number with a limited number of digits and a limited exponent.
func Rational(v *Value) (*big.Rat, bool) {
	if v.Kind != KindNumber || len(v.Text) > 40 {
		return nil, false
	}
	if f, err := strconv.ParseFloat(v.Text, 64); err != nil || f > 1e30 || f < -1e30 || f != 0 && f < 1e-30 &&
		f > -1e-30 {
		return nil, false
	}
	return new(big.Rat).SetString(v.Text)
}

// ConstantsOf returns the values of const or enum, or nil.
func ConstantsOf(s *Value) []*Value {
	if k := s.Get("const"); k != nil {
		return []*Value{k}
	}
	if e := s.Get("enum"); e != nil {
		return e.List
	}
	return nil
}

// Requires reports whether a schema requires a member.
func Requires(s *Value, name string) bool {
	r := s.Get("required")
	return r != nil && slices.ContainsFunc(r.List, func(x *Value) bool { return x.Text == name })
}

// Exactly returns the expression for one string.
func Exactly(s string) string { return "^(?:" + regexp.QuoteMeta(s) + ")$" }

// Outermost reports whether a bound is beyond all numbers that are generated, such as the limits of
// floating-point types.
func Outermost(v *Value, lower bool) bool {
	if v.Kind != KindNumber {
		return false
	}
	f, _ := strconv.ParseFloat(v.Text, 64) // infinite on overflow
	return lower && f <= -1e18 || !lower && f >= 1e18
}

// Places returns the schemas of the first items and that of the others, or nil for missing
// keywords.
func Places(s *Value) ([]*Value, *Value) {
	it := s.Get("items")
	if p := s.Get("prefixItems"); p != nil {
		return p.List, it
	}
	if it != nil && it.Kind == KindArray {
		return it.List, s.Get("additionalItems")
	}
	return nil, it
}

// Weight returns the number of values in a value. It stops soon after limit.
func (v *Value) Weight(limit int) int {
	n := 1 + len(v.Text)/64
	for i := 0; i < len(v.List) && n <= limit; i++ {
		n += v.List[i].Weight(limit - n)
	}
	for i := 0; i < len(v.Members) && n <= limit; i++ {
		n += v.Members[i].Value.Weight(limit - n)
	}
	return n
}

// sameRef reports whether both schemas consist of the same $ref only.
func (v *Value) sameRef(w *Value) bool {
	return len(v.Members) == 1 && len(w.Members) == 1 && v.Members[0].Name == "$ref" &&
		w.Members[0].Name == "$ref" && v.Members[0].Value.Text == w.Members[0].Value.Text
}

// With returns a value with a member or an item replaced. If x is nil, a member is removed and an
// item becomes the schema true.
func (v *Value) With(name string, x *Value) *Value {
	out := *v
	out.index = nil
	if v.Kind == KindArray {
		i, _ := strconv.Atoi(name)
		if x == nil {
			x = &Value{Kind: KindBool, Text: "true"}
		}
		out.List = slices.Clone(v.List)
		out.List[i] = x
		return &out
	}
	out.Members = nil
	for _, m := range v.Members {
		if m.Name == name {
			if x == nil {
				continue
			}
			m.Value = x
		}
		out.Members = append(out.Members, m)
	}
	return &out
}

// WithTexts adds patterns and formats to those of a schema.
func (v *Value) WithTexts(more []Member) *Value {
	list := &Value{Kind: KindArray}
	if old := v.Get(MoreTexts); old != nil {
		list.List = slices.Clone(old.List)
	}
	for _, m := range more {
		x := m.Value
		if m.Name == "format" {
			x = OneMember("format", x)
		}
		if Expression(x, Formats) != "" {
			list.List = append(list.List, x)
		}
	}
	if len(more) == 0 || len(list.List) == 0 {
		return v
	}
	out := &Value{Kind: KindObject}
	for _, m := range v.Members {
		if m.Name != MoreTexts {
			out.Members = append(out.Members, m)
		}
	}
	out.Members = append(out.Members, Member{MoreTexts, list})
	return out
}
