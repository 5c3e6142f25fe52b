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

// format returns the form of the answer. It reads OpenAI's response_format, llama-server's grammar
// and json_schema, and vLLM's guided_json, guided_grammar and guided_choice, and refuses conflicts.
func (b *Common) format() (api.Format, *apierr.Error) {
	var given []api.Format
	f, e := responseFormat(b.ResponseFormat)
	if e != nil {
		return f, e
	}
	given = append(given, f)
	for _, g := range []struct {
		raw  json.RawMessage
		name string
	}{{b.JSONSchema, "json_schema"}, {b.GuidedJSON, "guided_json"}} {
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
	}{{b.Grammar, "grammar"}, {b.GuidedGrammar, "guided_grammar"}} {
		if g.text != nil && *g.text != "" {
			given = append(given, api.Format{Kind: api.GBNF, Text: *g.text, Param: g.name})
		}
	}
	if len(b.GuidedChoice) > 0 {
		given = append(given, api.Format{Kind: api.GBNF, Text: alternatives(b.GuidedChoice), Param: "guided_choice"})
	}
	for _, g := range given {
		switch {
		case g.Kind == api.FreeText:
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
