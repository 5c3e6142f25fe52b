package tokenizer

import (
	"os"
	"strings"
	"testing"

	"sandwich/runtime/api"
	"sandwich/runtime/chat"
)

// TestContinued checks that a prompt that the answer continues ends with the text of the last
// message, whatever the template does and wherever else the text occurs.
func TestContinued(t *testing.T) {
	const each = "{% for m in messages %}[{{ m.role }}]{{ m.content }}[/{{ m.role }}]{% endfor %}"
	for _, c := range []struct{ name, template, last, want string }{
		{"as it is", each, "One, ", "[user]Count: One, Two[/user][assistant]One,"},
		{"trimmed", strings.Replace(each, "content", "content | trim", 1), "\n One, \n",
			"[user]Count: One, Two[/user][assistant]One,"},
		{"escaped", strings.Replace(each, "content", "content | tojson", 1), `"One"`,
			`[user]"Count: One, Two"[/user][assistant]"\"One\"`},
		{"again in the end", each + "assistant", "assistant", "[user]Count: One, Two[/user][assistant]assistant"},
		{"cut", strings.Replace(each, "content", "content.split('</think>')[-1].lstrip()", 1), "Hm.</think> One",
			"[user]Count: One, Two[/user][assistant]One"},
		{"nothing", each, " ", "[user]Count: One, Two[/user][assistant] [/assistant]"},
		{"not shown", "{{ messages[0].content }}!", "One", "Count: One, Two!"},
		{"joined", each + "{% if messages | length > 2 %}{{ raise_exception('too many') }}{% endif %}", "One",
			"[user]Count: One, Two[/user][assistant]So:\n\nOne"},
	} {
		msgs := said("user", "Count: One, Two", "assistant", c.last)
		if c.name == "joined" {
			msgs = said("user", "Count: One, Two", "assistant", "So:", "assistant", c.last)
		}
		prompt, err := chatty(t, c.template).Chat(t.Context(), Conversation{Messages: msgs})
		if err != nil || prompt.Continued().Text != c.want {
			t.Errorf("%s: got %q, %v, want %q", c.name, prompt.Continued().Text, err, c.want)
		}
	}
}

// TestWarnings checks that warnings name texts that were moved, and not neighbors that were merged.
func TestWarnings(t *testing.T) {
	own := func(name string) string {
		source, err := os.ReadFile("testdata/templates/" + name + ".jinja")
		if err != nil {
			t.Fatal(err)
		}
		return string(source)
	}
	for _, c := range []struct {
		template, list string
		want           []string
	}{
		{"refuses-late-system", "S U A U", nil},
		{"refuses-late-system", "S U A S U", []string{`messages: system message 4 of 5 ("Say sword3.") was merged into the ` +
			`first system message; the chat template does not show it in its place`}},
		{"alternates", "U A D U", []string{`messages: developer message 3 of 4 ("Say dword2.") was merged into ` +
			`the first system message; the chat template does not show it in its place`}},
		{"first-system-only", "S S D U", nil},
		{"alternates", "S U U A U U", nil},
		{"alternates", "A U", nil},
		{"no-system", "S U", []string{`messages: system message 1 of 2 ("Say sword0.") was written into a user message; ` +
			`the chat template shows no system text there`}},
		{"needs-user", "S A S", []string{`messages: system message 3 of 3 ("Say sword2.") was written into a user ` +
			`message; the chat template shows no system text there`}},
		{"no-user-after-result", "U C T U", nil},
	} {
		var w api.Warnings
		_, err := text(t, chatty(t, own(c.template)), Conversation{Messages: conversation(c.list), Warnings: &w})
		if got := w.List(); err != nil || strings.Join(got, "\n") != strings.Join(c.want, "\n") {
			t.Errorf("%s, %s: %q, %v, want %q", c.template, c.list, got, err, c.want)
		}
	}
	var w api.Warnings
	const one = "{{ messages[-1].content }}"
	msgs := said("user", "A long text, of which a warning has forty bytes at most", "assistant", "B", "user", "C")
	got, err := text(t, chatty(t, one), Conversation{Messages: msgs, Warnings: &w})
	want := `messages: user message 1 of 3 ("A long text, of which a warning has fort...") was left out; the chat ` +
		`template does not show it`
	if err != nil || got != "C" || len(w.List()) != 1 || w.List()[0] != want {
		t.Errorf("got %q, %v, warnings %q", got, err, w.List())
	}
}

// TestSwitch checks that a system text that only switches an option of the template does not count
// as missing.
func TestSwitch(t *testing.T) {
	source, err := os.ReadFile("testdata/templates/switch.jinja")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ system, want string }{
		{"/no_think", "<|system|>You are helpful.<|end|><|user|>Hi<|end|><|assistant|><think></think>"},
		{" /no_think\n", "<|system|>You are helpful.<|end|><|user|>Hi<|end|><|assistant|><think></think>"},
		{"Be brief. /no_think", "<|system|>Be brief.<|end|><|user|>Hi<|end|><|assistant|><think></think>"},
		{"Be brief.", "<|system|>Be brief.<|end|><|user|>Hi<|end|><|assistant|><think>"},
	} {
		var w api.Warnings
		got, err := text(t, chatty(t, string(source)), Conversation{Messages: said("system", c.system, "user", "Hi"),
			Reply: true, Warnings: &w})
		if err != nil || got != c.want || len(w.List()) > 0 {
			t.Errorf("%q: got %q, %v, warnings %q, want %q", c.system, got, err, w.List(), c.want)
		}
	}
}

// TestRepairsKeepMost checks that the version that misses the fewest texts is used if none shows
// all.
func TestRepairsKeepMost(t *testing.T) {
	// It never shows the second message of the user.
	const template = "{% for m in messages %}{% if m.role == 'system' %}{{ raise_exception('no') }}{% endif %}" +
		"{% if 'bad' not in m.content or m.role != 'user' %}{{ m.content }}|{% endif %}{% endfor %}"
	var w api.Warnings
	got, err := text(t, chatty(t, template), Conversation{Messages: said("system", "S", "user", "U", "assistant", "A",
		"user", "bad words"), Warnings: &w})
	if err != nil || got != "<system>\nS\n</system>\n\nU|A|" || len(w.List()) != 2 {
		t.Errorf("got %q, %v, warnings %q", got, err, w.List())
	}
}

// TestTypedContents checks that templates that read contents as lists of parts only get such lists,
// and other templates never print one.
func TestTypedContents(t *testing.T) {
	const parts = "{% for m in messages %}{{ m.role }}:{% for p in m.content %}{% if p.type == 'text' %}" +
		"{{ p.text | trim }};{% endif %}{% endfor %}{% endfor %}"
	const strict = "{% if messages[0].content is string %}{{ raise_exception('parts only') }}{% endif %}" + parts
	for _, c := range []struct{ template, want string }{
		{parts, "system:S;user:U;assistant:A;user:V;"},
		{strict, "system:S;user:U;assistant:A;user:V;"},
		{"{% for m in messages %}{{ m.content[0].text + '|' }}{% endfor %}", "S|U |A|V|"},
		{"{% for m in messages %}{{ m.content.x }}{% endfor %}", ""},
		{"{% for m in messages %}{{ m.content if m.role == 'system' }}{% endfor %}", "S"},
	} {
		got, err := text(t, chatty(t, c.template), Conversation{Messages: said("system", "S", "user", "U ", "assistant",
			"A", "user", "V")})
		if err != nil || got != c.want {
			t.Errorf("%s: got %q, %v, want %q", c.template, got, err, c.want)
		}
	}
}

// TestReasoningNames checks the names by which templates read the reasoning of a message.
func TestReasoningNames(t *testing.T) {
	call := []api.ToolCall{{ID: "call00001", Name: fruit.Name, Arguments: `{"z": "x"}`}}
	for _, c := range []struct {
		m    api.Message
		want string
	}{
		{api.Message{Role: "assistant", Reasoning: "R", Calls: call}, "R R R"},
		{api.Message{Role: "assistant", Reasoning: "R", Content: "A", Calls: call}, "R R "},
		{api.Message{Role: "assistant", Reasoning: "R", Content: "A"}, "R R R"},
		{api.Message{Role: "assistant", Content: "A"}, "  "},
	} {
		const template = "{% set m = messages[0] %}{{ m.reasoning_content }} {{ m.reasoning }} {{ m.thinking }}"
		tok := chatty(t, template)
		h := chat.New(tok.calls(), []api.Message{{Role: c.m.Role, Reasoning: "R", Content: c.m.Content}}, nil)
		var v *chat.Version
		for v = range h.Versions(t.Context()) {
			break
		}
		v.Messages[0].Reasoning, v.Messages[0].Calls = c.m.Reasoning, c.m.Calls
		format, err := tok.chat()
		if err != nil {
			t.Fatal(err)
		}
		out, err := format.render(t.Context(), tok, h, v, Conversation{})
		if err != nil || out.Plain != c.want {
			t.Errorf("%+v: got %q, %v, want %q", c.m, out.Plain, err, c.want)
		}
	}
}

// TestSameTexts checks that a text that occurs elsewhere in the prompt counts as shown only at its
// place.
func TestSameTexts(t *testing.T) {
	const firstOnly = "Be brief. {% if messages[0].role == 'system' %}{{ messages[0].content }}|{% endif %}" +
		"{% for m in messages if m.role != 'system' %}{{ m.content }}|{% endfor %}"
	got, err := text(t, chatty(t, firstOnly), Conversation{Messages: said("system", "Be", "user", "brief",
		"system", "brief", "user", "Be")})
	if want := "Be brief. Be\n\nbrief|brief|Be|"; err != nil || got != want {
		t.Errorf("got %q, %v, want %q", got, err, want)
	}
}
