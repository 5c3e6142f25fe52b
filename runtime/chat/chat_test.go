package chat

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"sandwich/runtime/api"
	"sandwich/runtime/jinja"
	"sandwich/runtime/toolcall"
)

// native is the format of a template that shows tools, calls and results.
var native = toolcall.Of("{{ tools }}{{ tool_calls }}<tool_call>")

// given makes messages of roles and texts.
func given(words ...string) (msgs []api.Message) {
	for i := 0; i < len(words); i += 2 {
		msgs = append(msgs, api.Message{Role: words[i], Content: words[i+1]})
	}
	return msgs
}

// spelled writes a version on one line.
func spelled(v *Version) string {
	var out []string
	for i := range v.Messages {
		m := &v.Messages[i]
		text := m.Role + " " + strings.ReplaceAll(m.Content().Plain, "\n", "/")
		for _, c := range m.Calls {
			text += " " + c.ID + "()"
		}
		out = append(out, text)
	}
	return strings.Join(out, ", ")
}

// all returns the versions of a conversation.
func all(h *History) (out []string) {
	for v := range h.Versions(context.Background()) {
		out = append(out, spelled(v))
	}
	return out
}

func TestVersions(t *testing.T) {
	for _, c := range []struct {
		name string
		msgs []api.Message
		want []string // in this order, others may be between them
	}{
		{"nothing to repair", given("user", "U", "assistant", "A", "user", "V"), []string{
			"user U, assistant A, user V"}},
		{"developer", given("developer", "D", "user", "U"), []string{
			"developer D, user U", "system D, user U", "user <system>/D/</system>//U"}},
		{"two users", given("user", "U", "user", "V"), []string{"user U, user V", "user U//V"}},
		{"late system", given("system", "S", "user", "U", "assistant", "A", "system", "T", "user", "V"), []string{
			"system S, user U, assistant A, system T, user V", "system S//T, user U, assistant A, user V",
			"user <system>/S/</system>//U, assistant A, user <system>/T/</system>//V"}},
		{"late system between users", given("user", "U", "system", "S", "user", "V"), []string{
			"user U, system S, user V", "system S, user U, user V", "system S, user U//V",
			"user U, user <system>/S/</system>//V", "user U//<system>/S/</system>//V"}},
		{"blank system", given("user", "U", "system", " ", "user", "V"), []string{
			"user U, system  , user V", "user U, user V", "user U//V"}},
		{"reply first", given("system", "S", "assistant", "A", "user", "U"), []string{
			"system S, assistant A, user U", "system S, user , assistant A, user U",
			"system S, user ..., assistant A, user U"}},
		{"no user", given("system", "S", "system", "T"), []string{
			"system S, system T", "system S//T", "system S, user T", "user S//T"}},
		{"orphan", given("user", "U", "tool", "R"), []string{
			"user U, tool R", "user U, user <tool_response>/R/</tool_response>",
			"user U//<tool_response>/R/</tool_response>"}},
	} {
		got := all(New(native, c.msgs, nil))
		if got[0] != c.want[0] || c.name == "nothing to repair" && len(got) != 1 {
			t.Errorf("%s: versions %q", c.name, got)
		}
		at := 0
		for _, want := range c.want {
			i := slices.Index(got[at:], want)
			if i < 0 {
				t.Errorf("%s: %q is not after %q in %q", c.name, want, got[:at], got)
				break
			}
			at += i
		}
		if sorted := slices.Sorted(slices.Values(got)); len(slices.Compact(sorted)) != len(got) {
			t.Errorf("%s: a version comes twice in %q", c.name, got)
		}
	}
}

// TestSplitCalls checks the versions of a conversation with several calls: each call is followed by
// its results, and results of other calls come last.
func TestSplitCalls(t *testing.T) {
	msgs := given("user", "U", "assistant", "A", "tool", "R2", "tool", "R1", "tool", "R3", "user", "V")
	msgs[1].Calls = []api.ToolCall{{ID: "1", Name: "f"}, {ID: "2", Name: "f"}}
	msgs[2].CallID, msgs[3].CallID, msgs[4].CallID = "2", "1", "3"
	got := all(New(native, msgs, nil))
	for _, want := range []string{
		"user U, assistant A 1() 2(), tool R2, tool R1, tool R3, user V",
		"user U, assistant A 1(), tool R1, assistant  2(), tool R2, tool R3, user V",
		"user U, assistant A 1() 2(), tool R2, tool R1, tool R3, assistant , user V",
	} {
		if !slices.Contains(got, want) {
			t.Errorf("%q is not in %q", want, got)
		}
	}
	if !strings.HasPrefix(got[len(got)-1], "user U") {
		t.Errorf("%q", got)
	}
}

// TestExplainedTools checks that a format without tools describes them in the system text, or in a
// user message in versions without system text.
func TestExplainedTools(t *testing.T) {
	tools := []api.Tool{{Name: "f"}}
	plain := toolcall.Of("")
	for _, c := range []struct {
		msgs  []api.Message
		first string
		last  string
	}{
		{given("user", "U"), "system You can call", "user You can call"},
		{given("system", "S", "user", "U"), "system S//You can call", "user <system>/S/</system>//You can call"},
	} {
		got := all(New(plain, c.msgs, tools))
		if !strings.HasPrefix(got[0], c.first) || !strings.HasPrefix(got[len(got)-1], c.last) ||
			!strings.HasSuffix(got[len(got)-1], "</tool_call>//U") {
			t.Errorf("%q", got)
		}
	}
	// A template may show no tools although it knows tools.
	got := all(New(native, given("user", "U"), tools))
	if got[0] != "user U" || !strings.HasPrefix(got[1], "system You can call") {
		t.Errorf("%q", got)
	}
}

func TestMissing(t *testing.T) {
	tools := []api.Tool{{Name: "f"}}
	msgs := given("system", "S", "user", " ", "assistant", "A", "tool", "T", "user", "U")
	h := New(native, msgs, tools)
	out := func(text string, spans ...jinja.Span) jinja.Output {
		return jinja.Output{Text: jinja.Text{Plain: text, Spans: spans}}
	}
	for _, c := range []struct {
		out  jinja.Output
		want string
	}{
		{out("STU"), "[1 4 5 6]"},
		{out("STU", jinja.Span{From: 0, To: 1, Origin: 1}), "[4 5 6]"},
		{out("S  ", jinja.Span{From: 0, To: 1, Origin: 1}, jinja.Span{From: 1, To: 3, Origin: 4}), "[4 5 6]"},
		{out("STUt", jinja.Span{From: 0, To: 1, Origin: 1}, jinja.Span{From: 1, To: 2, Origin: 4},
			jinja.Span{From: 2, To: 3, Origin: 5}, jinja.Span{From: 3, To: 4, Origin: 6}), "[]"},
		{jinja.Output{Matches: map[jinja.Origin][]string{1: {"S"}, 5: {"x"}}}, "[4 5 6]"},
	} {
		if got := fmt.Sprint(h.Missing(c.out)); got != c.want {
			t.Errorf("%+v: %s, want %s", c.out, got, c.want)
		}
	}
	for o, want := range map[jinja.Origin]bool{1: false, 2: true, 3: false, 4: true, 5: true, h.ToolsOrigin(): true,
		h.OtherOrigin(): true} {
		if h.Guarded(o) != want {
			t.Errorf("origin %d is guarded: %v", o, !want)
		}
	}
}

// TestVersionsEnd checks that no further version is made after the context has ended.
func TestVersionsEnd(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	n := 0
	for range New(native, given("user", "U", "user", "V"), nil).Versions(ctx) {
		n++
		cancel()
	}
	if n != 1 {
		t.Errorf("%d versions", n)
	}
}
