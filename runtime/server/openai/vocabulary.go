package openai

import (
	"encoding/json"
	"net/http"
	"unicode/utf8"

	"sandwich/runtime/server/apierr"
	"sandwich/runtime/server/exchange"
	"sandwich/runtime/server/fields"
	"sandwich/runtime/server/generation"
	"sandwich/runtime/server/jsontext"
	"sandwich/runtime/server/request"
)

// Limits of tokenization requests. JSON of tokens takes up to thirty times the size of their text.
const (
	maxTokenize   = 1 << 20 // bytes of text
	maxDetokenize = 1 << 18 // tokens
)

// tokenizeBody is the body of /tokenize in the format of llama-server (content) or vLLM (prompt, or
// the fields of a chat).
type tokenizeBody struct {
	Model            *string         `json:"model"`
	Content          *string         `json:"content"`
	AddSpecial       bool            `json:"add_special"`
	ParseSpecial     *bool           `json:"parse_special"`
	WithPieces       bool            `json:"with_pieces"`
	Prompt           *string         `json:"prompt"`
	AddSpecialTokens *bool           `json:"add_special_tokens"`
	ReturnTokenStrs  bool            `json:"return_token_strs"`
	Messages         json.RawMessage `json:"messages"`
}

var tokenizeFields = fields.Names[tokenizeBody]()

// parse checks the body.
func (b *tokenizeBody) parse(data []byte) (*request.Call, *apierr.Error) {
	if e := fields.Decode(data, b, ""); e != nil {
		return nil, e
	}
	if !jsontext.IsNull(b.Messages) {
		return parseChat(data)
	}
	unknown, e := fields.Check(data, tokenizeFields())
	c := request.New()
	c.Unknown = unknown
	switch {
	case e != nil:
		return nil, e
	case b.Content != nil:
		c.Text = *b.Content
	case b.Prompt != nil:
		c.Text = *b.Prompt
		b.AddSpecial = b.AddSpecialTokens == nil || *b.AddSpecialTokens
	default:
		return nil, apierr.Invalid("content", "is missing; send content, prompt or messages")
	}
	if len(c.Text) > maxTokenize {
		return nil, apierr.Invalid("content", "has %d bytes; at most %d are accepted", len(c.Text), maxTokenize)
	}
	return c, nil
}

// Tokenize handles /tokenize.
func (s *API) Tokenize(w http.ResponseWriter, r *http.Request) {
	var b tokenizeBody
	s.Handle(w, r, b.parse, func(x *exchange.Exchange, r *http.Request, c *request.Call, g generation.Generator) {
		var ids []int32
		var err error
		if c.Chat() {
			ids, err = g.Prompt(r.Context(), &c.Request)
		} else {
			parse := b.ParseSpecial == nil || *b.ParseSpecial
			ids, err = g.Encode(r.Context(), c.Text, b.AddSpecial, parse)
		}
		if err != nil {
			s.Refuse(x, r, err)
			return
		}
		out := appendTokens(nil, g, ids, &b)
		out = exchange.AppendWarnings(out[:len(out)-1], c.Warnings.List())
		jsontext.Write(x, http.StatusOK, append(out, '}'))
	})
}

// appendTokens appends the response in a format that serves clients of both servers.
func appendTokens(b []byte, g generation.Generator, ids []int32, asked *tokenizeBody) []byte {
	list := func(f func(id int32)) {
		b = append(b, '[')
		for i, id := range ids {
			if i > 0 {
				b = append(b, ',')
			}
			f(id)
		}
		b = append(b, ']')
	}
	b = jsontext.AppendInt(append(b, `{"count":`...), len(ids))
	b = append(jsontext.AppendInt(append(b, `,"max_model_len":`...), g.Model().Context), `,"tokens":`...)
	list(func(id int32) {
		if !asked.WithPieces {
			b = jsontext.AppendInt(b, int(id))
			return
		}
		piece := g.Piece(id)
		b = append(jsontext.AppendInt(append(b, `{"id":`...), int(id)), `,"piece":`...)
		if utf8.ValidString(piece) {
			b = append(jsontext.AppendString(b, piece), '}')
		} else { // bytes that are not text without the next token
			b = append(jsontext.AppendBytes(b, piece), '}')
		}
	})
	if b = append(b, `,"token_strs":`...); asked.ReturnTokenStrs {
		list(func(id int32) { b = jsontext.AppendString(b, g.Piece(id)) })
	} else {
		b = append(b, "null"...)
	}
	return append(b, '}')
}

// detokenizeBody is the body of /detokenize.
type detokenizeBody struct {
	Model  *string         `json:"model"`
	Tokens json.RawMessage `json:"tokens"`
}

var detokenizeFields = fields.Names[detokenizeBody]()

// parseDetokenize checks the body of /detokenize.
func parseDetokenize(data []byte) (*request.Call, *apierr.Error) {
	var b detokenizeBody
	if e := fields.Decode(data, &b, ""); e != nil {
		return nil, e
	}
	unknown, e := fields.Check(data, detokenizeFields())
	if e != nil {
		return nil, e
	}
	if jsontext.IsNull(b.Tokens) {
		return nil, apierr.Invalid("tokens", "is missing; send a list of token ids")
	}
	c := &request.Call{Unknown: unknown}
	return c, fields.Each(b.Tokens, "tokens", maxDetokenize, func(_ int, item json.RawMessage) *apierr.Error {
		id, whole := jsontext.ParseInteger(string(item))
		if !whole || id < 0 || id > request.MaxInt32 {
			return apierr.Invalid("tokens", "contains %s, which is not a token id", jsontext.Clip(string(item)))
		}
		c.Prompt = append(c.Prompt, int32(id))
		return nil
	})
}

// Detokenize handles /detokenize: content is llama-server's field, prompt is vLLM's.
func (s *API) Detokenize(w http.ResponseWriter, r *http.Request) {
	s.Handle(w, r, parseDetokenize, func(x *exchange.Exchange, r *http.Request, c *request.Call,
		g generation.Generator) {
		text, err := g.Decode(r.Context(), c.Prompt)
		if err != nil {
			s.Refuse(x, r, err)
			return
		}
		quoted := jsontext.AppendString(nil, text)
		b := append(append([]byte(`{"content":`), quoted...), `,"prompt":`...)
		jsontext.Write(x, http.StatusOK, append(append(b, quoted...), '}'))
	})
}

// ApplyTemplate handles /apply-template: the text of a chat after its template is applied.
func (s *API) ApplyTemplate(w http.ResponseWriter, r *http.Request) {
	s.Handle(w, r, parseChat, func(x *exchange.Exchange, r *http.Request, c *request.Call, g generation.Generator) {
		text, err := g.Render(r.Context(), &c.Request)
		if err != nil {
			s.Refuse(x, r, err)
			return
		}
		out := exchange.AppendWarnings(jsontext.AppendString([]byte(`{"prompt":`), text), c.Warnings.List())
		jsontext.Write(x, http.StatusOK, append(out, '}'))
	})
}

// Props handles /props in llama-server's format: the model, which the query may name, and the
// default parameters.
func (s *API) Props(w http.ResponseWriter, r *http.Request) {
	name := r.URL.Query().Get("model")
	g, ok := s.Router.Route(name, generation.Key(w.(*exchange.Exchange).Salt))
	if !ok {
		generation.UnknownModel(name).Write(w)
		return
	}
	defer g.Close()
	m := g.Model()
	unsaid, _ := (&request.Common{}).Check()
	p := unsaid.Sampling
	body, _ := json.Marshal(map[string]any{
		"default_generation_settings": map[string]any{"n_ctx": m.Context, "params": map[string]any{
			"n_predict": -1, "temperature": p.Temperature, "top_k": p.TopK, "top_p": p.TopP, "min_p": p.MinP,
			"repeat_penalty": p.RepeatPenalty, "frequency_penalty": p.FrequencyPenalty,
			"presence_penalty": p.PresencePenalty, "stop": []string{}, "stream": false, "ignore_eos": false}},
		"total_slots": m.Parallel, "model_alias": m.ID, "model_path": m.ID, "n_ctx": m.Context,
		"chat_template": m.Template, "bos_token": m.BOS, "eos_token": m.EOS,
		"modalities": map[string]any{"vision": false, "audio": false},
	})
	jsontext.Write(w, http.StatusOK, body)
}
