package server

import (
	"crypto/rand"
	"strconv"
	"time"

	"sandwich/runtime/api"
)

// answer holds what all chunks of one answer have in common.
type answer struct {
	id      string
	model   string
	created int64
	chat    bool
}

func newAnswer(model string, chat bool) *answer {
	prefix := "cmpl-"
	if chat {
		prefix = "chatcmpl-"
	}
	return &answer{id: prefix + rand.Text(), model: model, created: time.Now().Unix(), chat: chat}
}

// appendHead appends the fields before "choices".
func (a *answer) appendHead(b []byte, object string) []byte {
	b = appendString(append(b, `{"id":`...), a.id)
	b = appendString(append(b, `,"object":`...), object)
	b = strconv.AppendInt(append(b, `,"created":`...), a.created, 10)
	return appendString(append(b, `,"model":`...), a.model)
}

// gathered is the answer to a request that is not streamed.
type gathered struct {
	logprobs  bool // wanted
	text      []byte
	reasoning []byte
	calls     []api.ToolCall
	tokens    []api.Token // where logprobs
}

func (g *gathered) add(t api.Token) error {
	g.text = append(g.text, t.Text...)
	g.reasoning = append(g.reasoning, t.Reasoning...)
	for _, c := range t.Calls {
		for c.Index >= len(g.calls) {
			g.calls = append(g.calls, api.ToolCall{ID: c.ID, Name: c.Name})
		}
		g.calls[c.Index].Arguments += c.Arguments
	}
	if g.logprobs && t.ID != api.NoToken {
		g.tokens = append(g.tokens, t)
	}
	return nil
}

// whole is the one JSON object of an answer that is not streamed.
func (a *answer) whole(g *gathered, r *api.Result) []byte {
	text := string(g.text)
	if a.chat {
		b := a.appendHead(nil, "chat.completion")
		b = append(b, `,"choices":[{"index":0,"message":{"role":"assistant","content":`...)
		if len(g.calls) > 0 && text == "" {
			b = append(b, "null"...)
		} else {
			b = appendString(b, text)
		}
		b = append(b, `,"refusal":null`...)
		if len(g.reasoning) > 0 {
			b = appendString(append(b, `,"reasoning_content":`...), string(g.reasoning))
		}
		b = append(appendCalls(b, g.calls), `},"logprobs":`...)
		if g.logprobs {
			b = appendChatLogprobs(b, g.tokens)
		} else {
			b = append(b, "null"...)
		}
		return a.appendEnd(b, r)
	}
	b := a.appendHead(nil, "text_completion")
	b = appendString(append(b, `,"choices":[{"index":0,"text":`...), text)
	b = append(b, `,"logprobs":`...)
	if g.logprobs {
		b = appendTextLogprobs(b, g.tokens, 0)
	} else {
		b = append(b, "null"...)
	}
	return a.appendEnd(b, r)
}

func (a *answer) appendEnd(b []byte, r *api.Result) []byte {
	b = appendString(append(b, `,"finish_reason":`...), string(r.Finish))
	b = appendUsage(append(b, `}],"usage":`...), r)
	return append(b, '}')
}

// appendCalls appends the calls of a whole answer.
func appendCalls(b []byte, calls []api.ToolCall) []byte {
	for i, c := range calls {
		if b = append(b, ','); i == 0 {
			b = append(b, `"tool_calls":[`...)
		}
		b = appendString(append(b, `{"id":`...), c.ID)
		b = appendString(append(b, `,"type":"function","function":{"name":`...), c.Name)
		b = append(appendString(append(b, `,"arguments":`...), c.Arguments), "}}"...)
	}
	if len(calls) > 0 {
		b = append(b, ']')
	}
	return b
}
