package toolcall

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"strconv"
	"strings"
	"testing"

	"sandwich/runtime/api"
	"sandwich/runtime/grammar"
	"sandwich/runtime/refdata"
)

var weather = api.Tool{Name: "get_weather", Description: "The weather of a city", Parameters: `{"type":"object",
	"properties":{"city":{"type":"string"},"unit":{"type":"string","enum":["celsius","kelvin"]},
	"days":{"type":"integer"},"deep":{"type":"boolean"},"where":{"type":"array","items":{"type":"string"}}},
	"required":["city"]}`}

var clock = api.Tool{Name: "clock"}

var tools = []api.Tool{weather, clock}

// calls are written and read back, with equal arguments.
var calls = []api.ToolCall{
	{Name: "get_weather", Arguments: `{"city": "Zürich \"x\" </p> ,)}", "unit": "kelvin", "days": 3}`},
	{Name: "clock", Arguments: `{}`},
	{Name: "get_weather", Arguments: `{"city": "a\nb", "deep": true, "where": ["a, b", "c]"]}`},
}

// reading is the result of parsing an answer.
type reading struct {
	Delta
	calls []api.ToolCall
}

// readAnswer parses an answer in chunks of so many bytes.
func readAnswer(p *Parser, text string, stretch int) (out reading) {
	add := func(d Delta) {
		out.Text += d.Text
		out.Reasoning += d.Reasoning
		for _, c := range d.Calls {
			if c.Name != "" {
				out.calls = append(out.calls, api.ToolCall{ID: c.ID, Name: c.Name})
			}
			out.calls[c.Index].Arguments += c.Arguments
		}
	}
	for len(text) > 0 {
		n := min(stretch, len(text))
		add(p.Push(text[:n]))
		text = text[n:]
	}
	add(p.End())
	return out
}

func ids() func() string {
	n := 0
	return func() string { n++; return "call" + strconv.Itoa(n) }
}

func sameJSON(t *testing.T, a, b string) bool {
	var x, y any
	if err := json.Unmarshal([]byte(a), &x); err != nil {
		t.Errorf("%v in %s", err, a)
	}
	_ = json.Unmarshal([]byte(b), &y)
	return reflect.DeepEqual(x, y)
}

func letters(text string) []Span { return []Span{{Text: text}} }

func allFormats() []Format { return formats }

// A parser reads what its format writes, for all chunk sizes, and the grammar allows it.
func TestEveryFormatReadsWhatItWrites(t *testing.T) {
	for _, f := range allFormats() {
		list := calls
		if f.single {
			list = calls[:1]
		}
		answer := "On it." + f.Write(list)
		if f.first != "" {
			answer = f.Write(list)
		}
		for _, stretch := range []int{1, 2, 7, 1000} {
			got := readAnswer(f.NewParser(tools, false, ids()), answer, stretch)
			if want := strings.TrimSuffix("On it.", strings.Repeat("On it.", len(f.first))); got.Text != want {
				t.Errorf("%s by %d: text %q", f.Name, stretch, got.Text)
			}
			if len(got.calls) != len(list) {
				t.Fatalf("%s by %d: %d calls of %q: %+v", f.Name, stretch, len(got.calls), answer, got)
			}
			for i, c := range got.calls {
				if c.Name != list[i].Name || !sameJSON(t, c.Arguments, list[i].Arguments) {
					t.Errorf("%s by %d: call %d is %+v, want %+v", f.Name, stretch, i, c, list[i])
				}
			}
		}
		if err := allows(t, &f, &api.Request{Tools: tools}, answer); err != nil {
			t.Errorf("%s: %v in %q", f.Name, err, answer)
		}
		if err := allows(t, &f, &api.Request{Tools: tools}, strings.Replace(answer, "clock", "cluck", 1)); err == nil &&
			!f.single {
			t.Errorf("%s: a tool that does not exist is allowed", f.Name)
		}
		must := &api.Request{Tools: tools, ToolChoice: api.ToolChoice{Mode: api.ToolsRequired,
			Names: []string{"clock"}}}
		if err := allows(t, &f, must, f.Write(calls[1:2])); err != nil {
			t.Errorf("%s, required: %v", f.Name, err)
		}
		if err := allows(t, &f, must, "On"); err == nil {
			t.Errorf("%s: text is allowed where a call is required", f.Name)
		}
	}
}

func allows(t *testing.T, f *Format, r *api.Request, answer string) error {
	t.Helper()
	g, _, err := f.Grammar(grammar.NewMeter(t.Context(), grammar.Limits{}), r, letters, false)
	if err != nil {
		t.Fatalf("%s: %v", f.Name, err)
	}
	m := g.Matcher(grammar.NewVocab(nil, nil))
	if err := m.AcceptText([]byte(answer)); err != nil {
		return err
	}
	if !m.CanEnd() {
		return errors.New("it cannot end")
	}
	return nil
}

// outputs is a corpus of answers, including malformed ones.
var outputs = []struct {
	format, answer  string
	text, reasoning string
	calls           []api.ToolCall
}{
	{"hermes", "plain text", "plain text", "", nil},
	{"hermes", "<think>\nhm\n</think>\n\nyes", "yes", "hm", nil},
	{"hermes", "<think>hm", "", "hm", nil},
	{"hermes", "a <tool", "a <tool", "", nil},
	{"hermes", "<tool_call>", "<tool_call>", "", nil},
	{"hermes", "<tool_call>nonsense</tool_call>", "<tool_call>nonsense</tool_call>", "", nil},
	{"hermes", `<tool_call>{"name": "unknown", "arguments": {}}</tool_call>`,
		`<tool_call>{"name": "unknown", "arguments": {}}</tool_call>`, "", nil},
	{"hermes", `<tool_call>{"name":"clock","arguments":{}}</tool_call>`, "", "",
		[]api.ToolCall{{Name: "clock", Arguments: "{}"}}},
	{"hermes", "hi\n\n<tool_call>\n{\"name\": \"clock\", \"arguments\": {\"a\": \"}\\\"", "hi", "",
		[]api.ToolCall{{Name: "clock", Arguments: `{"a": "}\"`}}},
	{"hermes", `<tool_call>{"name": "clock", "arguments": 7}</tool_call>`, "7}</tool_call>", "",
		[]api.ToolCall{{Name: "clock", Arguments: "{}"}}},
	{"hermes", `<tool_call>{"name": "clock", "arguments": {}}</tool_call> and more`, "and more", "",
		[]api.ToolCall{{Name: "clock", Arguments: "{}"}}},
	{"qwen3-coder", "<tool_call>\n<function=get_weather>\n<parameter=city>\nOslo\n<b>\n</parameter>\n<parameter=days>\n" +
		"x\n</parameter>\n</function>\n</tool_call>", "", "",
		[]api.ToolCall{{Name: "get_weather", Arguments: `{"city": "Oslo\n<b>", "days": "x"}`}}},
	{"pythonic", `[get_weather(city='Oslo', deep=True)]`, "", "",
		[]api.ToolCall{{Name: "get_weather", Arguments: `{"city": "Oslo", "deep": true}`}}},
	{"pythonic", `[1, 2]`, `[1, 2]`, "", nil},
	{"llama-3", `{"name": "clock", "parameters": {}}`, "", "", []api.ToolCall{{Name: "clock", Arguments: "{}"}}},
	{"llama-3", `{"title": 1}`, `{"title": 1}`, "", nil},
	{"harmony", "<|channel|>analysis<|message|>Hm.<|end|><|start|>assistant<|channel|>final<|message|>Yes.", "Yes.",
		"Hm.", nil},
	{"harmony", "<|channel|>analysis<|message|>Hm.<|end|><|start|>assistant<|channel|>commentary to=functions.clock " +
		"<|constrain|>json<|message|>{}", "", "Hm.", []api.ToolCall{{Name: "clock", Arguments: "{}"}}},
	{"mistral-list", `[TOOL_CALLS][{"name": "clock", "arguments": {}}] `, "", "",
		[]api.ToolCall{{Name: "clock", Arguments: "{}"}}},
}

func TestOutputs(t *testing.T) {
	for _, c := range outputs {
		f := named0(t, c.format)
		for _, stretch := range []int{1, 3, 1000} {
			got := readAnswer(f.NewParser(tools, false, func() string { return "" }), c.answer, stretch)
			if got.Text != c.text || got.Reasoning != c.reasoning || !reflect.DeepEqual(got.calls, c.calls) {
				t.Errorf("%s by %d: %q\n got %+v\nwant %q %q %+v", c.format, stretch, c.answer, got, c.text,
					c.reasoning,
					c.calls)
			}
		}
	}
	got := readAnswer(named0(t, "hermes").NewParser(nil, true, ids()), "so\n</think>\n\nyes <tool_call>", 3)
	if got.Text != "yes <tool_call>" || got.Reasoning != "so" {
		t.Errorf("a prompt that opens reasoning: %+v", got)
	}
}

// named0 returns a format by name, with reasoning between <think> and </think> if it has none.
func named0(t *testing.T, name string) *Format {
	t.Helper()
	for _, f := range formats {
		if f.Name == name {
			if f.reasoning == "" {
				f.reasoning, f.reasoningEnd = "<think>", "</think>"
			}
			return &f
		}
	}
	t.Fatal(name)
	return nil
}

// Templates of published models are recognized.
func TestOf(t *testing.T) {
	files := refdata.Glob(t, "parity2/templates/*.jinja")
	want := map[string]string{"GLM": "glm", "Qwen3-Coder": "qwen3-coder", "Qwen3.5": "qwen3-coder",
		"Qwen-Qwen": "hermes",
		"Nous":      "hermes", "Mistral": "mistral", "mistralai-Mistral-Nemo": "mistral-list",
		"mistralai-Ministral": "mistral",
		"openai":              "harmony", "google-gemma-4": "gemma", "ibm-granite-granite-3": "granite",
		"ibm-granite-granite-4": "hermes",
		"meta":                  "llama-3", "LFM2": "lfm2"}
	for _, file := range files {
		source, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		f, name := Of(string(source)), filepath.Base(file)
		best := ""
		for prefix := range want {
			if strings.HasPrefix(name, prefix) && len(prefix) > len(best) {
				best = prefix
			}
		}
		if best == "" {
			if f.Native {
				t.Errorf("%s: %s", name, f.Name)
			}
		} else if f.Name != want[best] || !f.Native {
			t.Errorf("%s: %s, native %v", name, f.Name, f.Native)
		}
	}
}

func TestCheck(t *testing.T) {
	for _, c := range []struct {
		tools  []api.Tool
		choice api.ToolChoice
		has    string
	}{
		{[]api.Tool{clock, weather, clock}, api.ToolChoice{}, "tools[2] has the name clock, which tools[0] also has"},
		{[]api.Tool{{Name: "a b"}}, api.ToolChoice{}, "invalid name"},
		{[]api.Tool{{Name: "a", Parameters: "{"}}, api.ToolChoice{}, "not valid JSON"},
		{tools, api.ToolChoice{Mode: api.ToolsRequired, Names: []string{"x"}}, "unknown tool"},
		{nil, api.ToolChoice{Mode: api.ToolsRequired}, "tools is empty"},
	} {
		if err := Check(c.tools, c.choice); err == nil || !strings.Contains(err.Error(), c.has) {
			t.Errorf("%v, want %q", err, c.has)
		}
	}
	if err := Check(tools, api.ToolChoice{Mode: api.ToolsRequired, Names: []string{"clock"}}); err != nil {
		t.Error(err)
	}
}

// FuzzParser reads arbitrary bytes in arbitrary chunks: complete arguments are valid JSON, and
// nothing panics.
func FuzzParser(f *testing.F) {
	for _, c := range outputs {
		f.Add(c.answer, uint8(3))
	}
	for _, row := range formats {
		f.Add(row.Write(calls), uint8(5))
	}
	f.Fuzz(func(t *testing.T, answer string, stretch uint8) {
		for _, row := range formats {
			got := readAnswer(row.NewParser(tools, false, ids()), answer, int(stretch)+1)
			again := readAnswer(row.NewParser(tools, false, ids()), answer, len(answer)+1)
			if !reflect.DeepEqual(got, again) {
				t.Fatalf("%s: by %d %+v, at once %+v", row.Name, stretch, got, again)
			}
		}
	})
}
