package openai

import (
	"net/http"

	"sandwich/runtime/api"
	"sandwich/runtime/server/exchange"
	"sandwich/runtime/server/jsontext"
	"sandwich/runtime/server/request"
)

// whole writes an answer as one JSON object.
type whole struct {
	*exchange.Stream
	call *request.Call
	got  []collected // by choice
}

// collected collects one choice of an answer.
type collected struct {
	text      []byte
	reasoning []byte
	calls     []api.ToolCall
	tokens    []api.Token // only if log probabilities are requested
	end       api.Finish
}

// newWhole returns a writer of the answer to c.
func newWhole(s *exchange.Stream, c *request.Call) *whole {
	return &whole{Stream: s, call: c, got: make([]collected, c.Choices())}
}

// Token adds a token to choice i.
func (a *whole) Token(i int, t api.Token) error {
	g := &a.got[i]
	g.text = append(g.text, t.Text...)
	g.reasoning = append(g.reasoning, t.Reasoning...)
	for _, c := range t.Calls {
		for c.Index >= len(g.calls) {
			g.calls = append(g.calls, api.ToolCall{ID: c.ID, Name: c.Name})
		}
		g.calls[c.Index].Arguments += c.Arguments
	}
	if a.call.Logprobs && t.ID != api.NoToken {
		g.tokens = append(g.tokens, t)
	}
	return nil
}

// Ended records why choice i ended.
func (a *whole) Ended(i int, r *api.Result) { a.got[i].end = r.Finish }

// Finish writes the object.
func (a *whole) Finish(r *api.Result) {
	object := "text_completion"
	if a.Chat {
		object = "chat.completion"
	}
	b := append(a.AppendHead(nil, object), `,"choices":[`...)
	for i := range a.got {
		if i > 0 {
			b = append(b, ',')
		}
		b = jsontext.AppendInt(append(b, `{"index":`...), i)
		if a.Chat {
			b = a.appendMessage(b, &a.got[i])
		} else {
			b = a.appendText(b, i)
		}
		b = append(jsontext.AppendString(append(b, `,"finish_reason":`...), string(a.got[i].end)), '}')
	}
	b = exchange.AppendWarnings(exchange.AppendUsage(append(b, `],"usage":`...), r), a.call.Warnings.List())
	jsontext.Write(a.W, http.StatusOK, append(b, '}'))
}

// appendMessage appends the message of a chat choice with its log probabilities.
func (a *whole) appendMessage(b []byte, g *collected) []byte {
	b = append(b, `,"message":{"role":"assistant","content":`...)
	if text := string(g.text); len(g.calls) > 0 && text == "" {
		b = append(b, "null"...)
	} else {
		b = jsontext.AppendString(b, text)
	}
	b = append(b, `,"refusal":null`...)
	if len(g.reasoning) > 0 {
		b = jsontext.AppendString(append(b, `,"reasoning_content":`...), string(g.reasoning))
	}
	b = append(appendCalls(b, g.calls), `},"logprobs":`...)
	if a.call.Logprobs {
		return exchange.AppendChatLogprobs(b, g.tokens)
	}
	return append(b, "null"...)
}

// appendText appends the text of completion choice i, after its prompt if the client wants it
// echoed.
func (a *whole) appendText(b []byte, i int) []byte {
	g, before := &a.got[i], request.Echo{}
	if a.call.Echo != nil {
		before = a.call.Echo[i/a.call.N]
	}
	b = jsontext.AppendString(append(b, `,"text":`...), before.Text+string(g.text))
	b = append(b, `,"logprobs":`...)
	if a.call.Logprobs {
		return exchange.AppendTextLogprobs(b, g.tokens, before.Offset)
	}
	return append(b, "null"...)
}

// appendCalls appends the tool calls of a complete message, or nothing if there are none.
func appendCalls(b []byte, calls []api.ToolCall) []byte {
	for i, c := range calls {
		if b = append(b, ','); i == 0 {
			b = append(b, `"tool_calls":[`...)
		}
		b = jsontext.AppendString(append(b, `{"id":`...), c.ID)
		b = jsontext.AppendString(append(b, `,"type":"function","function":{"name":`...), c.Name)
		b = append(jsontext.AppendString(append(b, `,"arguments":`...), c.Arguments), "}}"...)
	}
	if len(calls) > 0 {
		b = append(b, ']')
	}
	return b
}
