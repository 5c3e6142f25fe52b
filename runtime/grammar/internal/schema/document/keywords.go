package document

import (
	"math/big"
	"slices"
	"strconv"
	"strings"

	"sandwich/runtime/grammar/internal/automaton"
)

// Describing are keywords that do not affect validation.
var Describing = []string{"title", "description", "default", "examples", "example", "deprecated", "readOnly",
	"writeOnly", "nullable", "discriminator", "$schema", "$id", "$comment", "$anchor", "$dynamicAnchor",
	"$recursiveAnchor", "$vocabulary", "$defs", "definitions", "strict"}

// Referring are the keywords that refer to a schema.
var Referring = []string{"$ref", "$dynamicRef", "$recursiveRef"}

// Conditional are the keywords that depend on whether something else holds. They are rewritten into
// alternatives, which are merged with the rest of their schema.
var Conditional = []string{"not", "if", "then", "else", "dependentRequired", "dependentSchemas", "dependencies"}

// UnevaluatedKeys are the keywords for members and items that no other keyword evaluates.
var UnevaluatedKeys = []string{"unevaluatedProperties", "unevaluatedItems"}

// MoreTexts is a keyword of merged schemas: further expressions that must match.
const MoreTexts = "!texts"

// NeverTexts is a keyword of negated schemas: expressions that must not match.
const NeverTexts = "!never"

// NeverType is the type of an unsatisfiable schema.
const NeverType = "(none)"

// Remainders is a keyword of merged and negated schemas: lists of a divisor, a remainder, and
// whether the number must have that remainder.
const Remainders = "!remainders"

// TypeNames are the types of JSON Schema. "number" includes integers.
var TypeNames = []string{"object", "array", "string", "number", "integer", "boolean", "null"}

// Types returns the types of the keyword type, or all types if it is missing.
func Types(s *Value, path string) ([]string, error) {
	t := s.Get("type")
	if t == nil {
		return []string{"object", "array", "string", "number", "boolean", "null"}, nil
	}
	list := t.List
	if t.Kind == KindString {
		list = []*Value{t}
	}
	if len(list) == 0 {
		return nil, automaton.Refuse(Show(path)+"/type", "the value must be the name of a type or a list of them")
	}
	var out []string
	for _, x := range list {
		if x.Text == NeverType {
			return nil, nil
		}
		if x.Kind != KindString || !slices.Contains(TypeNames, x.Text) {
			return nil, automaton.Refuse(Show(path)+"/type", "%q is not a type; the types are %s",
				automaton.Clip(x.Text),
				strings.Join(TypeNames, ", "))
		}
		out = append(out, x.Text)
	}
	return out, nil
}

// Count returns the value of a counting keyword, or missing if it is absent.
func Count(s *Value, path, key string, missing int) (int, error) {
	v := s.Get(key)
	if v == nil {
		return missing, nil
	}
	x, ok := new(big.Rat).SetString(v.Text)
	if v.Kind != KindNumber || len(v.Text) > 30 || !ok || !x.IsInt() || x.Sign() < 0 {
		return 0, automaton.Refuse(Show(path)+"/"+key, "the value must be a whole number of at least 0")
	}
	if !x.Num().IsInt64() || x.Num().Int64() > automaton.MaxCount {
		if missing >= 0 {
			return 0, automaton.Refuse(Show(path)+"/"+key, "%s is above the limit of %d", automaton.Clip(v.Text),
				automaton.MaxCount)
		}
		return -1, nil // an upper bound that is never reached
	}
	return int(x.Num().Int64()), nil
}

// Span returns a pair of keywords for a lower and an upper bound; hi is -1 for no limit.
func Span(s *Value, path, minKey, maxKey string) (lo, hi int, err error) {
	if lo, err = Count(s, path, minKey, 0); err != nil {
		return 0, 0, err
	}
	if hi, err = Count(s, path, maxKey, -1); err != nil {
		return 0, 0, err
	}
	if hi >= 0 && lo > hi {
		return 0, 0, automaton.Unsatisfied(Show(path)+"/"+maxKey, "%s is %d", minKey, lo)
	}
	return lo, hi, nil
}

// Show formats a path for errors.
func Show(path string) string { return "#" + path }

// Child returns a member of an object or an item of an array, or nil.
func Child(v *Value, name string) *Value {
	switch v.Kind {
	case KindObject:
		return v.Get(name)
	case KindArray:
		if i, err := strconv.Atoi(name); err == nil && i >= 0 && i < len(v.List) {
			return v.List[i]
		}
	}
	return nil
}

// PointerText replaces the escapes of a token of a JSON pointer.
var PointerText = strings.NewReplacer("~1", "/", "~0", "~")

var pointerEscapes = strings.NewReplacer("~", "~0", "/", "~1")

// EscapePointer escapes a name as a token of a JSON pointer.
func EscapePointer(name string) string { return pointerEscapes.Replace(name) }
