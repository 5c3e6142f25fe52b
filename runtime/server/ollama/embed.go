package ollama

import (
	"encoding/json"
	"net/http"
	"strconv"
	"strings"
	"time"

	"sandwich/runtime/api"
	"sandwich/runtime/server/apierr"
	"sandwich/runtime/server/embedding"
	"sandwich/runtime/server/exchange"
	"sandwich/runtime/server/fields"
	"sandwich/runtime/server/generation"
	"sandwich/runtime/server/jsontext"
	"sandwich/runtime/server/request"
)

// ollamaEmbedBody is the body of /api/embed and, with a prompt, of the older /api/embeddings.
type ollamaEmbedBody struct {
	embedding.Fields
	Input      json.RawMessage   `json:"input"`
	Prompt     *string           `json:"prompt"`
	Dimensions *jsontext.Integer `json:"dimensions"`
	Options    json.RawMessage   `json:"options"`
	KeepAlive  json.RawMessage   `json:"keep_alive"`

	texts api.Embedding
}

var ollamaEmbedFields = fields.Names[ollamaEmbedBody]()

// parse checks the body.
func (b *ollamaEmbedBody) parse(data []byte) (*request.Call, *apierr.Error) {
	if e := fields.Decode(data, b, ""); e != nil {
		return nil, e
	}
	c, e := b.NewCall(data, ollamaEmbedFields())
	switch {
	case e != nil:
		return nil, e
	case b.Dimensions != nil && *b.Dimensions < 0:
		return nil, apierr.Invalid("dimensions", "is %d and must not be negative", *b.Dimensions)
	}
	if jsontext.IsNull(b.Truncate) { // ollama's default
		b.Truncated = true
	}
	if b.Prompt != nil {
		b.texts.Texts = []string{*b.Prompt}
		return c, nil
	}
	return c, embedding.ParseInput(b.Input, &b.texts)
}

// Embed handles /api/embed, which returns vectors of length 1, and /api/embeddings, which returns
// the model's vector unchanged.
func (s *API) Embed(w http.ResponseWriter, r *http.Request) {
	var b ollamaEmbedBody
	old := strings.HasSuffix(r.URL.Path, "/embeddings")
	s.Handle(w, r, b.parse, func(x *exchange.Exchange, r *http.Request, c *request.Call, g generation.Generator) {
		if e := embedding.CheckDimensions(g, b.Dimensions); e != nil {
			e.Write(x)
			return
		}
		v, ok := embedding.Read(s.Runner, g, x, r, b.Embedding(c, b.texts), "input")
		if !ok {
			return
		}
		if old {
			jsontext.Write(x, http.StatusOK, append(embedding.AppendFloats([]byte(`{"embedding":`), v.Rows[0]), '}'))
			return
		}
		out := append(jsontext.AppendString([]byte(`{"model":`), g.Model().ID), `,"embeddings":[`...)
		for i, row := range v.Rows {
			if i > 0 {
				out = append(out, ',')
			}
			if b.Dimensions != nil && *b.Dimensions > 0 {
				row = row[:*b.Dimensions]
			}
			api.Normalize(row)
			out = embedding.AppendFloats(out, row)
		}
		out = strconv.AppendInt(append(out, `],"total_duration":`...), int64(time.Since(x.Start)), 10)
		out = jsontext.AppendInt(append(out, `,"load_duration":0,"prompt_eval_count":`...), v.Tokens)
		jsontext.Write(x, http.StatusOK, append(out, '}'))
	})
}
