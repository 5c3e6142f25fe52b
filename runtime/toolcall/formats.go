package toolcall

import (
	"slices"
	"strings"
)

// Format describes how a family of models writes tool calls:
//
//	open (before NAME middle ARGUMENTS after) (between before NAME middle ARGUMENTS after)* close
type Format struct {
	Name string

	// Native reports that the template shows tools to the model, Written that it shows calls of the
	// history. Where they are false, package chat writes tools or calls into messages.
	Native, Written bool

	signatures [][]string // signatures; a template that contains all texts of one list belongs to the family
	marker     string     // starts a call anywhere in an answer
	first      string     // without marker: characters that start a call if they are the first of the answer

	open, before, middle, after, between, close string

	single bool       // templates accept one call per message
	args   *namedArgs // syntax of named arguments; nil: arguments are a JSON object

	reasoning, reasoningEnd string // marks around reasoning; empty if the family has none
	textMark                string // mark before the text of an answer
}

// namedArgs describes arguments that are written one by one instead of as a JSON object.
type namedArgs struct {
	before, middle, after string // around the name and the value
	between               string
	raw                   bool   // strings are written without quotes, up to after
	quote                 string // delimiter of strings; empty: JSON strings
	python                bool   // booleans and null are True, False and None
}

const hermesOpen = "<tool_call>"

// hermes is a family and also the default for templates that match no family.
var hermes = Format{
	Name: "hermes", signatures: [][]string{{hermesOpen}}, marker: hermesOpen,
	before: hermesOpen + "\n" + `{"name": "`, middle: `", "arguments": `, after: "}\n</tool_call>", between: "\n",
}

// formats lists the families. More specific signatures come first.
var formats = []Format{
	{
		Name: "qwen3-coder", signatures: [][]string{{"<function="}}, marker: hermesOpen,
		before: hermesOpen + "\n<function=", middle: ">\n", after: "</function>\n</tool_call>", between: "\n",
		args: &namedArgs{before: "<parameter=", middle: ">\n", after: "\n</parameter>\n", raw: true},
	},
	{
		Name: "glm", signatures: [][]string{{"<arg_key>"}}, marker: hermesOpen,
		before: hermesOpen, middle: "\n", after: "</tool_call>", between: "\n",
		args: &namedArgs{before: "<arg_key>", middle: "</arg_key>\n<arg_value>", after: "</arg_value>\n", raw: true},
	},
	{
		// The end of the call is a token that ends the answer.
		Name: "harmony", signatures: [][]string{{"<|channel|>", "<|message|>"}}, marker: "<|channel|>commentary to=",
		before: "<|channel|>commentary to=functions.", middle: " <|constrain|>json<|message|>", single: true,
		reasoning: "<|channel|>analysis<|message|>", reasoningEnd: "<|end|>", textMark: "<|channel|>final<|message|>",
	},
	{
		Name: "gemma", signatures: [][]string{{"<|tool_call>"}}, marker: "<|tool_call>",
		before: "<|tool_call>call:", middle: "{", after: "}<tool_call|>",
		args: &namedArgs{middle: ":", between: ",", quote: `<|"|>`},
	},
	{
		Name: "deepseek", signatures: [][]string{{"<｜tool▁call▁begin｜>", "<｜tool▁sep｜>"}},
		marker: "<｜tool▁calls▁begin｜>", open: "<｜tool▁calls▁begin｜>", before: "<｜tool▁call▁begin｜>",
		middle: "<｜tool▁sep｜>", after: "<｜tool▁call▁end｜>", close: "<｜tool▁calls▁end｜>",
	},
	{
		Name: "mistral", signatures: [][]string{{"[TOOL_CALLS]", "[ARGS]"}}, marker: "[TOOL_CALLS]",
		before: "[TOOL_CALLS]", middle: "[ARGS]",
	},
	{
		Name: "mistral-list", signatures: [][]string{{"[TOOL_CALLS]"}}, marker: "[TOOL_CALLS]", open: "[TOOL_CALLS][",
		before: `{"name": "`, middle: `", "arguments": `, after: "}", between: ", ", close: "]",
	},
	{
		Name: "lfm2", signatures: [][]string{{"<|tool_call_start|>"}, {"<|tool_list_start|>"}},
		marker: "<|tool_call_start|>", open: "<|tool_call_start|>[", middle: "(", after: ")", between: ", ",
		close: "]<|tool_call_end|>", args: &namedArgs{middle: "=", between: ", ", python: true},
	},
	{
		Name: "phi-4", signatures: [][]string{{"<|/tool|>"}, {"<|/tool_call|>"}}, marker: "<|tool_call|>",
		open: "<|tool_call|>[", before: `{"name": "`, middle: `", "arguments": `, after: "}", between: ", ",
		close: "]<|/tool_call|>",
	},
	hermes,
	{
		Name: "granite", signatures: [][]string{{"<|tool_call|>"}}, marker: "<|tool_call|>", open: "<|tool_call|>[",
		before: `{"name": "`, middle: `", "arguments": `, after: "}", between: ", ", close: "]",
	},
	{
		Name: "pythonic", signatures: [][]string{{"[func_name1("}, {"func_name1(params_name1"}}, first: "[", open: "[",
		middle: "(", after: ")", between: ", ", close: "]", args: &namedArgs{middle: "=", between: ", ", python: true},
	},
	{
		Name: "llama-3", signatures: [][]string{{"<|start_header_id|>", `"parameters": `}}, first: "{",
		before: `{"name": "`, middle: `", "parameters": `, after: "}", single: true,
	},
}

// thinks lists the marks that may surround reasoning.
var thinks = [][2]string{{"<think>", "</think>"}, {"[THINK]", "[/THINK]"}, {"<|channel>thought\n", "<channel|>"}}

// Of returns the format of a chat template, recognized by its source. For an unknown family it
// returns hermes with Native and Written false; package chat then describes the tools in a message.
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
			f.reasoning, f.reasoningEnd = t[0], t[1]
		}
	}
	return &f
}

// matches reports whether a template contains all texts of one signature.
func (f *Format) matches(template string) bool {
	for _, all := range f.signatures {
		found := true
		for _, signature := range all {
			found = found && strings.Contains(template, signature)
		}
		if found {
			return true
		}
	}
	return false
}

// Thinking reports whether a prompt ends inside reasoning, which the answer then continues.
func (f *Format) Thinking(prompt string) bool {
	return f.reasoning != "" &&
		strings.HasSuffix(strings.TrimRight(prompt, " \r\n"), strings.TrimRight(f.reasoning, "\n"))
}

// OneCall reports whether templates of the format accept only one call per message.
func (f *Format) OneCall() bool { return f.single }

// Reasons reports whether answers may have reasoning separate from their text.
func (f *Format) Reasons() bool { return f.reasoning != "" }

// HasControl reports whether reasoning is delimited by control tokens, which a Parser must see.
func (f *Format) HasControl(spans Spans) bool {
	return slices.ContainsFunc(spans(f.reasoning+f.reasoningEnd), func(s Span) bool { return s.Control })
}
