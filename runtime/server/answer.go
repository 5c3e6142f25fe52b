package server

import (
	"crypto/rand"
	"net/http"
	"strconv"
	"time"

	"sandwich/runtime/api"
	"sandwich/runtime/server/jsontext"
)

// answer holds the fields that all objects of one answer share.
type answer struct {
	id      string
	model   string
	created int64
	chat    bool
}

// newAnswer returns the fields of a new answer with a random id.
func newAnswer(model string, chat bool) *answer {
	prefix := "cmpl-"
	if chat {
		prefix = "chatcmpl-"
	}
	return &answer{id: prefix + rand.Text(), model: model, created: time.Now().Unix(), chat: chat}
}

// appendHead appends the fields before "choices".
func (a *answer) appendHead(b []byte, object string) []byte {
	b = jsontext.AppendString(append(b, `{"id":`...), a.id)
	b = jsontext.AppendString(append(b, `,"object":`...), object)
	b = strconv.AppendInt(append(b, `,"created":`...), a.created, 10)
	return jsontext.AppendString(append(b, `,"model":`...), a.model)
}

// whole writes an answer as one JSON object.
type whole struct {
	*stream
	call *call
	got  []gathered // by choice
}

// gathered collects one choice of an answer.
type gathered struct {
	text      []byte
	reasoning []byte
	calls     []api.ToolCall
	tokens    []api.Token // only if log probabilities are requested
	end       api.Finish
}

// newWhole returns a writer of the answer to c.
func newWhole(s *stream, c *call) *whole {
	return &whole{stream: s, call: c, got: make([]gathered, c.choices())}
}

// token adds a token to choice i.
func (a *whole) token(i int, t api.Token) error {
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

// ended records why choice i ended.
func (a *whole) ended(i int, r *api.Result) { a.got[i].end = r.Finish }

// finish writes the object.
func (a *whole) finish(r *api.Result) {
	object := "text_completion"
	if a.chat {
		object = "chat.completion"
	}
	b := append(a.appendHead(nil, object), `,"choices":[`...)
	for i := range a.got {
		if i > 0 {
			b = append(b, ',')
		}
		b = jsontext.AppendInt(append(b, `{"index":`...), i)
		if a.chat {
			b = a.appendMessage(b, &a.got[i])
		} else {
			b = a.appendText(b, i)
		}
		b = append(jsontext.AppendString(append(b, `,"finish_reason":`...), string(a.got[i].end)), '}')
	}
	b = appendWarnings(appendUsage(append(b, `],"usage":`...), r), a.call.Warnings.List())
	jsontext.Write(a.w, http.StatusOK, append(b, '}'))
}

// appendMessage appends the message of a chat choice with its log probabilities.
func (a *whole) appendMessage(b []byte, g *gathered) []byte {
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
		return appendChatLogprobs(b, g.tokens)
	}
	return append(b, "null"...)
}

// appendText appends the text of completion choice i, after its prompt if the client wants it
// echoed.
func (a *whole) appendText(b []byte, i int) []byte {
	g, before := &a.got[i], echoed{}
	if a.call.echo != nil {
		before = a.call.echo[i/a.call.n]
	}
	b = jsontext.AppendString(append(b, `,"text":`...), before.text+string(g.text))
	b = append(b, `,"logprobs":`...)
	if a.call.Logprobs {
		return appendTextLogprobs(b, g.tokens, before.offset)
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
