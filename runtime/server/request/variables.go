package request

import (
	"encoding/json"
	"slices"
	"strings"

	"sandwich/runtime/api"
	"sandwich/runtime/server/apierr"
	"sandwich/runtime/server/fields"
	"sandwich/runtime/server/jsontext"
)

// TemplateOptions has the fields of a request that set variables of the chat template.
type TemplateOptions struct {
	Kwargs json.RawMessage `json:"chat_template_kwargs"` // of vLLM, SGLang and llama-server
	Think  *bool           `json:"enable_thinking"`
	Effort *string         `json:"reasoning_effort"`
}

// efforts are the accepted values of reasoning_effort.
var efforts = []string{"none", "minimal", "low", "medium", "high", "xhigh", "max"}

// Apply sets the template variables of a request: whether the model reasons, under both names that
// templates use, for how long, and then chat_template_kwargs. Templates ignore variables that they
// do not know.
func (t *TemplateOptions) Apply(r *api.Request, effortField string) *apierr.Error {
	b := []byte{'{'}
	put := func(name, value string) {
		if len(b) > 1 {
			b = append(b, ',')
		}
		b = append(append(jsontext.AppendString(b, name), ':'), value...)
	}
	think := t.Think
	if word := fields.String(t.Effort); word != "" {
		if !slices.Contains(efforts, word) {
			return apierr.Invalid(effortField, "is %q and must be one of %s", jsontext.Clip(word),
				strings.Join(efforts, " "))
		}
		if word == "none" && think == nil {
			think = new(bool)
		} else if word != "none" {
			put("reasoning_effort", `"`+word+`"`)
		}
	}
	if think != nil {
		value := "false"
		if *think {
			value = "true"
		}
		put("enable_thinking", value)
		put("thinking", value)
	}
	if !jsontext.IsEmpty(t.Kwargs) {
		if t.Kwargs[0] != '{' {
			return apierr.Invalid("chat_template_kwargs", "must be an object")
		}
		for name, value := range jsontext.Members(t.Kwargs) {
			put(name, string(value))
		}
	}
	if len(b) > 1 {
		r.Variables = string(append(b, '}'))
	}
	return nil
}

// ParseThinking reads Anthropic's thinking and ollama's think: whether the model reasons, or how
// long.
func ParseThinking(raw json.RawMessage, field string) (t TemplateOptions, e *apierr.Error) {
	yes, no := true, false
	switch {
	case jsontext.IsNull(raw):
	case raw[0] == '{':
		var how struct {
			Type string `json:"type"`
		}
		if e := fields.Decode(raw, &how, field); e != nil {
			return t, e
		}
		switch how.Type {
		case "enabled":
			t.Think = &yes
		case "disabled":
			t.Think = &no
		case "adaptive":
		default:
			return t, apierr.Invalid(field+".type", "is %q and must be enabled, disabled or adaptive",
				jsontext.Clip(how.Type))
		}
	case raw[0] == '"':
		t.Effort = new(string)
		e = fields.Decode(raw, t.Effort, field)
	default:
		t.Think = new(bool)
		e = fields.Decode(raw, t.Think, field)
	}
	return t, e
}
