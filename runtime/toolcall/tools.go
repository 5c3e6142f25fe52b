package toolcall

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"

	"sandwich/runtime/api"
	"sandwich/runtime/grammar"
)

// tool is a tool as grammars and parsers see it.
type tool struct {
	name   string
	text   []byte          // of the schema
	schema *grammar.Schema // of grammars
	params []param         // in the order of the schema, for formats with named arguments
	// warn says that a keyword, by its path, is not enforced.
	warn func(path, reason string)
}

type param struct {
	name     string
	required bool
	text     bool     // a string and nothing else
	truth    bool     // a boolean
	choices  []string // the strings that it may be; nil: any
	others   []string // keywords of strings that are enforced only where strings are JSON
}

// anyArguments is the schema of a tool that states none.
const anyArguments = `{"type":"object"}`

// MaxTools is how many tools a request may have.
const MaxTools = 1024

// Check refuses tools that calls could not name.
func Check(tools []api.Tool, choice api.ToolChoice) error {
	refuse := func(i int, format string, args ...any) error {
		return &api.InvalidError{Param: fmt.Sprintf("tools[%d]", i), Message: fmt.Sprintf(format, args...)}
	}
	seen := map[string]int{}
	for i, t := range tools {
		if !isName(t.Name) {
			return refuse(i, "is named %.40q; names have 1 to 128 letters, digits, and of _-./ any", t.Name)
		}
		if j, twice := seen[t.Name]; twice {
			return refuse(i, "is named %s, and so is tools[%d]; a call could mean either", t.Name, j)
		}
		seen[t.Name] = i
		if t.Parameters != "" && !json.Valid([]byte(t.Parameters)) {
			return refuse(i, "has parameters that are not valid JSON")
		}
	}
	for _, name := range choice.Names {
		if _, known := seen[name]; !known {
			return &api.InvalidError{Param: "tool_choice", Message: fmt.Sprintf("names %.40q, which is none of "+
				"the tools; it must be auto, none, required or the name of a tool", name)}
		}
	}
	if choice.Mode == api.ToolsRequired && len(tools) == 0 {
		return &api.InvalidError{Param: "tool_choice", Message: "demands a call, but there are no tools"}
	}
	return nil
}

func isName(s string) bool {
	return s != "" && len(s) <= 128 && nameLength(s) == len(s)
}

// nameLength is how many bytes of s may belong to a name.
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

// readTools reads the schemas of tools.
func readTools(tools []api.Tool) []tool {
	out := make([]tool, len(tools))
	for i, t := range tools {
		out[i] = tool{name: t.Name, text: []byte(t.Parameters)}
		if t.Parameters == "" || t.Parameters == "{}" || t.Parameters == "null" {
			out[i].text = []byte(anyArguments)
		}
		out[i].params = readParams([]byte(t.Parameters))
	}
	return out
}

// readParams returns the properties of a schema in its order; none where it is not an object's.
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

// readParam reads what the schema of a property says of a string or a truth value.
func readParam(schema json.RawMessage) (p param) {
	var s map[string]json.RawMessage
	_ = json.Unmarshal(schema, &s) // true and false are schemas, too
	p.text = strings.EqualFold(string(s["type"]), `"string"`)
	p.truth = strings.EqualFold(string(s["type"]), `"boolean"`)
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
			p.others = append(p.others, key)
		}
	}
	return p
}
