package tokenizer

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"sandwich/runtime/api"
)

// lists are conversations by kind. In a list S, D, U, A, T are messages of the system, a developer,
// a user, the assistant and a tool; C is the assistant's with a call, CC with two.
var lists = map[string][]string{
	"ordinary":         {"U", "S U", "U A U", "S U A U A U", "S U C T", "S U C T A U", "U C T C T A U"},
	"late system":      {"U A S U", "S U A S U", "S U S", "U S A U", "S U A S U A S U", "S U C T S U"},
	"second system":    {"S S U", "S S S U", "S S U A U", "S S U A S U"},
	"developer":        {"D U", "S D U", "D S U A U", "S U A D U", "U A U D", "D"},
	"repeated user":    {"U U", "U U U", "S U U A U", "U A U U", "U S U", "U A U S U"},
	"repeated reply":   {"U A A U", "S U A A A U", "U A C T A U", "U A S A U"},
	"reply first":      {"A U", "S A U", "A A U", "A U A U", "S A U A U U"},
	"user after tool":  {"U C T U", "S U C T U", "U C T T U A U", "U CC T T U", "U C T U C T U"},
	"call without end": {"U C U", "S U C U A U", "U CC T U"},
	"orphan result":    {"U T U", "U A T U", "T U", "U C T A T U", "S T U"},
	"without user":     {"S", "S S", "S A", "S C T", "A", "C T", "S A S"},
}

// conversation makes the messages of a list. Each text has a word of its own.
func conversation(list string) (msgs []api.Message) {
	roles := map[string]string{"S": "system", "D": "developer", "U": "user", "A": "assistant", "T": "tool",
		"C": "assistant", "CC": "assistant"}
	calls := []string{"none"}
	for i, kind := range strings.Fields(list) {
		m := api.Message{Role: roles[kind], Content: fmt.Sprintf("Say %sword%d.", strings.ToLower(kind), i)}
		switch kind {
		case "C", "CC":
			m.Content = ""
			calls = nil
			for n := range len(kind) {
				id := fmt.Sprintf("call%d%d", i, n)
				calls = append(calls, id)
				m.Calls = append(m.Calls, api.ToolCall{ID: id, Name: fruit.Name, Arguments: `{"z": "x"}`})
			}
		case "T":
			m.Name, m.CallID = fruit.Name, calls[0]
			if len(calls) > 1 {
				calls = calls[1:]
			}
		}
		msgs = append(msgs, m)
	}
	return msgs
}

// word returns the word of a message.
func word(m api.Message) string {
	return strings.TrimSuffix(strings.TrimPrefix(m.Content, "Say "), ".")
}

// ownTemplates reads the templates of testdata, one for each behavior of published ones.
func ownTemplates(t *testing.T) (out []publishedTemplate) {
	t.Helper()
	files, err := filepath.Glob("testdata/templates/*.jinja")
	if err != nil || len(files) < 16 {
		t.Fatalf("%d templates, %v", len(files), err)
	}
	for _, file := range files {
		source, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, publishedTemplate{name: filepath.Base(file), source: string(source)})
	}
	return out
}

// TestListsOfMessages renders all lists by templates of all behaviors.
func TestListsOfMessages(t *testing.T) {
	for _, p := range ownTemplates(t) {
		moves := slices.Contains([]string{"last-system-only.jinja", "system-with-last-user.jinja"}, p.name)
		t.Run(p.name, func(t *testing.T) { checkLists(t, chatty(t, p.source), !moves) })
	}
}

// TestListsOfMessagesPublished renders all lists by published templates.
func TestListsOfMessagesPublished(t *testing.T) {
	for _, p := range publishedTemplates(t) {
		t.Run(p.name, func(t *testing.T) { checkLists(t, chatty(t, p.source), false) })
	}
}

// TestListsOfMessagesFallbacks renders all lists by the formats of models without a template.
func TestListsOfMessagesFallbacks(t *testing.T) {
	for name, meta := range map[string]fields{"chatml": bytesBPE(nil, "<|im_start|>", "<|im_end|>"),
		"llama-3": bytesBPE(nil, "<|start_header_id|>", "<|end_header_id|>", "<|eot_id|>"), "llama-2": pieceSPM("▁"),
		"plain": bytesBPE(nil)} {
		tok, err := New(meta)
		if err != nil || tok.ChatFormat() != name {
			t.Fatalf("%s: %v, %v", name, tok.ChatFormat(), err)
		}
		t.Run(name, func(t *testing.T) { checkLists(t, tok, name != "llama-2") })
	}
}

// checkLists fails where a list is refused, or a text of the system, a developer, a user or a tool
// leaves no word or, if ordered is set, texts change their order without a warning.
func checkLists(t *testing.T, tok *Tokenizer, ordered bool) {
	for kind, some := range lists {
		for _, list := range some {
			for _, tools := range [][]api.Tool{nil, {fruit}} {
				name := fmt.Sprintf("%s, %s, %d tools", kind, list, len(tools))
				checkList(t, tok, name, conversation(list), tools, ordered)
			}
		}
	}
}

func checkList(t *testing.T, tok *Tokenizer, name string, msgs []api.Message, tools []api.Tool,
	ordered bool) {
	t.Helper()
	var w api.Warnings
	got, err := text(t, tok, Conversation{Messages: msgs, Tools: tools, Reply: true, Warnings: &w})
	if err != nil {
		t.Errorf("%s: %v", name, err)
		return
	}
	var places []int
	for _, m := range msgs {
		if m.Role == "assistant" {
			continue
		}
		at := strings.Index(got, word(m))
		if at < 0 {
			t.Errorf("%s: %s is lost in %q, warnings %q", name, word(m), got, w.List())
			return
		}
		if strings.Count(got, word(m)) > 1 {
			t.Errorf("%s: %s comes twice in %q", name, word(m), got)
		}
		places = append(places, at)
	}
	if len(tools) > 0 && !strings.Contains(got, fruit.Name) {
		t.Errorf("%s: the tools are lost in %q, warnings %q", name, got, w.List())
	}
	if ordered && !slices.IsSorted(places) && len(w.List()) == 0 {
		t.Errorf("%s: the order changes without a warning: %q", name, got)
	}
	for _, warning := range w.List() {
		if !strings.HasPrefix(warning, "messages: system") &&
			!strings.HasPrefix(warning, "messages: developer") {
			t.Errorf("%s: warning %s for %q", name, warning, got)
		}
	}
}
