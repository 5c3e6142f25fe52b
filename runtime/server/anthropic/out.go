package anthropic

import (
	"encoding/json"
	"net/http"

	"sandwich/runtime/api"
	"sandwich/runtime/server/apierr"
	"sandwich/runtime/server/exchange"
	"sandwich/runtime/server/jsontext"
	"sandwich/runtime/server/request"
)

// blocks writes an answer as content blocks of /v1/messages: thinking, text, tool_use. A stream has
// an event for each step.
type blocks struct {
	*exchange.Stream
	call  *request.Call
	begun bool
	whole []byte // the finished blocks, if not streamed
	n     int    // number of finished blocks
	kind  string // type of the open block; "": none
	id    string // of the open tool call
	name  string
	text  []byte // of the open block, if not streamed

	warned int // number of warnings written
}

// appendHead appends the message up to its content.
func (m *blocks) appendHead(b []byte) []byte {
	b = jsontext.AppendString(append(b, `{"id":`...), "msg_"+m.Answer.ID[len("chatcmpl-"):])
	b = jsontext.AppendString(append(b, `,"type":"message","role":"assistant","model":`...), m.Model)
	list := m.call.Warnings.List()
	m.warned = len(list)
	return append(exchange.AppendWarnings(b, list), `,"content":[`...)
}

// appendBlockUsage appends the usage field with token counts.
func appendBlockUsage(b []byte, prompt, cached, tokens int) []byte {
	b = jsontext.AppendInt(append(b, `"usage":{"input_tokens":`...), prompt-cached)
	b = jsontext.AppendInt(append(b, `,"cache_creation_input_tokens":0,"cache_read_input_tokens":`...), cached)
	return append(jsontext.AppendInt(append(b, `,"output_tokens":`...), tokens), '}')
}

// event starts an event and, before the first event, message_start. The caller appends further
// fields to m.buf and closes the object.
func (m *blocks) event(kind string) {
	if !m.begun {
		m.begun = true
		m.event("message_start")
		m.Buf = append(m.appendHead(append(m.Buf, `,"message":`...)), `],"stop_reason":null,"stop_sequence":null,`...)
		m.Buf = appendBlockUsage(m.Buf, len(m.call.Prompt), 0, 0)
		m.Buf = append(m.Buf, "}}\n\n"...)
	}
	m.Buf = append(append(append(m.Buf, "event: "...), kind...), "\ndata: {\"type\":\""...)
	m.Buf = append(append(m.Buf, kind...), '"')
}

// ping writes Anthropic's keep-alive event, with the progress of the prompt once parts of it are
// computed.
func (m *blocks) ping() {
	if m.PromptProgress.Done == 0 {
		m.Buf = append(m.Buf, "event: ping\ndata: {\"type\":\"ping\"}\n\n"...)
		return
	}
	m.event("ping")
	m.Buf = append(exchange.AppendProgress(append(m.Buf, ','), m.PromptProgress), "}\n\n"...)
}

// Token adds a token to its block.
func (m *blocks) Token(_ int, t api.Token) error {
	m.Mu.Lock()
	defer m.Mu.Unlock()
	if t.Reasoning != "" {
		m.openBlock("thinking")
		m.add(`"thinking_delta","thinking":`, t.Reasoning)
	}
	if t.Text != "" {
		m.openBlock("text")
		m.add(`"text_delta","text":`, t.Text)
	}
	for _, c := range t.Calls {
		if c.Name != "" {
			m.closeBlock(false)
			m.id, m.name = c.ID, c.Name
			m.openBlock("tool_use")
		}
		m.add(`"input_json_delta","partial_json":`, c.Arguments)
	}
	if !m.call.Stream || len(m.Buf) == 0 {
		return nil
	}
	m.SendHeader()
	return m.Flush()
}

// openBlock starts a block of a type, unless one is open.
func (m *blocks) openBlock(kind string) {
	if m.kind == kind {
		return
	}
	m.closeBlock(false)
	m.kind, m.text = kind, m.text[:0]
	if !m.call.Stream {
		return
	}
	m.event("content_block_start")
	m.Buf = jsontext.AppendInt(append(m.Buf, `,"index":`...), m.n)
	m.Buf = append(m.appendBlock(append(m.Buf, `,"content_block":`...), "", []byte("{}")), "}\n\n"...)
}

// appendBlock appends the open block.
func (m *blocks) appendBlock(b []byte, text string, input []byte) []byte {
	switch m.kind {
	case "thinking": // the signature is empty: clients cannot verify it
		b = jsontext.AppendString(append(b, `{"type":"thinking","signature":"","thinking":`...), text)
	case "text":
		b = jsontext.AppendString(append(b, `{"type":"text","text":`...), text)
	default:
		b = jsontext.AppendString(append(b, `{"type":"tool_use","id":`...), m.id)
		b = jsontext.AppendString(append(b, `,"name":`...), m.name)
		b = append(append(b, `,"input":`...), input...)
	}
	return append(b, '}')
}

// add appends to the open block.
func (m *blocks) add(delta, text string) {
	if !m.call.Stream {
		m.text = append(m.text, text...)
		return
	}
	if text == "" {
		return
	}
	m.event("content_block_delta")
	m.Buf = jsontext.AppendInt(append(m.Buf, `,"index":`...), m.n)
	m.Buf = append(append(m.Buf, `,"delta":{"type":`...), delta...)
	m.Buf = append(jsontext.AppendString(m.Buf, text), "}}\n\n"...)
}

// closeBlock ends the open block. If the answer is not streamed, it drops a truncated call, whose
// input would be invalid JSON.
func (m *blocks) closeBlock(cut bool) {
	if m.kind == "" {
		return
	}
	if m.call.Stream {
		m.event("content_block_stop")
		m.Buf = append(jsontext.AppendInt(append(m.Buf, `,"index":`...), m.n), "}\n\n"...)
	} else {
		input := m.text
		if m.kind == "tool_use" && len(input) == 0 && !cut {
			input = []byte("{}")
		}
		if m.kind != "tool_use" || json.Valid(input) {
			if len(m.whole) > 0 {
				m.whole = append(m.whole, ',')
			}
			m.whole = m.appendBlock(m.whole, string(m.text), input)
		}
	}
	m.kind = ""
	m.n++
}

// stopReason returns why the answer ended, in Anthropic's terms.
func stopReason(r *api.Result) (reason string) {
	switch {
	case r.Finish == api.FinishLength:
		return "max_tokens"
	case r.Finish == api.FinishCalls:
		return "tool_use"
	case r.StopString != "":
		return "stop_sequence"
	}
	return "end_turn"
}

// appendStop appends the stop reason and the stop string.
func appendStop(b []byte, r *api.Result) []byte {
	reason := stopReason(r)
	b = jsontext.AppendString(append(b, `"stop_reason":`...), reason)
	b = append(b, `,"stop_sequence":`...)
	if reason == "stop_sequence" {
		return jsontext.AppendString(b, r.StopString)
	}
	return append(b, "null"...)
}

// Finish writes the end of the answer, or all of it if it is not streamed.
func (m *blocks) Finish(r *api.Result) {
	m.Mu.Lock()
	defer m.Mu.Unlock()
	m.Stop()
	m.closeBlock(r.Finish == api.FinishLength)
	if !m.call.Stream {
		b := append(append(m.appendHead(nil), m.whole...), "],"...)
		b = append(appendStop(b, r), ',')
		b = append(appendBlockUsage(b, r.PromptTokens, r.CachedTokens, r.Tokens), '}')
		jsontext.Write(m.W, http.StatusOK, b)
		return
	}
	m.event("message_delta")
	m.Buf = append(appendStop(append(m.Buf, `,"delta":{`...), r), '}')
	if list := m.call.Warnings.List(); len(list) > m.warned {
		m.Buf = exchange.AppendWarnings(m.Buf, list)
	}
	m.Buf = append(m.Buf, ',')
	m.Buf = append(appendBlockUsage(m.Buf, r.PromptTokens, r.CachedTokens, r.Tokens), "}\n\n"...)
	m.event("message_stop")
	m.Buf = append(m.Buf, "}\n\n"...)
	m.SendHeader()
	_ = m.Flush() // the client already has all tokens
}

// EncodeError encodes an error in Anthropic's format.
func EncodeError(e *apierr.Error) []byte {
	kind, known := map[int]string{
		http.StatusBadRequest: apierr.TypeInvalid, http.StatusUnauthorized: "authentication_error",
		http.StatusForbidden: "permission_error", http.StatusNotFound: "not_found_error",
		http.StatusRequestEntityTooLarge: "request_too_large", http.StatusTooManyRequests: apierr.TypeLimit,
		http.StatusServiceUnavailable: "overloaded_error", http.StatusInternalServerError: "api_error",
	}[e.Status]
	if !known {
		kind = apierr.TypeInvalid
	}
	b := jsontext.AppendString([]byte(`{"type":"error","error":{"type":`), kind)
	return append(jsontext.AppendString(append(b, `,"message":`...), e.Message), "}}"...)
}
