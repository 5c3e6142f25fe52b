package toolcall

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"

	"sandwich/runtime/api"
	"sandwich/runtime/grammar"
)

// tool is a tool with its schema prepared for grammars and parsers.
type tool struct {
	name   string
	text   []byte          // JSON of the schema
	schema *grammar.Schema // the compiled form for grammars
	params []param         // properties in schema order, for named arguments
	// warn records that the keyword at path is not enforced.
	warn func(path, reason string)
}

// param is a property of a tool's schema.
type param struct {
	name       string
	required   bool
	text       bool     // the type is string
	boolean    bool     // the type is boolean
	choices    []string // strings from enum or const; nil: any
	unenforced []string // keywords that are enforced only for strings written as JSON
}

// Schemas of tools that state no properties.
const (
	anyArguments = `{"type":"object"}`
	noArguments  = `{"type":"object","properties":{},"additionalProperties":false}`
)

// MaxTools is the maximum number of tools of a request.
const MaxTools = 1024

// Check returns an *api.InvalidError for tools with invalid, duplicate or unparsable declarations
// and for a choice that names an unknown tool or requires a call without tools.
func Check(tools []api.Tool, choice api.ToolChoice) error {
	refuse := func(i int, format string, args ...any) error {
		return &api.InvalidError{Param: fmt.Sprintf("tools[%d]", i), Message: fmt.Sprintf(format, args...)}
	}
	seen := map[string]int{}
	for i, t := range tools {
		if !isName(t.Name) {
			return refuse(i, "has the invalid name %.40q; use 1 to 128 letters, digits and characters of _-./", t.Name)
		}
		if j, twice := seen[t.Name]; twice {
			return refuse(i, "has the name %s, which tools[%d] also has; tool names must be unique", t.Name, j)
		}
		seen[t.Name] = i
		if t.Parameters != "" && !json.Valid([]byte(t.Parameters)) {
			return refuse(i, "has parameters that are not valid JSON")
		}
	}
	for _, name := range choice.Names {
		if _, known := seen[name]; !known {
			return &api.InvalidError{Param: "tool_choice", Message: fmt.Sprintf("names the unknown tool %.40q; "+
				"use auto, none, required or the name of a tool", name)}
		}
	}
	if choice.Mode == api.ToolsRequired && len(tools) == 0 {
		return &api.InvalidError{Param: "tool_choice", Message: "requires a call, but tools is empty"}
	}
	return nil
}

// isName reports whether s is a valid tool name.
func isName(s string) bool {
	return s != "" && len(s) <= 128 && nameLength(s) == len(s)
}

// nameLength returns the number of leading bytes of s that may occur in a tool name.
func nameLength(s string) int {
	for i := range len(s) {
		switch c := s[i]; {
		case c >= '0' && c <= '9', c|0x20 >= 'a' && c|0x20 <= 'z', strings.IndexByte("_-./", c) >= 0:
		default:
			return i
		}
	}
	return len(s)
}

// readTools prepares the schemas of tools.
func readTools(tools []api.Tool) []tool {
	out := make([]tool, len(tools))
	for i, t := range tools {
		out[i] = tool{name: t.Name, text: []byte(t.Parameters)}
		switch t.Parameters {
		case "", "null": // as in OpenAI's API
			out[i].text = []byte(noArguments)
		case "{}":
			out[i].text = []byte(anyArguments)
		default:
			if statesNoProperties(out[i].text) {
				out[i].text = []byte(noArguments)
			}
		}
		out[i].params = readParams([]byte(t.Parameters))
	}
	return out
}

// statesNoProperties reports whether the schema of a tool has an empty list of properties and
// nothing that permits others. Clients declare functions without arguments so.
func statesNoProperties(schema []byte) bool {
	var s map[string]json.RawMessage
	if json.Unmarshal(schema, &s) != nil || !strings.EqualFold(string(s["type"]), `"object"`) {
		return false
	}
	var properties, required any
	if json.Unmarshal(s["properties"], &properties) != nil {
		return false
	}
	if raw, ok := s["required"]; ok && json.Unmarshal(raw, &required) != nil {
		return false
	}
	names, isObject := properties.(map[string]any)
	wanted, isList := required.([]any)
	for key := range s {
		switch key {
		case "type", "properties", "required", "title", "description", "$schema", "$id", "$comment":
		default:
			return false
		}
	}
	return isObject && len(names) == 0 && (required == nil || isList && len(wanted) == 0)
}

// readParams returns the properties of a schema in order, or nil if it is not the schema of an
// object.
func readParams(schema []byte) (out []param) {
	var s struct {
		Properties json.RawMessage   `json:"properties"`
		Required   []json.RawMessage `json:"required"`
	}
	if json.Unmarshal(schema, &s) != nil {
		return nil
	}
	required := map[string]bool{}
	for _, raw := range s.Required {
		var name string
		if json.Unmarshal(raw, &name) == nil {
			required[name] = true
		}
	}
	d := json.NewDecoder(bytes.NewReader(s.Properties))
	if t, err := d.Token(); err != nil || t != json.Delim('{') {
		return nil
	}
	for d.More() {
		name, err := d.Token()
		var raw json.RawMessage
		if err != nil || d.Decode(&raw) != nil {
			return nil
		}
		p := readParam(raw)
		p.name, p.required = name.(string), required[name.(string)]
		out = append(out, p)
	}
	return out
}

// readParam reads the keywords of a property that concern strings and booleans.
func readParam(schema json.RawMessage) (p param) {
	var s map[string]json.RawMessage
	_ = json.Unmarshal(schema, &s) // fails for the schemas true and false, which have no keywords
	p.text = strings.EqualFold(string(s["type"]), `"string"`)
	p.boolean = strings.EqualFold(string(s["type"]), `"boolean"`)
	var list []json.RawMessage
	_ = json.Unmarshal(s["enum"], &list)
	if x, ok := s["const"]; ok && list == nil {
		list = append(list, x)
	}
	for _, x := range list {
		var text string
		if json.Unmarshal(x, &text) == nil {
			p.choices = append(p.choices, text)
		}
	}
	for _, key := range []string{"pattern", "minLength", "maxLength"} {
		if x, ok := s[key]; ok && string(x) != "null" {
			p.unenforced = append(p.unenforced, key)
		}
	}
	return p
}
