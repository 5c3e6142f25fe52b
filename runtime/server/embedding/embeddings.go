// Package embedding serves embeddings in OpenAI's format and scores in the format of Jina and
// Cohere. Package ollama shares its parsing of inputs.
package embedding

import (
	"bytes"
	"cmp"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"math"
	"net/http"
	"strconv"
	"strings"

	"sandwich/runtime/api"
	"sandwich/runtime/server/apierr"
	"sandwich/runtime/server/exchange"
	"sandwich/runtime/server/fields"
	"sandwich/runtime/server/generation"
	"sandwich/runtime/server/jsontext"
	"sandwich/runtime/server/request"
)

// API serves /v1/embeddings and /v1/rerank.
type API struct{ *generation.Runner }

// MaxTexts bounds the texts of an embeddings request, as in OpenAI's API, and the documents of a
// rerank request.
const MaxTexts = 2048

// Fields has the fields that requests for embeddings and for scores share.
type Fields struct {
	Model       *string         `json:"model"`
	User        *string         `json:"user"`
	Truncate    json.RawMessage `json:"truncate"`
	ServiceTier *string         `json:"service_tier"`
	Priority    json.RawMessage `json:"priority"`
	CacheSalt   *string         `json:"cache_salt"`

	Truncated bool `json:"-"` // truncate texts that are too long
}

// unsupported lists fields of other servers (vLLM, TEI, Jina, Cohere, Voyage) that would change the
// result, each with the value that does not.
var unsupported = map[string]string{
	"normalize":            "true",
	"normalized":           "true",
	"embedding_type":       `"float"`,
	"embedding_types":      `["float"]`,
	"output_dtype":         `"float"`,
	"output_dimension":     "",
	"truncation":           "",
	"truncation_direction": `"Right"`,
	"late_chunking":        "",
	"prompt_name":          "",
	"max_tokens_per_doc":   "",
	"max_chunks_per_doc":   "1",
	"rank_fields":          `["text"]`,
}

// NewCall returns a checked call with the shared fields.
func (b *Fields) NewCall(data []byte, known map[string]bool) (*request.Call, *apierr.Error) {
	unknown, e := fields.Check(data, known, unsupported)
	if e == nil {
		e = b.truncation()
	}
	if e != nil {
		return nil, e
	}
	c := &request.Call{Unknown: unknown}
	if b.CacheSalt != nil {
		c.CacheSalt = *b.CacheSalt
	}
	return c, (&request.Common{Priority: b.Priority, ServiceTier: b.ServiceTier}).ReadClass(c)
}

// truncation reads whether texts are cut: true, or END in the APIs of Cohere and NVIDIA.
func (b *Fields) truncation() *apierr.Error {
	var end string
	switch {
	case jsontext.IsNull(b.Truncate):
		return nil
	case json.Unmarshal(b.Truncate, &b.Truncated) == nil:
		return nil
	case json.Unmarshal(b.Truncate, &end) == nil && strings.EqualFold(end, "END"):
		b.Truncated = true
		return nil
	case end != "" && strings.EqualFold(end, "NONE"):
		return nil
	}
	return apierr.Invalid("truncate", `must be true or "END" to cut the end of what is too long, or false or "NONE"`)
}

// Embedding completes a request for the texts of a call.
func (b *Fields) Embedding(c *request.Call, texts api.Embedding) api.Embedding {
	texts.Truncate, texts.Salt = b.Truncated, c.Salt
	texts.Class, texts.Priority = c.Class, c.Priority
	return texts
}

// embedBody is the body of /v1/embeddings, with the additional names of llama-server and vLLM.
type embedBody struct {
	Fields
	Input      json.RawMessage   `json:"input"`
	Content    json.RawMessage   `json:"content"`
	Format     *string           `json:"encoding_format"`
	Dimensions *jsontext.Integer `json:"dimensions"`
	Normalize  *jsontext.Integer `json:"embd_normalize"` // -1: unchanged, 2: Euclidean length 1

	texts api.Embedding
}

var embedFields = fields.Names[embedBody]()

// parse checks the body.
func (b *embedBody) parse(data []byte) (*request.Call, *apierr.Error) {
	if e := fields.Decode(data, b, ""); e != nil {
		return nil, e
	}
	c, e := b.NewCall(data, embedFields())
	if e != nil {
		return nil, e
	}
	if b.Input == nil {
		b.Input = b.Content
	}
	switch {
	case b.Format != nil && *b.Format != "float" && *b.Format != "base64":
		return nil, apierr.Invalid("encoding_format", "is %q and must be float or base64", jsontext.Clip(*b.Format))
	case b.Dimensions != nil && *b.Dimensions < 1:
		return nil, apierr.Invalid("dimensions", "is %d and must be at least 1", *b.Dimensions)
	case b.Normalize != nil && *b.Normalize != -1 && *b.Normalize != 2:
		return nil, apierr.Invalid("embd_normalize", "is %d; -1 (raw) and 2 (length 1) are supported", *b.Normalize)
	}
	return c, ParseInput(b.Input, &b.texts)
}

// ParseInput reads a string, a list of strings, a list of token ids, or a list of such lists.
func ParseInput(raw json.RawMessage, to *api.Embedding) *apierr.Error {
	const accepted = "must be a string, a list of strings, a list of token ids or a list of such lists"
	raw = bytes.TrimSpace(raw)
	switch {
	case jsontext.IsNull(raw):
		return apierr.Invalid("input", "is missing; send a text, a list of texts or token ids")
	case raw[0] == '"':
		to.Texts = make([]string, 1)
		return fields.Decode(raw, &to.Texts[0], "input")
	case raw[0] != '[':
		return apierr.Invalid("input", accepted)
	}
	first := raw[jsontext.SkipSpace(raw, 1)]
	switch first {
	case ']':
		return apierr.Invalid("input", "is an empty list; send at least one text")
	case '"', '[':
	default:
		raw = append(append([]byte{'['}, raw...), ']') // one text given as token ids
	}
	return fields.Each(raw, "input", MaxTexts, func(_ int, item json.RawMessage) *apierr.Error {
		if first == '"' {
			var text string
			if item[0] != '"' || json.Unmarshal(item, &text) != nil {
				return apierr.Invalid("input", accepted)
			}
			to.Texts = append(to.Texts, text)
			return nil
		}
		// encoding/json would read null as 0.
		if item[0] != '[' || bytes.IndexByte(item, 'n') >= 0 {
			return apierr.Invalid("input", accepted)
		}
		ids, err := jsontext.ParseTokenIDs(item)
		if err != nil {
			if value, is := strings.CutPrefix(fields.WrongValue(err), "number "); is {
				return apierr.Invalid("input", "contains %s, which is not a token id", jsontext.Clip(value))
			}
			return apierr.Invalid("input", accepted)
		}
		to.Prompts = append(to.Prompts, ids)
		return nil
	})
}

// Embeddings handles /v1/embeddings.
func (s *API) Embeddings(w http.ResponseWriter, r *http.Request) {
	var b embedBody
	s.Handle(w, r, b.parse, func(x *exchange.Exchange, r *http.Request, c *request.Call, g generation.Generator) {
		if e := CheckDimensions(g, b.Dimensions); e != nil {
			e.Write(x)
			return
		}
		v, ok := Read(s.Runner, g, x, r, b.Embedding(c, b.texts), "input")
		if !ok {
			return
		}
		for i, row := range v.Rows {
			if b.Dimensions != nil {
				row = row[:*b.Dimensions]
			}
			if b.Normalize == nil || *b.Normalize == 2 {
				api.Normalize(row)
			}
			v.Rows[i] = row
		}
		coded := b.Format != nil && *b.Format == "base64"
		jsontext.Write(x, http.StatusOK, appendEmbeddings(nil, g.Model().ID, &v, coded))
	})
}

// CheckDimensions returns an error if the request asks for more dimensions than the model's vectors
// have.
func CheckDimensions(g generation.Generator, dimensions *jsontext.Integer) *apierr.Error {
	m := g.Model()
	if n := dimensions; n != nil && m.Vector > 0 && !m.Scores && *n > jsontext.Integer(m.Vector) {
		return apierr.Invalid("dimensions", "is %d, but the model's vectors have %d dimensions", *n, m.Vector)
	}
	return nil
}

// Read returns the vectors of texts, or writes an error and returns false. param is the field that
// holds the texts.
func Read(s *generation.Runner, g generation.Generator, x *exchange.Exchange, r *http.Request, texts api.Embedding,
	param string) (v api.Vectors, ok bool) {
	v, err := g.Embed(r.Context(), texts)
	switch {
	case apierr.ClientGone(r.Context()):
		x.Status = apierr.StatusClientGone
		return v, false
	case err != nil:
		e := apierr.From(generation.Cause(r.Context(), err), false)
		if e.Status == http.StatusBadRequest && (e.Param == nil || *e.Param == "prompt") {
			e.Param = &param
		}
		e.Write(x)
		return v, false
	}
	s.Finished(x, &api.Result{PromptTokens: v.Tokens, CachedTokens: v.CachedTokens, Queued: v.Queued})
	return v, true
}

// appendEmbeddings appends the response to an embeddings request.
func appendEmbeddings(b []byte, model string, v *api.Vectors, coded bool) []byte {
	b = append(b, `{"object":"list","data":[`...)
	for i, row := range v.Rows {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(jsontext.AppendInt(append(b, `{"object":"embedding","index":`...), i), `,"embedding":`...)
		if coded {
			b = appendCoded(b, row)
		} else {
			b = AppendFloats(b, row)
		}
		b = append(b, '}')
	}
	b = jsontext.AppendString(append(b, `],"model":`...), model)
	return append(appendRead(append(b, ','), v), '}')
}

// appendRead appends the usage of a request that generates nothing.
func appendRead(b []byte, v *api.Vectors) []byte {
	b = jsontext.AppendInt(append(b, `"usage":{"prompt_tokens":`...), v.Tokens)
	b = jsontext.AppendInt(append(b, `,"total_tokens":`...), v.Tokens)
	if v.CachedTokens > 0 {
		b = append(jsontext.AppendInt(append(b, `,"prompt_tokens_details":{"cached_tokens":`...), v.CachedTokens), '}')
	}
	return append(b, '}')
}

// AppendFloats appends numbers as a JSON list.
func AppendFloats(b []byte, row []float32) []byte {
	b = append(b, '[')
	for i, v := range row {
		if i > 0 {
			b = append(b, ',')
		}
		b = strconv.AppendFloat(b, float64(v), 'g', -1, 32)
	}
	return append(b, ']')
}

// appendCoded appends numbers as base64 of little-endian float32, the default of OpenAI's Python
// client.
func appendCoded(b []byte, row []float32) []byte {
	raw := make([]byte, 0, 4*len(row))
	for _, v := range row {
		raw = binary.LittleEndian.AppendUint32(raw, math.Float32bits(v))
	}
	return append(base64.StdEncoding.AppendEncode(append(b, '"'), raw), '"')
}

// descending orders results by score, then by index.
func descending(a, b ranked) int { return cmp.Or(cmp.Compare(b.score, a.score), a.index-b.index) }
