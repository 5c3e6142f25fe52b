package request

import (
	"encoding/json"
	"fmt"
	"strings"

	"sandwich/runtime/api"
	"sandwich/runtime/server/apierr"
	"sandwich/runtime/server/fields"
	"sandwich/runtime/server/jsontext"
)

// structuredOutputs is the object of vLLM that replaces its guided_ fields.
type structuredOutputs struct {
	JSON       json.RawMessage `json:"json"`
	JSONObject *bool           `json:"json_object"`
	Choice     []string        `json:"choice"`
	Grammar    *string         `json:"grammar"`
	Regex      json.RawMessage `json:"regex"`
	Tag        json.RawMessage `json:"structural_tag"`
}

// structured is the field with structuredOutputs.
const structured = "structured_outputs"

// check returns an error for the members that are not supported.
func (o *structuredOutputs) check() *apierr.Error {
	for _, m := range []struct {
		raw  json.RawMessage
		name string
	}{{o.Regex, "regex"}, {o.Tag, "structural_tag"}} {
		if !jsontext.IsEmpty(m.raw) {
			return apierr.Invalid(structured, "has %s, which is not supported; use json, json_object, choice or "+
				"grammar", m.name)
		}
	}
	return nil
}

// format returns the form of the answer. It reads OpenAI's response_format, llama-server's grammar
// and json_schema, and vLLM's structured_outputs, guided_json, guided_grammar and guided_choice,
// and refuses conflicts.
func (b *Common) format() (api.Format, *apierr.Error) {
	var given []api.Format
	f, e := responseFormat(b.ResponseFormat)
	if e != nil {
		return f, e
	}
	given = append(given, f)
	of := &b.Structured
	if e := of.check(); e != nil {
		return f, e
	}
	if of.JSONObject != nil && *of.JSONObject {
		given = append(given, api.Format{Kind: api.JSONObject, Param: structured})
	}
	for _, g := range []struct {
		raw  json.RawMessage
		name string
	}{{b.JSONSchema, "json_schema"}, {b.GuidedJSON, "guided_json"}, {of.JSON, structured}} {
		if jsontext.IsEmpty(g.raw) {
			continue
		}
		text := string(g.raw)
		var quoted string
		if json.Unmarshal(g.raw, &quoted) == nil {
			text = quoted // vLLM also accepts a quoted schema
		}
		given = append(given, api.Format{Kind: api.JSONSchema, Text: text, Param: g.name})
	}
	for _, g := range []struct {
		text *string
		name string
	}{{b.Grammar, "grammar"}, {b.GuidedGrammar, "guided_grammar"}, {of.Grammar, structured}} {
		if g.text != nil && *g.text != "" {
			given = append(given, api.Format{Kind: api.GBNF, Text: *g.text, Param: g.name})
		}
	}
	for _, g := range []struct {
		texts []string
		name  string
	}{{b.GuidedChoice, "guided_choice"}, {of.Choice, structured}} {
		if len(g.texts) > 0 {
			given = append(given, api.Format{Kind: api.GBNF, Text: alternatives(g.texts), Param: g.name})
		}
	}
	for _, g := range given {
		switch {
		case g.Kind == api.FreeText:
		case f.Kind != api.FreeText && g != f && g.Param == f.Param:
			return f, apierr.Invalid(g.Param, "has several forms of the answer; send one of them")
		case f.Kind != api.FreeText && g != f:
			return f, apierr.Invalid(g.Param, "cannot be combined with %s; send one of them", f.Param)
		default:
			f = g
		}
	}
	return f, nil
}

// responseFormat reads {"type":"text"}, {"type":"json_object"} and
// {"type":"json_schema","json_schema":{"schema":{...}}}.
func responseFormat(raw json.RawMessage) (f api.Format, e *apierr.Error) {
	const field = "response_format"
	if jsontext.IsNull(raw) {
		return f, nil
	}
	var r struct {
		Type       string          `json:"type"`
		Schema     json.RawMessage `json:"schema"` // llama-server's name
		JSONSchema *struct {
			Schema json.RawMessage `json:"schema"`
		} `json:"json_schema"`
	}
	if e := fields.Decode(raw, &r, field); e != nil {
		return f, e
	}
	schema := r.Schema
	if r.JSONSchema != nil {
		schema = r.JSONSchema.Schema
	}
	switch r.Type {
	case "text", "":
		return f, nil
	case "json_object":
		if jsontext.IsNull(schema) {
			return api.Format{Kind: api.JSONObject, Param: field}, nil
		}
	case "json_schema":
		if jsontext.IsNull(schema) {
			return f, apierr.Invalid(field, "lacks json_schema.schema, the schema of the answer")
		}
	default:
		return f, apierr.Invalid(field, "%q is not supported; use text, json_object or json_schema",
			jsontext.Clip(r.Type))
	}
	return api.Format{Kind: api.JSONSchema, Text: string(schema), Param: field}, nil
}

// alternatives returns a GBNF grammar that matches any of the texts.
func alternatives(texts []string) string {
	quoted := make([]string, len(texts))
	for i, t := range texts {
		var q strings.Builder
		for _, r := range t {
			fmt.Fprintf(&q, `\U%08X`, r)
		}
		quoted[i] = `"` + q.String() + `"`
	}
	return "root ::= " + strings.Join(quoted, " | ")
}
