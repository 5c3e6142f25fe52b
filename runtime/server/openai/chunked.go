package openai

import (
	"sandwich/runtime/api"
	"sandwich/runtime/server/exchange"
	"sandwich/runtime/server/request"

	"sandwich/runtime/server/jsontext"
)

// chunked streams the choices of a chat or completion as chunks, each with one choice.
type chunked struct {
	*exchange.Stream
	call   *request.Call
	head   []byte  // `data: {...,"choices":[`
	states []chunk // by choice
	warned int     // number of warnings written; negative before the first chunk
}

// chunk is the state of one streamed choice.
type chunk struct {
	started bool // the role or the echoed prompt was written
	offset  int  // bytes of the tokens so far, for text_offset
}

// newChunked returns a streaming writer of the answer to c.
func newChunked(s *exchange.Stream, c *request.Call) *chunked {
	object := "text_completion"
	if s.Chat {
		object = "chat.completion.chunk"
	}
	head := append(s.AppendHead([]byte("data: "), object), `,"choices":[`...)
	w := &chunked{Stream: s, call: c, head: head, states: make([]chunk, c.Choices()), warned: -1}
	s.KeepAlive = w.waiting
	return w
}

// waiting writes a comment, or, once parts of the prompt are computed, an empty chunk of the first
// choice with the progress.
func (s *chunked) waiting() {
	if s.PromptProgress.Done == 0 {
		s.Comment()
		return
	}
	s.begin(0)
	t := api.Token{}
	t.ID = api.NoToken
	s.appendChoice(0, &t, "")
	s.Buf = append(exchange.AppendProgress(append(s.Buf[:len(s.Buf)-len("}\n\n")], ','), s.PromptProgress), "}\n\n"...)
}

// Token writes one token. An error means that the client cannot be reached.
func (s *chunked) Token(i int, t api.Token) error {
	if t.Text == "" && t.Reasoning == "" && len(t.Calls) == 0 && !s.call.Logprobs {
		return nil
	}
	s.Mu.Lock()
	defer s.Mu.Unlock()
	s.begin(i)
	s.appendChoice(i, &t, "")
	return s.Flush()
}

// Ended writes the finish reason of choice i.
func (s *chunked) Ended(i int, r *api.Result) {
	s.Mu.Lock()
	defer s.Mu.Unlock()
	s.begin(i)
	s.appendChoice(i, &api.Token{}, r.Finish)
	_ = s.Flush() // the client already has all tokens
}

// Finish writes the usage, if requested, and the end of the stream.
func (s *chunked) Finish(r *api.Result) {
	s.Mu.Lock()
	defer s.Mu.Unlock()
	s.Stop()
	s.SendHeader()
	if s.call.Usage {
		s.Buf = append(append(s.Buf, s.head...), `],"usage":`...)
		s.Buf = append(exchange.AppendUsage(s.Buf, r), "}\n\n"...)
	}
	s.Buf = append(s.Buf, "data: [DONE]\n\n"...)
	_ = s.Flush()
}

// begin writes the header and the start of choice i once: the role of a chat message or the echoed
// prompt.
func (s *chunked) begin(i int) {
	st := &s.states[i]
	if st.started {
		return
	}
	st.started = true
	s.SendHeader()
	switch {
	case s.Chat:
		s.Buf = jsontext.AppendInt(append(append(s.Buf, s.head...), `{"index":`...), i)
		s.Buf = append(s.Buf, `,"delta":{"role":"assistant","content":""},"logprobs":null,"finish_reason":null}]`...)
		s.closeChunk(false)
	case s.call.Echo != nil:
		e := &s.call.Echo[i/s.call.N]
		st.offset = e.Offset
		t := api.Token{Text: e.Text}
		t.ID = api.NoToken
		s.appendChoice(i, &t, "")
	}
}

// appendChoice adds a chunk with token t of choice i, or with its finish reason end.
func (s *chunked) appendChoice(i int, t *api.Token, end api.Finish) {
	b := jsontext.AppendInt(append(append(s.Buf, s.head...), `{"index":`...), i)
	switch {
	case !s.Chat:
		b = jsontext.AppendString(append(b, `,"text":`...), t.Text)
	case end != "":
		b = append(b, `,"delta":{}`...)
	default:
		b = append(appendDelta(append(b, `,"delta":{`...), t), '}')
	}
	b = append(b, `,"logprobs":`...)
	switch {
	case !s.call.Logprobs || end != "" || t.ID == api.NoToken:
		b = append(b, "null"...)
	case s.Chat:
		b = exchange.AppendChatToken(append(b, `{"content":[`...), t)
		b = append(b, `],"refusal":null}`...)
	default:
		b = exchange.AppendTextLogprobs(b, []api.Token{*t}, s.states[i].offset)
		s.states[i].offset += len(t.Piece)
	}
	b = append(b, `,"finish_reason":`...)
	if end == "" {
		b = append(b, "null}]"...)
	} else {
		b = append(jsontext.AppendString(b, string(end)), "}]"...)
	}
	s.Buf = b
	s.closeChunk(end != "")
}

// closeChunk ends a chunk. The first chunk carries the warnings of the request; the last chunk of a
// choice repeats all of them if more were added since.
func (s *chunked) closeChunk(last bool) {
	if s.warned < 0 || last {
		list := s.call.Warnings.List()
		if len(list) > max(0, s.warned) {
			s.Buf = exchange.AppendWarnings(s.Buf, list)
		}
		s.warned = len(list)
	}
	if s.call.Usage {
		s.Buf = append(s.Buf, `,"usage":null`...)
	}
	s.Buf = append(s.Buf, "}\n\n"...)
}

// appendDelta appends what a token adds to a chat message.
func appendDelta(b []byte, t *api.Token) []byte {
	if t.Reasoning != "" {
		b = append(jsontext.AppendString(append(b, `"reasoning_content":`...), t.Reasoning), ',')
	}
	if t.Text != "" || t.Reasoning == "" && len(t.Calls) == 0 {
		b = append(jsontext.AppendString(append(b, `"content":`...), t.Text), ',')
	}
	for i, c := range t.Calls {
		if i == 0 {
			b = append(b, `"tool_calls":[`...)
		}
		b = jsontext.AppendInt(append(b, `{"index":`...), c.Index)
		b = append(b, ',')
		if c.Name != "" {
			b = jsontext.AppendString(append(b, `"id":`...), c.ID)
			b = append(b, `,"type":"function",`...)
		}
		b = append(b, `"function":{`...)
		if c.Name != "" {
			b = append(jsontext.AppendString(append(b, `"name":`...), c.Name), ',')
		}
		b = append(jsontext.AppendString(append(b, `"arguments":`...), c.Arguments), "}},"...)
	}
	if len(t.Calls) > 0 {
		b = append(b[:len(b)-1], "],"...)
	}
	return b[:len(b)-1]
}
