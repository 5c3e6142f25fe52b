package toolcall

import (
	"slices"
	"strings"
)

// Format is how a family of models writes calls:
//
//	open (before NAME middle ARGUMENTS after) (between before NAME middle ARGUMENTS after)* close
type Format struct {
	Name string

	// Native tells that the template shows tools to the model, Written that it shows calls of the
	// history. Without them package chat writes them into messages.
	Native, Written bool

	signs  [][]string // texts of a template; a template that has all of one list is of this family
	marker string     // begins a call wherever it stands in an answer
	first  string     // where there is no marker: characters that begin a call as the first of an answer

	open, before, middle, after, between, close string

	single bool   // templates take one call a message
	args   *named // nil: a JSON object

	reasoning, reasoned string // what reasoning stands between; empty: there is none
	says                string // what stands before the text of an answer
}

// named is how arguments are written one by one, where they are no JSON object.
type named struct {
	before, middle, after string // around the name and the value
	between               string
	raw                   bool   // strings stand as they are, up to after
	quote                 string // before and behind strings; empty: they are JSON
	python                bool   // True, False and None
}

const hermesOpen = "<tool_call>"

// hermes is the default, too.
var hermes = Format{
	Name: "hermes", signs: [][]string{{hermesOpen}}, marker: hermesOpen,
	before: hermesOpen + "\n" + `{"name": "`, middle: `", "arguments": `, after: "}\n</tool_call>", between: "\n",
}

// formats are the families, the more telling signs first.
var formats = []Format{
	{
		Name: "qwen3-coder", signs: [][]string{{"<function="}}, marker: hermesOpen,
		before: hermesOpen + "\n<function=", middle: ">\n", after: "</function>\n</tool_call>", between: "\n",
		args: &named{before: "<parameter=", middle: ">\n", after: "\n</parameter>\n", raw: true},
	},
	{
		Name: "glm", signs: [][]string{{"<arg_key>"}}, marker: hermesOpen,
		before: hermesOpen, middle: "\n", after: "</tool_call>", between: "\n",
		args: &named{before: "<arg_key>", middle: "</arg_key>\n<arg_value>", after: "</arg_value>\n", raw: true},
	},
	{
		// The call's end is a token that ends the answer.
		Name: "harmony", signs: [][]string{{"<|channel|>", "<|message|>"}}, marker: "<|channel|>commentary to=",
		before: "<|channel|>commentary to=functions.", middle: " <|constrain|>json<|message|>", single: true,
		reasoning: "<|channel|>analysis<|message|>", reasoned: "<|end|>", says: "<|channel|>final<|message|>",
	},
	{
		Name: "gemma", signs: [][]string{{"<|tool_call>"}}, marker: "<|tool_call>",
		before: "<|tool_call>call:", middle: "{", after: "}<tool_call|>",
		args: &named{middle: ":", between: ",", quote: `<|"|>`},
	},
	{
		Name: "deepseek", signs: [][]string{{"<｜tool▁call▁begin｜>", "<｜tool▁sep｜>"}},
		marker: "<｜tool▁calls▁begin｜>", open: "<｜tool▁calls▁begin｜>", before: "<｜tool▁call▁begin｜>",
		middle: "<｜tool▁sep｜>", after: "<｜tool▁call▁end｜>", close: "<｜tool▁calls▁end｜>",
	},
	{
		Name: "mistral", signs: [][]string{{"[TOOL_CALLS]", "[ARGS]"}}, marker: "[TOOL_CALLS]",
		before: "[TOOL_CALLS]", middle: "[ARGS]",
	},
	{
		Name: "mistral-list", signs: [][]string{{"[TOOL_CALLS]"}}, marker: "[TOOL_CALLS]", open: "[TOOL_CALLS][",
		before: `{"name": "`, middle: `", "arguments": `, after: "}", between: ", ", close: "]",
	},
	{
		Name: "lfm2", signs: [][]string{{"<|tool_call_start|>"}, {"<|tool_list_start|>"}},
		marker: "<|tool_call_start|>", open: "<|tool_call_start|>[", middle: "(", after: ")", between: ", ",
		close: "]<|tool_call_end|>", args: &named{middle: "=", between: ", ", python: true},
	},
	{
		Name: "phi-4", signs: [][]string{{"<|/tool|>"}, {"<|/tool_call|>"}}, marker: "<|tool_call|>",
		open: "<|tool_call|>[", before: `{"name": "`, middle: `", "arguments": `, after: "}", between: ", ",
		close: "]<|/tool_call|>",
	},
	hermes,
	{
		Name: "granite", signs: [][]string{{"<|tool_call|>"}}, marker: "<|tool_call|>", open: "<|tool_call|>[",
		before: `{"name": "`, middle: `", "arguments": `, after: "}", between: ", ", close: "]",
	},
	{
		Name: "pythonic", signs: [][]string{{"[func_name1("}, {"func_name1(params_name1"}}, first: "[", open: "[",
		middle: "(", after: ")", between: ", ", close: "]", args: &named{middle: "=", between: ", ", python: true},
	},
	{
		Name: "llama-3", signs: [][]string{{"<|start_header_id|>", `"parameters": `}}, first: "{",
		before: `{"name": "`, middle: `", "parameters": `, after: "}", single: true,
	},
}

// thinks are the marks that reasoning stands between.
var thinks = [][2]string{{"<think>", "</think>"}, {"[THINK]", "[/THINK]"}, {"<|channel>thought\n", "<channel|>"}}

// Of recognizes the format of a chat template by its source. Templates of other formats get the
// default, which a system text explains to the model (Explanation).
func Of(template string) *Format {
	f := hermes
	for _, row := range formats {
		if row.matches(template) {
			f = row
			f.Native = strings.Contains(template, "tools")
			f.Written = f.Native && strings.Contains(template, "tool_calls")
			break
		}
	}
	for _, t := range thinks {
		if f.reasoning == "" && strings.Contains(template, t[0]) && strings.Contains(template, t[1]) {
			f.reasoning, f.reasoned = t[0], t[1]
		}
	}
	return &f
}

func (f *Format) matches(template string) bool {
	for _, all := range f.signs {
		found := true
		for _, sign := range all {
			found = found && strings.Contains(template, sign)
		}
		if found {
			return true
		}
	}
	return false
}

// Thinking tells whether a prompt ends inside reasoning, which the answer then goes on with.
func (f *Format) Thinking(prompt string) bool {
	return f.reasoning != "" &&
		strings.HasSuffix(strings.TrimRight(prompt, " \r\n"), strings.TrimRight(f.reasoning, "\n"))
}

// OneCall reports whether templates of the format take one call per message.
func (f *Format) OneCall() bool { return f.single }

// Reasons tells whether answers may have reasoning, apart from their text.
func (f *Format) Reasons() bool { return f.reasoning != "" }

// HasControl tells whether reasoning stands between control tokens, which a Parser has to see.
func (f *Format) HasControl(spans Spans) bool {
	return slices.ContainsFunc(spans(f.reasoning+f.reasoned), func(s Span) bool { return s.Control })
}
