package jsontext

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"
	"testing"
	"unicode/utf8"
)

// FuzzString compares AppendString with encoding/json.
func FuzzString(f *testing.F) {
	for _, seed := range []string{"", "plain", "\"\\\n\r\t\x00\x1f\x7f", "né \u2028 \U0001f600", "\xff\xc3",
		"a\xffb\xe2\x82"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, s string) {
		b := AppendString(nil, s)
		var got, want string
		if err := json.Unmarshal(b, &got); err != nil {
			t.Fatalf("%q becomes %s: %v", s, b, err)
		}
		ref, _ := json.Marshal(s)
		if err := json.Unmarshal(ref, &want); err != nil {
			t.Fatal(err)
		}
		if got != want || !utf8.Valid(b) {
			t.Fatalf("%q becomes %s", s, b)
		}
	})
}

// FuzzMembers compares members with encoding/json.
func FuzzMembers(f *testing.F) {
	for _, seed := range []string{
		`{"messages":[{"role":"user","content":"hi"}]}`, `{}`, ` { "a" : [ { "b" : "}\"]," } , 1e5 ] , "a":"\\" ,"\u0061":null,"c":-0.5,"d":true}`, `[1]`,
		`null`, `"x"`, `7`,
		`{"":{},"x":[[],[[]],{}]}`, "{\"\\ud800\":1}\n",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		if !json.Valid(body) {
			return
		}
		got := map[string]json.RawMessage{}
		for name, value := range Members(body) {
			got[name] = value
		}
		var want map[string]json.RawMessage
		if json.Unmarshal(body, &want) != nil {
			want = nil
		}
		if !maps.EqualFunc(got, want, func(a, b json.RawMessage) bool { return bytes.Equal(a, b) }) {
			t.Fatalf("%s: %v, want %v", body, slices.Collect(maps.Keys(got)), slices.Collect(maps.Keys(want)))
		}
	})
}
