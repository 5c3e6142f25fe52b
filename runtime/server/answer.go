package server

import (
	"crypto/rand"
	"strconv"
	"time"
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
	text   []byte
	tokens []TokenLogprob
}

func (g *gathered) add(d Delta) error {
	g.text = append(g.text, d.Text...)
	if d.Token != nil {
		g.tokens = append(g.tokens, *d.Token)
	}
	return nil
}

// whole is the one JSON object of an answer that is not streamed.
func (a *answer) whole(g *gathered, f *Final, logprobs bool) []byte {
	text := string(g.text)
	if a.chat {
		b := a.appendHead(nil, "chat.completion")
		b = append(b, `,"choices":[{"index":0,"message":{"role":"assistant","content":`...)
		b = append(appendString(b, text), `,"refusal":null},"logprobs":`...)
		if logprobs {
			b = appendChatLogprobs(b, g.tokens)
		} else {
			b = append(b, "null"...)
		}
		return a.appendEnd(b, f)
	}
	b := a.appendHead(nil, "text_completion")
	b = appendString(append(b, `,"choices":[{"index":0,"text":`...), text)
	b = append(b, `,"logprobs":`...)
	if logprobs {
		b = appendTextLogprobs(b, g.tokens, 0)
	} else {
		b = append(b, "null"...)
	}
	return a.appendEnd(b, f)
}

func (a *answer) appendEnd(b []byte, f *Final) []byte {
	b = appendString(append(b, `,"finish_reason":`...), f.FinishReason)
	b = appendUsage(append(b, `}],"usage":`...), f)
	return append(b, '}')
}
