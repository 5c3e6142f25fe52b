package exchange

import (
	"math"
	"strconv"

	"sandwich/runtime/api"
	"sandwich/runtime/server/jsontext"
)

// appendLogprob appends a log probability. JSON has no infinity; OpenAI sends -9999 instead.
func appendLogprob(b []byte, v float32) []byte {
	if math.IsNaN(float64(v)) || v < -9999 {
		v = -9999
	}
	return strconv.AppendFloat(b, float64(min(v, 0)), 'g', -1, 32)
}

// AppendChatToken appends one element of a chat's logprobs.content.
func AppendChatToken(b []byte, t *api.Token) []byte {
	b = appendTokenFields(append(b, '{'), &t.TokenLogprob)
	b = append(b, `,"top_logprobs":[`...)
	for i := range t.Top {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(appendTokenFields(append(b, '{'), &t.Top[i]), '}')
	}
	return append(b, "]}"...)
}

// appendTokenFields appends the fields of a token without braces.
func appendTokenFields(b []byte, t *api.TokenLogprob) []byte {
	b = jsontext.AppendString(append(b, `"token":`...), t.Piece)
	b = appendLogprob(append(b, `,"logprob":`...), t.Logprob)
	return jsontext.AppendBytes(append(b, `,"bytes":`...), t.Piece)
}

// AppendChatLogprobs appends the logprobs of a chat choice.
func AppendChatLogprobs(b []byte, tokens []api.Token) []byte {
	b = append(b, `{"content":[`...)
	for i := range tokens {
		if i > 0 {
			b = append(b, ',')
		}
		b = AppendChatToken(b, &tokens[i])
	}
	return append(b, `],"refusal":null}`...)
}

// AppendTextLogprobs appends the logprobs of a completion. offset is the position in bytes of the
// first token in the answer.
func AppendTextLogprobs(b []byte, tokens []api.Token, offset int) []byte {
	list := func(name string, f func(t *api.Token)) {
		b = append(append(b, name...), `:[`...)
		for i := range tokens {
			if i > 0 {
				b = append(b, ',')
			}
			f(&tokens[i])
		}
		b = append(b, ']')
	}
	list(`{"tokens"`, func(t *api.Token) { b = jsontext.AppendString(b, t.Piece) })
	unknown := func(t *api.Token) bool { return math.IsNaN(float64(t.Logprob)) && t.Prompt }
	list(`,"token_logprobs"`, func(t *api.Token) {
		if unknown(t) {
			b = append(b, "null"...)
		} else {
			b = appendLogprob(b, t.Logprob)
		}
	})
	list(`,"top_logprobs"`, func(t *api.Token) {
		if unknown(t) {
			b = append(b, "null"...)
		} else {
			b = appendTop(b, t.Top)
		}
	})
	list(`,"text_offset"`, func(t *api.Token) {
		b = jsontext.AppendInt(b, max(0, offset))
		offset += len(t.Piece)
	})
	return append(b, '}')
}

// appendTop appends alternatives as one object. Of tokens with equal text it keeps the most likely
// one, because keys must differ.
func appendTop(b []byte, top []api.TokenLogprob) []byte {
	b = append(b, '{')
	for i := range top {
		seen := false
		for j := range i {
			seen = seen || top[j].Piece == top[i].Piece
		}
		if seen {
			continue
		}
		if i > 0 {
			b = append(b, ',')
		}
		b = jsontext.AppendString(b, top[i].Piece)
		b = appendLogprob(append(b, ':'), top[i].Logprob)
	}
	return append(b, '}')
}

// AppendUsage appends the token counts of a generation as an object. Rejected drafted tokens are
// not part of the completion tokens.
func AppendUsage(b []byte, r *api.Result) []byte {
	b = jsontext.AppendInt(append(b, `{"prompt_tokens":`...), r.PromptTokens)
	b = jsontext.AppendInt(append(b, `,"completion_tokens":`...), r.Tokens)
	b = jsontext.AppendInt(append(b, `,"total_tokens":`...), r.PromptTokens+r.Tokens)
	b = jsontext.AppendInt(append(b, `,"prompt_tokens_details":{"cached_tokens":`...), r.CachedTokens)
	if r.DraftedTokens > 0 {
		b = append(b, `},"completion_tokens_details":{"accepted_prediction_tokens":`...)
		b = jsontext.AppendInt(b, r.AcceptedTokens)
		b = jsontext.AppendInt(append(b, `,"rejected_prediction_tokens":`...), r.DraftedTokens-r.AcceptedTokens)
	}
	return append(b, "}}"...)
}
