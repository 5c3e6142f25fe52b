package tokenizer

import (
	"context"
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"sandwich/runtime/api"
	"sandwich/runtime/chat"
)

func chatty(t *testing.T, template string) *Tokenizer {
	t.Helper()
	meta := bytesBPE(nil, "<s>", "</s>").with(fields{keyBOS: uint64(256), keyEOS: uint64(257)})
	if template != "" {
		meta[keyTemplate] = template
	}
	tok, err := New(meta)
	if err != nil {
		t.Fatal(err)
	}
	return tok
}

// said returns a conversation from alternating roles and texts.
func said(words ...string) (msgs []api.Message) {
	for i := 0; i < len(words); i += 2 {
		msgs = append(msgs, api.Message{Role: words[i], Content: words[i+1]})
	}
	return msgs
}

// text renders a conversation as text.
func text(t *testing.T, tok *Tokenizer, c Conversation) (string, error) {
	t.Helper()
	prompt, err := tok.Chat(t.Context(), c)
	return prompt.Text, err
}

var talk = said("system", "Be <brief>.", "user", " Hi \n", "assistant", "It's me", "user", "Why?")

func TestChatTemplate(t *testing.T) {
	for _, c := range []struct{ name, template, want string }{
		{"trim and strip blocks", "{% for m in messages %}\n  {% if m.role == 'user' %}\n[{{ m.content }}]\n  " +
			"{% endif %}\n{% endfor %}\n", "[ Hi \n]\n[Why?]\n"},
		{"filters bind tighter than +", "{% for m in messages %}{{ '<' + m['content'] | trim + '>' }}{% endfor " +
			"%}", "<Be <brief>.><Hi><It's me><Why?>"},
		{"bos, eos, prompt", "{{ bos_token }}{{ messages[-1]['content'] }}{{ eos_token }}{% if " +
			"add_generation_prompt %}GO{% endif %}", "<s>Why?</s>GO"},
		{"tojson as Python writes it", "{{ messages[2] | tojson }}", `{"role": "assistant", "content": "It's me"}`},
		{"tojson indented", `{{ {"a": [1, 2.5, none, true], "b": "<é` + "\u2028" + `"} | tojson(indent=2) }}`,
			"{\n  \"a\": [\n    1,\n    2.5,\n    null,\n    true\n  ],\n  \"b\": \"<é\u2028\"\n}"},
		{"namespace", "{% set ns = namespace(n=0, s='') %}{% for m in messages %}{% set ns.n = ns.n + 1 %}{% " +
			"set ns.s = ns.s + m.role[0] %}{% endfor %}{{ ns.n }}{{ ns.s }}", "4suau"},
		{"slices and loop", "{% set rest = messages[1:] %}{% for m in rest %}{{ loop.index0 }}{{ m.role }}{% if " +
			"not loop.last %},{% endif %}{% endfor %}", "0user,1assistant,2user"},
		{"one message, from the end", "{% set one = messages[:1] %}{{ one[-1].role }}", "system"},
		{"undefined is false", "{% if y %}T{% endif %}{% if y is defined %}D{% endif %}{% if x is none " +
			"%}N{% endif %}{{ x }}", ""},
		{"tools and documents are None", "{% if tools is not none or documents is not none %}T{% endif %}" +
			"{{ tools is defined and documents is defined }}", "True"},
		{"string methods", "{{ messages[1].content.strip() }}|{{ 'a, b'.split(', ')[-1] }}|{{ " +
			"'a</t>b'.split('</t>', 1)[1] }}|{{ 'x'.split('y')[-1] }}|{{ 'abc'.replace('b', '') }}|{{ " +
			"'\\n\\na'.lstrip('\\n') }}", "Hi|b|b|x|ac|a"},
		{"macro", "{% macro turn(m, end='.') %}{{ m.role }}{{ end }}{% endmacro %}{{ turn(messages[0]) }}{{ " +
			"turn(messages[1], end='!') }}", "system.user!"},
		{"generation tag", "{% for m in messages %}{% if m.role == 'assistant' %}{% generation %}{{ m.content " +
			"}}{% endgeneration %}{% endif %}{% endfor %}", "It's me"},
		{"range", "{% for i in range(1, 6, 2) %}{{ i }}{% endfor %}{% for i in range(2, 0, -1) %}{{ i }}{% " +
			"endfor %}", "13521"},
		{"join and select", "{{ messages | map(attribute='role') | join('+') }} {{ messages | " +
			"selectattr('role', 'equalto', 'user') | list | length }}", "system+user+assistant+user 2"},
		{"whitespace control", "a\n  {%- if true -%}\n  b\n  {%- endif -%}\n c", "abc"},
		{"format", "{{ '{} of {1}, {x}, {{}}'.format(1, 2, x=3) }}", "1 of 2, 3, {}"},
		{"conditionals anywhere", "{{ ('a' if add_generation_prompt else 'b') + ('c' if x else 'd') }}{{ ['e' " +
			"if x else 'f', 1][0] }}{% set y = 'g' if x else 'h' if not add_generation_prompt else 'i' %}{{ y " +
			"}}{{ '(if x else y)' }}{% raw %}{{ (1 if 2 else 3) }}{% endraw %}{# (1 if 2) #}{{ (namespace(v='' " +
			"if x else 'n')).v }}{{ ('' if true else 'o') }}{{ ('z' if x) }}", "adfi(if x else y){{ (1 if 2 " +
			"else 3) }}n"},
		{"the last newline of the source is not written", "x\n", "x"},
	} {
		t.Run(c.name, func(t *testing.T) {
			tok := chatty(t, c.template)
			format, err := tok.chat()
			if err != nil {
				t.Fatal(err)
			}
			h := chat.New(tok.calls(), talk, nil)
			for v := range h.Versions(t.Context()) { // the first is the conversation as it is
				out, err := format.render(t.Context(), tok, h, v, Conversation{Reply: true})
				if err != nil || out.Plain != c.want {
					t.Errorf("got %q, %v, want %q", out.Plain, err, c.want)
				}
				break
			}
		})
	}
}

func TestChatRefusal(t *testing.T) {
	tok := chatty(t, "{% if 'Why' in messages[-1].content %}{{ raise_exception('No questions, got ' ~ "+
		"messages[0].role) }}{% endif %}{% for m in messages %}{{ m.content }}|{% endfor %}")
	_, err := text(t, tok, Conversation{Messages: talk, Reply: true})
	if !errors.Is(err, ErrMessages) || !strings.Contains(err.Error(), "No questions, got system") {
		t.Errorf("got %v", err)
	}
	got, err := text(t, tok, Conversation{Messages: talk[:3], Reply: true})
	if want := "Be <brief>.| Hi \n|It's me|"; err != nil || got != want {
		t.Errorf("got %q, %v, want %q", got, err, want)
	}
	if _, err := text(t, tok, Conversation{Reply: true}); !errors.Is(err, ErrMessages) {
		t.Errorf("no messages: %v", err)
	}
}

// TestChatHostile checks the error of a template that fails or is stopped: it blames the model in
// one sentence. Package jinja tests templates that consume resources.
func TestChatHostile(t *testing.T) {
	for name, c := range map[string]struct{ template, want string }{
		"lists of lists": {"{% set l=range(10000)|list %}{{ (l" + strings.Repeat("+l", 200) + ")|length }}", "stopped"},
		"failing":        {"{{ 1 % 0 }}", "failed"},
		"broken":         {"{% for m in messages %}", "cannot be used"},
	} {
		t.Run(name, func(t *testing.T) {
			text, err := text(t, chatty(t, c.template), Conversation{Messages: talk, Reply: true})
			if err == nil {
				t.Fatalf("rendered %.100q", text)
			}
			if !strings.Contains(err.Error(), c.want) || len(err.Error()) > 600 || strings.Contains(err.Error(), "\n") {
				t.Errorf("got %v, want one short sentence with %q", err, c.want)
			}
			if errors.Is(err, ErrMessages) {
				t.Errorf("blames the messages: %v", err)
			}
		})
	}
}

// TestChatLong checks that templates that read all messages before each message render a long
// conversation.
func TestChatLong(t *testing.T) {
	tok := chatty(t, "{% for m in messages %}{% set ns = namespace(n=0) %}{% for j in range(loop.index0 - 1, "+
		"-1, -1) %}"+
		"{% if messages[j].role == 'user' %}{% set ns.n = ns.n + 1 %}{% endif %}{% endfor %}{{ ns.n }} {% endfor %}")
	msgs := slices.Repeat(said("user", "Go on.", "assistant", "Yes."), 400)
	text, err := text(t, tok, Conversation{Messages: msgs, Reply: true})
	if err != nil || !strings.HasSuffix(text, " 399 399 400 ") {
		t.Errorf("got %.100q, %v", text, err)
	}
}

// TestChatAbandoned checks that a rendering ends with its request and returns the cause.
func TestChatAbandoned(t *testing.T) {
	tok := chatty(t, "{% for i in range(100000) %}{% for j in range(1000) %}{% endfor %}{% endfor %}")
	ctx, cancel := context.WithCancelCause(context.Background())
	gone := errors.New("the client left")
	cancel(gone)
	if _, err := tok.Chat(ctx, Conversation{Messages: talk, Reply: true}); !errors.Is(err, gone) {
		t.Errorf("got %v", err)
	}
}

func TestChatIDs(t *testing.T) {
	spelled := chatty(t, "{{ bos_token }}{{ messages[0].content }}{{ eos_token }}")
	silent := chatty(t, "{{ messages[0].content }}{{ eos_token }}")
	msgs := said("user", "a")
	for name, c := range map[string]struct {
		tok    *Tokenizer
		addBOS bool
		want   []int32
	}{
		"template writes BOS, model does not ask": {spelled, false, []int32{256, 'a', 257}},
		"template writes BOS, model asks":         {spelled, true, []int32{256, 'a', 257}},
		"model asks":                              {silent, true, []int32{256, 'a', 257}},
		"no flag":                                 {silent, false, []int32{'a', 257}},
	} {
		c.tok.addBOS = c.addBOS
		got, err := c.tok.ChatIDs(t.Context(), msgs, false)
		if err != nil || !slices.Equal(got, c.want) {
			t.Errorf("%s: got %v, %v, want %v", name, got, err, c.want)
		}
	}
}

func TestChatFallbacks(t *testing.T) {
	msgs := said("system", "S", "user", "U", "assistant", "A", "user", "V")
	for _, c := range []struct {
		name string
		meta fields
		want string
	}{
		{"chatml", bytesBPE(nil, "<|im_start|>", "<|im_end|>"),
			"<|im_start|>system\nS<|im_end|>\n<|im_start|>user\nU<|im_end|>\n<|im_start|>assistant\nA<|im_end|>\n<|im_start|>user\nV<|im_end|>\n<|im_start|>assistant\n"},
		{"llama-3", bytesBPE(nil, "<|start_header_id|>", "<|end_header_id|>", "<|eot_id|>"),
			"<|start_header_id|>system<|end_header_id|>\n\nS<|eot_id|><|start_header_id|>user<|end_header_id|>\n\nU<|eot_id|><|start_header_id|>assistant<|end_header_id|>\n\nA<|eot_id|><|start_header_id|>user<|end_header_id|>\n\nV<|eot_id|><|start_header_id|>assistant<|end_header_id|>\n\n"},
		{"llama-2", pieceSPM("▁"), "<s>[INST] <<SYS>>\nS\n<</SYS>>\n\nU [/INST] A </s><s>[INST] V [/INST]"},
		{"plain", bytesBPE(nil), "system: S\nuser: U\nassistant: A\nuser: V\nassistant:"},
	} {
		tok, err := New(c.meta)
		if err != nil {
			t.Fatal(err)
		}
		got, err := text(t, tok, Conversation{Messages: msgs, Reply: true})
		if err != nil || got != c.want || tok.ChatFormat() != c.name {
			t.Errorf("%s (%s): %v\n got %q\nwant %q", c.name, tok.ChatFormat(), err, got, c.want)
		}
	}
}

func TestChatConcurrent(t *testing.T) {
	tok := chatty(t, "{% set ns = namespace(s='') %}{% for m in messages %}{% set ns.s = ns.s + m.content %}{% "+
		"endfor %}{{ ns.s }}")
	done := make(chan string)
	for i := range 8 {
		go func() {
			text, err := text(t, tok, Conversation{Messages: said("user", string(rune('a'+i)), "user",
				string(rune('a'+i)))})
			if err != nil {
				text = err.Error()
			}
			done <- text
		}()
	}
	var got []string
	for range 8 {
		got = append(got, <-done)
	}
	slices.Sort(got)
	if want := strings.Fields("aa bb cc dd ee ff gg hh"); !slices.Equal(got, want) {
		t.Errorf("got %q", got)
	}
}

// TestDemoChat renders the embedded model's own template.
func TestDemoChat(t *testing.T) {
	tok := load(t, filepath.Join("..", "demo", "tales-6m-q8_0.gguf"))
	got, err := text(t, tok, Conversation{Messages: said("user", "Tell me a story about a fox. ", "assistant",
		"Once.", "user",
		"Go on."), Reply: true})
	want := "<|user|>\nTell me a story about a fox.\n<|assistant|>\nOnce.<|endoftext|><|user|>\nGo on.\n<|assistant|>\n"
	if err != nil || got != want {
		t.Errorf("got %q, %v", got, err)
	}
	ids, err := tok.ChatIDs(t.Context(), said("user", "Hi"), true)
	if err != nil || ids[0] != 4093 || ids[1] != 4094 || slices.Contains(ids[1:], 4093) || !slices.Contains(ids, 4095) {
		t.Errorf("ids %v, %v", ids, err)
	}
	if !tok.IsEOG(4093) || tok.IsEOG(4094) || !tok.IsControl(4095) {
		t.Error("the end of the text is not known")
	}
}
