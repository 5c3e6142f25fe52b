package request

import (
	"encoding/json"
	"errors"

	"sandwich/runtime/api"
	"sandwich/runtime/server/apierr"
	"sandwich/runtime/server/fields"
	"sandwich/runtime/server/jsontext"
	"sandwich/runtime/toolcall"
)

// Tool is a tool of a chat completion. Its schema stays as it was sent, because models see the
// order of its properties.
type Tool struct {
	Type     *string         `json:"type"`
	Function *Function       `json:"function"`
	Cache    json.RawMessage `json:"cache_control"`
}

// Function is a function that a tool describes.
type Function struct {
	Name        *string         `json:"name"`
	Description *string         `json:"description"`
	Parameters  json.RawMessage `json:"parameters"`
	Strict      *bool           `json:"strict"`
}

// Tool returns the tool of a request.
func (f *Function) Tool() api.Tool {
	t := api.Tool{Name: fields.String(f.Name), Description: fields.String(f.Description), Strict: f.Strict != nil &&
		*f.Strict}
	if !jsontext.IsNull(f.Parameters) {
		t.Parameters = string(f.Parameters)
	}
	return t
}

// CheckTools returns an error for tools that are invalid or cannot be chosen.
func CheckTools(r *api.Request) *apierr.Error {
	err := toolcall.Check(r.Tools, r.ToolChoice)
	var refused *api.InvalidError
	if errors.As(err, &refused) {
		return apierr.Invalid(refused.Param, "%s", refused.Message)
	}
	return nil
}

// toolModes maps the values of tool_choice.
var toolModes = map[string]api.ToolMode{"auto": api.ToolsAuto, "none": api.ToolsNone,
	"required": api.ToolsRequired, "any": api.ToolsRequired}

// ParseToolChoice reads "auto", "none", "required", the name of a tool, and
// {"function":{"name":...}}.
func ParseToolChoice(raw json.RawMessage) (c api.ToolChoice, e *apierr.Error) {
	const field = "tool_choice"
	if jsontext.IsNull(raw) {
		return c, nil
	}
	if raw[0] == '"' {
		var mode string
		_ = json.Unmarshal(raw, &mode)
		m, ok := toolModes[mode]
		switch {
		case ok:
			return api.ToolChoice{Mode: m}, nil
		case mode == "":
			return c, apierr.Invalid(field, "is empty and must be auto, none, required or the name of a tool")
		}
		return api.ToolChoice{Mode: api.ToolsRequired, Names: []string{mode}}, nil
	}
	var choice choiceBody
	if e := fields.Decode(raw, &choice, field); e != nil {
		return c, e
	}
	mode, plain := toolModes[choice.Type]
	switch {
	case choice.Type == "allowed_tools":
		return choice.allowed()
	case plain && choice.name() == "":
		return api.ToolChoice{Mode: mode}, nil // format of other APIs
	case choice.name() == "" && choice.Type != "" && choice.Type != "function" && choice.Type != "custom":
		return c, apierr.Invalid(field, "has the unsupported type %q; name a function or leave it out",
			jsontext.Clip(choice.Type))
	case choice.name() == "":
		return c, apierr.Invalid(field, "lacks the name of a tool; send "+
			"{\"type\":\"function\",\"function\":{\"name\":...}}")
	}
	return api.ToolChoice{Mode: api.ToolsRequired, Names: []string{choice.name()}}, nil
}

// choiceBody names a tool, or the tools that an answer may choose among.
type choiceBody struct {
	Type     string `json:"type"`
	Name     string `json:"name"` // in /v1/responses
	Space    string `json:"namespace"`
	Function struct {
		Name string `json:"name"`
	} `json:"function"`
	Mode    string       `json:"mode"` // of allowed_tools in /v1/responses
	Tools   []choiceBody `json:"tools"`
	Allowed *choiceBody  `json:"allowed_tools"` // in /v1/chat/completions
}

// name returns the qualified name of the tool.
func (b *choiceBody) name() string { return QualifiedName(b.Space, b.Function.Name+b.Name) }

// allowed reads a choice among some tools. Tools of unsupported types have no name and are skipped.
func (b *choiceBody) allowed() (c api.ToolChoice, e *apierr.Error) {
	if b.Allowed != nil {
		b = b.Allowed
	}
	switch b.Mode {
	case "auto":
	case "required":
		c.Mode = api.ToolsRequired
	default:
		return c, apierr.Invalid("tool_choice.mode", "is %q and must be auto or required", jsontext.Clip(b.Mode))
	}
	for i := range b.Tools {
		if name := b.Tools[i].name(); name != "" {
			c.Names = append(c.Names, name)
		}
	}
	if c.Names == nil {
		return c, apierr.Invalid("tool_choice.tools", "contains no function; name at least one")
	}
	return c, nil
}

// QualifiedName returns the name under which the model calls a tool of a namespace.
func QualifiedName(namespace, name string) string {
	if namespace == "" || name == "" {
		return name
	}
	return namespace + "__" + name
}
