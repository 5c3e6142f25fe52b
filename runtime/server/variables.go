package server

import (
	"encoding/json"
	"strings"

	"sandwich/runtime/api"
)

// told is what a request tells the chat template of its model, beside messages and tools.
type told struct {
	Kwargs json.RawMessage `json:"chat_template_kwargs"` // as vLLM, SGLang and llama-server have it
	Think  *bool           `json:"enable_thinking"`
	Effort *string         `json:"reasoning_effort"`
}

// efforts are the words that APIs have for how long a model reasons.
const efforts = " none minimal low medium high xhigh max "

// tell puts what is told into a request: whether it reasons, under both of the names that templates
// have for that, how long, and behind them what chat_template_kwargs says. A template that knows
// none of them is not changed by them.
func (t *told) tell(r *api.Request, effortField string) *apiError {
	b := []byte{'{'}
	put := func(name, value string) {
		if len(b) > 1 {
			b = append(b, ',')
		}
		b = append(append(appendString(b, name), ':'), value...)
	}
	think := t.Think
	if word := stringOf(t.Effort); word != "" {
		if strings.Contains(word, " ") || !strings.Contains(efforts, " "+word+" ") {
			return invalid(effortField, "is %q and must be one of%s", clip(word), strings.TrimRight(efforts, " "))
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
	if !isEmpty(t.Kwargs) {
		if t.Kwargs[0] != '{' {
			return invalid("chat_template_kwargs", "must be an object")
		}
		for name, value := range members(t.Kwargs) {
			put(name, string(value))
		}
	}
	if len(b) > 1 {
		r.Variables = string(append(b, '}'))
	}
	return nil
}

// thinks reads Anthropic's thinking and ollama's think: whether the model reasons, or how long.
func thinks(raw json.RawMessage, field string) (t told, e *apiError) {
	yes, no := true, false
	switch {
	case isNull(raw):
	case raw[0] == '{':
		var how struct {
			Type string `json:"type"`
		}
		if e := decode(raw, &how, field); e != nil {
			return t, e
		}
		switch how.Type {
		case "enabled":
			t.Think = &yes
		case "disabled":
			t.Think = &no
		case "adaptive":
		default:
			return t, invalid(field+".type", "is %q and must be enabled, disabled or adaptive", clip(how.Type))
		}
	case raw[0] == '"':
		t.Effort = new(string)
		e = decode(raw, t.Effort, field)
	default:
		t.Think = new(bool)
		e = decode(raw, t.Think, field)
	}
	return t, e
}
