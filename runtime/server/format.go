package server

import (
	"encoding/json"
	"strconv"
	"strings"

	"sandwich/runtime/api"
)

// format is what the answer must be, under whichever of its names: OpenAI's response_format,
// llama-server's grammar and json_schema, vLLM's guided ones.
func (b *common) format() (api.Format, *apiError) {
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
		if isEmpty(g.raw) {
			continue
		}
		text := string(g.raw)
		var quoted string
		if json.Unmarshal(g.raw, &quoted) == nil {
			text = quoted // vLLM takes it as a string, too
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
			return f, invalid(g.Param, "is given beside %s; an answer has one form", f.Param)
		default:
			f = g
		}
	}
	return f, nil
}

// responseFormat reads {"type":"text"}, {"type":"json_object"} and
// {"type":"json_schema","json_schema":{"schema":{...}}}.
func responseFormat(raw json.RawMessage) (f api.Format, e *apiError) {
	const field = "response_format"
	if isNull(raw) {
		return f, nil
	}
	var r struct {
		Type       string          `json:"type"`
		Schema     json.RawMessage `json:"schema"` // as llama-server takes it
		JSONSchema *struct {
			Schema json.RawMessage `json:"schema"`
		} `json:"json_schema"`
	}
	if e := decode(raw, &r, field); e != nil {
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
		if isNull(schema) {
			return api.Format{Kind: api.JSONObject, Param: field}, nil
		}
	case "json_schema":
		if isNull(schema) {
			return f, invalid(field, "needs json_schema.schema, the schema of the answer")
		}
	default:
		return f, invalid(field, "%q is not supported; there are text, json_object and json_schema", clip(r.Type))
	}
	return api.Format{Kind: api.JSONSchema, Text: string(schema), Param: field}, nil
}

// alternatives is a grammar of any of the texts.
func alternatives(texts []string) string {
	quoted := make([]string, len(texts))
	for i, t := range texts {
		var q strings.Builder
		for _, r := range t {
			q.WriteString(`\U` + strings.ToUpper(hex8(r)))
		}
		quoted[i] = `"` + q.String() + `"`
	}
	return "root ::= " + strings.Join(quoted, " | ")
}

func hex8(r rune) string {
	h := strconv.FormatInt(int64(r), 16)
	return strings.Repeat("0", 8-len(h)) + h
}
