// Package toolcall knows how models write calls of tools: one row a family (formats.go), which a
// model's chat template is recognised by.
//
// A Format makes the grammar that an answer with tools must be in (grammar.go): free text up to the
// marker that begins a call, and from its first byte on a call of one of the tools with arguments
// that its schema allows. A Parser (parser.go) reads such an answer as it comes and parts it into
// reasoning, text and calls; what does not parse is text. Explanation and Write (adapt.go) are the
// texts of tools and calls in a chat whose template cannot show them.
//
// The package is pure: it knows neither tokenizers nor requests under way.
package toolcall
