// Package toolcall reads and writes tool calls in the syntax of each model family. Each family is a
// row of a table in formats.go and is recognized by the chat template.
//
// A Format compiles the grammar of an answer with tools (grammar.go): free text up to the marker of
// a call, then a call of one of the tools with arguments that match its schema. A Parser
// (parser.go) splits such an answer into reasoning, text and calls while it arrives; text that does
// not parse as a call stays text. Explanation and Write (adapt.go) produce the text of tools and
// calls for templates that cannot show them.
//
// The package does not depend on a tokenizer or on running requests.
package toolcall
