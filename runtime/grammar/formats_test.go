package grammar

import "testing"

// TestFormatsTellApart checks schemas of a oneOf that formats distinguish, alone or together with
// expressions, lengths and constants, of strings, of elements of arrays and objects, and through
// allOf.
func TestFormatsTellApart(t *testing.T) {
	names := []any{"date", "time", "date-time", "duration", "email", "hostname", "ipv4", "ipv6", "uri", "uuid",
		"json-pointer", "relative-json-pointer"}
	manyTaken(t, testVocab(1500, 12), 95, 200, 180, func(r schemaMaker) object {
		of := func() object {
			s := object{"type": "string", "format": r.pick(names...)}
			switch r.IntN(9) {
			case 0:
				return object{"type": "string", "pattern": r.pick("^\\$\\{[a-z.]+\\}$", "^[a-z]{2,9}$",
					"^v[0-9]{1,3}$")}
			case 1:
				return object{"enum": []any{"latest", "12:00:00Z", "none"}}
			case 2:
				return object{"allOf": []any{s, object{"type": "string", "maxLength": 90}}}
			case 3:
				return object{"type": r.pick("integer", "null")}
			}
			return s
		}
		one := object{"oneOf": []any{of(), of()}}
		if r.chance(30) {
			one["oneOf"] = append(one["oneOf"].([]any), of())
		}
		switch r.IntN(5) {
		case 0:
			return object{"type": "array", "items": one, "minItems": 1, "maxItems": 3}
		case 1:
			holding := func() object {
				return object{"type": "object", "required": []any{"at"}, "additionalProperties": false,
					"properties": object{"at": of()}}
			}
			return object{"oneOf": []any{holding(), holding()}}
		}
		return one
	})
}
