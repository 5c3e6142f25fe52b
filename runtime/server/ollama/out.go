package ollama

import (
	"encoding/json"
	"net/http"
	"strconv"
	"time"

	"sandwich/runtime/api"
	"sandwich/runtime/server/exchange"
	"sandwich/runtime/server/jsontext"
)

// lines writes an answer in ollama's format: one JSON object per line while streaming, else a
// single object. Calls are written when they are complete.
type lines struct {
	*exchange.Stream
	asked     *ollamaCall
	text      []byte // if not streamed
	reasoning []byte
	tokens    []api.Token // if not streamed and log probabilities are requested
	calls     []api.ToolCall
	sent      int // number of calls written
}

// newLines returns a writer of the answer to o.
func newLines(s *exchange.Stream, o *ollamaCall) *lines {
	l := &lines{Stream: s, asked: o}
	s.ContentType, s.ErrorPrefix, s.ErrorSuffix = "application/x-ndjson", "", "\n"
	// ollama's clients parse every line as an object, so an empty answer serves as keep-alive.
	s.KeepAlive = func() {
		if l.line("", "", nil, nil); s.PromptProgress.Done > 0 {
			l.Buf = append(exchange.AppendProgress(append(l.Buf[:len(l.Buf)-len("}\n")], ','), s.PromptProgress),
				"}\n"...)
		}
	}
	return l
}

// begin appends the fields at the start of every object.
func (l *lines) begin(b []byte) []byte {
	b = jsontext.AppendString(append(b, `{"model":`...), l.Model)
	b = append(append(b, `,"created_at":"`...), time.Now().UTC().Format(time.RFC3339Nano)...)
	return append(b, '"')
}

// content appends text, reasoning and calls in the format of the endpoint.
func (l *lines) content(b []byte, text, reasoning string, calls []api.ToolCall) []byte {
	field, end := `,"response":`, ""
	if l.asked.chat {
		field, end = `,"message":{"role":"assistant","content":`, "}"
	}
	b = jsontext.AppendString(append(b, field...), text)
	if reasoning != "" {
		b = jsontext.AppendString(append(b, `,"thinking":`...), reasoning)
	}
	for i, c := range calls {
		if b = append(b, ','); i == 0 {
			b = append(b, `"tool_calls":[`...)
		}
		b = jsontext.AppendString(append(b, `{"id":`...), c.ID)
		b = jsontext.AppendString(append(b, `,"function":{"name":`...), c.Name)
		b = append(append(append(b, `,"arguments":`...), c.Arguments...), "}}"...)
	}
	if len(calls) > 0 {
		b = append(b, ']')
	}
	return append(b, end...)
}

// logprobs appends the log probabilities of tokens, if requested.
func (l *lines) logprobs(b []byte, tokens []api.Token) []byte {
	if !l.asked.Logprobs {
		return b
	}
	b = append(b, `,"logprobs":[`...)
	for i := range tokens {
		if i > 0 {
			b = append(b, ',')
		}
		b = exchange.AppendChatToken(b, &tokens[i])
	}
	return append(b, ']')
}

// line adds an object of the stream.
func (l *lines) line(text, reasoning string, calls []api.ToolCall, tokens []api.Token) {
	l.Buf = l.content(l.begin(l.Buf), text, reasoning, calls)
	if len(tokens) > 0 {
		l.Buf = l.logprobs(l.Buf, tokens)
	}
	l.Buf = append(l.Buf, ",\"done\":false}\n"...)
}

// Token adds a token to the answer.
func (l *lines) Token(_ int, t api.Token) error {
	l.Mu.Lock()
	defer l.Mu.Unlock()
	for _, c := range t.Calls {
		if c.Name != "" {
			l.calls = append(l.calls, api.ToolCall{ID: c.ID, Name: c.Name})
		}
		l.calls[len(l.calls)-1].Arguments += c.Arguments
	}
	if !l.asked.Stream {
		l.text = append(l.text, t.Text...)
		l.reasoning = append(l.reasoning, t.Reasoning...)
		if l.asked.Logprobs && t.ID != api.NoToken {
			l.tokens = append(l.tokens, t)
		}
		return nil
	}
	if n := len(l.calls) - 1; n > l.sent {
		l.line("", "", l.whole(l.calls[l.sent:n]), nil)
		l.sent = n
	}
	var tokens []api.Token
	if l.asked.Logprobs && t.ID != api.NoToken {
		tokens = []api.Token{t}
	}
	if t.Text != "" || t.Reasoning != "" || tokens != nil {
		l.line(t.Text, t.Reasoning, nil, tokens)
	}
	if len(l.Buf) == 0 {
		return nil
	}
	l.SendHeader()
	return l.Flush()
}

// whole returns the calls whose arguments are complete JSON.
func (l *lines) whole(calls []api.ToolCall) (out []api.ToolCall) {
	for _, c := range calls {
		if c.Arguments == "" {
			c.Arguments = "{}"
		}
		if json.Valid([]byte(c.Arguments)) {
			out = append(out, c)
		}
	}
	return out
}

// Finish writes the last object, with durations in nanoseconds.
func (l *lines) Finish(r *api.Result) {
	l.Mu.Lock()
	defer l.Mu.Unlock()
	l.Stop()
	reason := "stop"
	if r.Finish == api.FinishLength {
		reason = "length"
	}
	calls := l.whole(l.calls[l.sent:])
	if l.asked.Stream {
		if len(calls) > 0 {
			l.line("", "", calls, nil)
		}
		calls = nil
	}
	b := l.content(l.begin(l.Buf), string(l.text), string(l.reasoning), calls)
	if !l.asked.Stream {
		b = l.logprobs(b, l.tokens)
	}
	b = exchange.AppendWarnings(l.done(b, reason), l.asked.Warnings.List())
	type count struct {
		field string
		v     int64
	}
	counts := []count{
		{"total_duration", int64(time.Since(l.Began))}, {"load_duration", 0},
		{"prompt_eval_count", int64(r.PromptTokens)}, {"prompt_cached_count", int64(r.CachedTokens)},
		{"prompt_eval_duration", int64(max(0, r.FirstToken-r.Queued))},
		{"eval_count", int64(r.Tokens)}, {"eval_duration", int64(max(0, r.Total-r.FirstToken))},
	}
	if r.DraftedTokens > 0 {
		counts = append(counts, count{"accepted_prediction_count", int64(r.AcceptedTokens)},
			count{"rejected_prediction_count", int64(r.DraftedTokens - r.AcceptedTokens)})
	}
	for _, d := range counts {
		b = append(append(append(b, `,"`...), d.field...), `":`...)
		b = strconv.AppendInt(b, d.v, 10)
	}
	b = append(b, "}\n"...)
	if !l.asked.Stream {
		jsontext.Write(l.W, http.StatusOK, b)
		return
	}
	l.Buf = b
	l.SendHeader()
	_ = l.Flush() // the client already has all tokens
}

// done appends the fields that end an answer.
func (l *lines) done(b []byte, reason string) []byte {
	return jsontext.AppendString(append(b, `,"done":true,"done_reason":`...), reason)
}

// loaded answers a request without content.
func (l *lines) loaded() {
	jsontext.Write(l.W, http.StatusOK, append(l.done(l.content(l.begin(nil), "", "", nil), "load"), "}\n"...))
}
