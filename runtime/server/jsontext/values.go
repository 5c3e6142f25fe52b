package jsontext

import (
	"bytes"
	"encoding/json"
	"strings"
)

// IsNull reports whether a field is absent or null; both mean the same.
func IsNull(raw json.RawMessage) bool { return len(raw) == 0 || string(raw) == "null" }

// IsEmpty reports whether a field has no content: absent, null, "", [] or {}.
func IsEmpty(raw json.RawMessage) bool {
	var compact bytes.Buffer
	if IsNull(raw) || json.Compact(&compact, raw) != nil {
		return true
	}
	s := compact.String()
	return s == `""` || s == "[]" || s == "{}"
}

// String decodes a JSON string and reports whether raw is one.
func String(raw json.RawMessage) (text string, ok bool) {
	if len(raw) == 0 || raw[0] != '"' {
		return "", false
	}
	return text, json.Unmarshal(raw, &text) == nil
}

// OrElse returns raw, or other if raw is null.
func OrElse(raw json.RawMessage, other string) json.RawMessage {
	if IsNull(raw) {
		return json.RawMessage(other)
	}
	return raw
}

// Clip shortens client input that is quoted in a message.
func Clip(s string) string {
	if len(s) > 40 {
		return strings.ToValidUTF8(s[:40], "") + "..."
	}
	return s
}
