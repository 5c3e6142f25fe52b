package embedding

import (
	"encoding/json"
	"net/http"
	"slices"
	"strconv"

	"sandwich/runtime/api"
	"sandwich/runtime/server/apierr"
	"sandwich/runtime/server/exchange"
	"sandwich/runtime/server/fields"
	"sandwich/runtime/server/generation"
	"sandwich/runtime/server/jsontext"
	"sandwich/runtime/server/request"
)

// rankBody is the body of /v1/rerank in the format of Jina and Cohere, which llama-server and vLLM
// share.
type rankBody struct {
	Fields
	Query           *string           `json:"query"`
	Documents       json.RawMessage   `json:"documents"`
	Texts           json.RawMessage   `json:"texts"`
	TopN            *jsontext.Integer `json:"top_n"`
	ReturnDocuments *bool             `json:"return_documents"`

	documents []string
}

var rankFields = fields.Names[rankBody]()

// parse checks the body.
func (b *rankBody) parse(data []byte) (*request.Call, *apierr.Error) {
	if e := fields.Decode(data, b, ""); e != nil {
		return nil, e
	}
	c, e := b.NewCall(data, rankFields())
	if e != nil {
		return nil, e
	}
	name := "documents"
	if b.Documents == nil && b.Texts != nil {
		name, b.Documents = "texts", b.Texts
	}
	switch {
	case b.Query == nil:
		return nil, apierr.Invalid("query", "is missing; send the text to compare the documents with")
	case b.TopN != nil && *b.TopN < 1:
		return nil, apierr.Invalid("top_n", "is %d and must be at least 1", *b.TopN)
	case jsontext.IsNull(b.Documents):
		return nil, apierr.Invalid(name, "is missing; send a list of texts")
	}
	e = fields.Each(b.Documents, name, MaxTexts, func(_ int, item json.RawMessage) *apierr.Error {
		var text string
		var object struct {
			Text *string `json:"text"`
		}
		switch {
		case item[0] == '"' && json.Unmarshal(item, &text) == nil:
		case item[0] == '{' && json.Unmarshal(item, &object) == nil && object.Text != nil:
			text = *object.Text
		default:
			return apierr.Invalid(name, "must be a list of strings or of objects with a text")
		}
		b.documents = append(b.documents, text)
		return nil
	})
	if e == nil && len(b.documents) == 0 {
		e = apierr.Invalid(name, "is an empty list; send at least one text")
	}
	return c, e
}

// ranked is a document with its score.
type ranked struct {
	index int
	score float32
}

// Rerank handles /v1/rerank: it returns documents by descending score.
func (s *API) Rerank(w http.ResponseWriter, r *http.Request) {
	var b rankBody
	s.Handle(w, r, b.parse, func(x *exchange.Exchange, r *http.Request, c *request.Call, g generation.Generator) {
		v, ok := Read(s.Runner, g, x, r, b.Embedding(c, api.Embedding{Texts: b.documents, Query: *b.Query, Rank: true}),
			"documents")
		if !ok {
			return
		}
		results := make([]ranked, len(v.Rows))
		for i, row := range v.Rows {
			results[i] = ranked{i, row[0]}
		}
		slices.SortFunc(results, descending)
		if b.TopN != nil && *b.TopN < jsontext.Integer(len(results)) {
			results = results[:*b.TopN]
		}
		jsontext.Write(x, http.StatusOK, b.appendRanked(nil, g.Model().ID, &v, results))
	})
}

// appendRanked appends the response.
func (b *rankBody) appendRanked(out []byte, model string, v *api.Vectors, results []ranked) []byte {
	out = jsontext.AppendString(append(out, `{"object":"list","model":`...), model)
	out = append(appendRead(append(out, ','), v), `,"results":[`...)
	for i, r := range results {
		if i > 0 {
			out = append(out, ',')
		}
		out = append(jsontext.AppendInt(append(out, `{"index":`...), r.index), `,"relevance_score":`...)
		out = strconv.AppendFloat(out, float64(r.score), 'g', -1, 32)
		if b.ReturnDocuments != nil && *b.ReturnDocuments {
			out = append(jsontext.AppendString(append(out, `,"document":{"text":`...), b.documents[r.index]), '}')
		}
		out = append(out, '}')
	}
	return append(out, "]}"...)
}
