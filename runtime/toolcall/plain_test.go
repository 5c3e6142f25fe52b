package toolcall

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"sandwich/runtime/api"
)

func TestPlainJSON(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{`{"a":1}`, `{"a":1}`},
		{`{ "a" : "b  c" }`, `{ "a" : "b  c" }`},
		{`"\u4e2d\u6587 caf\u00e9 \ud83d\ude00"`, `"中文 café 😀"`},
		{`"\u0022 \u005C \u000a \u0009 \u0041\u0026"`, `"\" \\ \n \t A&"`},
		{`"\u0000 \u001B \u007f"`, "\"\\u0000 \\u001B \u007f\""},
		{`"\ud83d x \ude00 \ud83d\u0041 \uFFFD"`, "\"\\ud83d x \\ude00 \\ud83dA \uFFFD\""},
		{"\"a\u2028b\u2029c\u0085d \\u2028\"", `"a\u2028b\u2029c\u0085d \u2028"`},
		{`"\\u4e2d \/ \" \\"`, `"\\u4e2d \/ \" \\"`},
		{"{\n  \"a\": [\n    1,\n    2\n  ],\r\n\t\"b\": {\n  }\n}\n", `{"a": [1, 2], "b": {}}`},
		{"{\n \"a\" :\n \"x\\n y: \\u00e9\"\n}", `{"a" : "x\n y: é"}`},
		{"\"\xff\\u00e9\"", "\"\xffé\""},
		{`"\u12`, `"\u12`},
		{``, ``},
	} {
		if got := plainJSON(c.text); got != c.want {
			t.Errorf("%s:\n got %s\nwant %s", c.text, got, c.want)
		}
	}
}

// TestExplanation checks that each declaration takes one line without \u escapes.
func TestExplanation(t *testing.T) {
	tools := []api.Tool{
		{Name: "f", Description: "a < b\n\u2028", Parameters: "{\n  \"type\": \"object\",\n  \"properties\": {\"x\": " +
			"{\"description\": \"\\u4e2d\\u6587 caf\\u00e9\"}}\n}"},
		{Name: "g"},
	}
	_, declarations, _ := hermes.Explanation(tools)
	lines := strings.SplitAfter(declarations, "\n")
	if len(lines) != len(tools)+1 || !strings.Contains(lines[0], `"中文 café"`) ||
		!strings.Contains(lines[0], `"a < b\n\u2028"`) {
		t.Errorf("%q", lines)
	}
	for i, line := range lines[:len(tools)] {
		if !json.Valid([]byte(line)) || strings.ContainsRune(line, '\u2028') {
			t.Errorf("tool %d: %s", i, line)
		}
	}
}

// FuzzPlainJSON checks that the value stays the same, on one line.
func FuzzPlainJSON(f *testing.F) {
	for _, text := range []string{`{"a": "\u00e9\ud83d\ude00\ud83d"}`, "[1,\n \"\\u000a\\u2028\"]", `"\\\u0022"`} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		var before, after any
		if json.Unmarshal([]byte(text), &before) != nil {
			return
		}
		plain := plainJSON(text)
		if err := json.Unmarshal([]byte(plain), &after); err != nil || !reflect.DeepEqual(before, after) {
			t.Fatalf("%s became %s: %v", text, plain, err)
		}
		if strings.ContainsAny(plain, "\n\r\u0085\u2028\u2029") {
			t.Fatalf("%q is not one line", plain)
		}
	})
}
