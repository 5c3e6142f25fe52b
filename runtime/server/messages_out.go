package server

import (
	"encoding/json"
	"net/http"

	"sandwich/runtime/api"
	"sandwich/runtime/server/apierr"
	"sandwich/runtime/server/jsontext"
)

// blocks writes an answer as content blocks of /v1/messages: thinking, text, tool_use. A stream has
// an event for each step.
type blocks struct {
	*stream
	call  *call
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
	b = jsontext.AppendString(append(b, `{"id":`...), "msg_"+m.answer.id[len("chatcmpl-"):])
	b = jsontext.AppendString(append(b, `,"type":"message","role":"assistant","model":`...), m.model)
	list := m.call.Warnings.List()
	m.warned = len(list)
	return append(appendWarnings(b, list), `,"content":[`...)
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
		m.buf = append(m.appendHead(append(m.buf, `,"message":`...)), `],"stop_reason":null,"stop_sequence":null,`...)
		m.buf = appendBlockUsage(m.buf, len(m.call.Prompt), 0, 0)
		m.buf = append(m.buf, "}}\n\n"...)
	}
	m.buf = append(append(append(m.buf, "event: "...), kind...), "\ndata: {\"type\":\""...)
	m.buf = append(append(m.buf, kind...), '"')
}

// ping writes Anthropic's keep-alive event, with the progress of the prompt once parts of it are
// computed.
func (m *blocks) ping() {
	if m.read.Done == 0 {
		m.buf = append(m.buf, "event: ping\ndata: {\"type\":\"ping\"}\n\n"...)
		return
	}
	m.event("ping")
	m.buf = append(appendProgress(append(m.buf, ','), m.read), "}\n\n"...)
}

// token adds a token to its block.
func (m *blocks) token(_ int, t api.Token) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if t.Reasoning != "" {
		m.open("thinking")
		m.add(`"thinking_delta","thinking":`, t.Reasoning)
	}
	if t.Text != "" {
		m.open("text")
		m.add(`"text_delta","text":`, t.Text)
	}
	for _, c := range t.Calls {
		if c.Name != "" {
			m.shut(false)
			m.id, m.name = c.ID, c.Name
			m.open("tool_use")
		}
		m.add(`"input_json_delta","partial_json":`, c.Arguments)
	}
	if !m.call.stream || len(m.buf) == 0 {
		return nil
	}
	m.header()
	return m.flush()
}

// open starts a block of a type, unless one is open.
func (m *blocks) open(kind string) {
	if m.kind == kind {
		return
	}
	m.shut(false)
	m.kind, m.text = kind, m.text[:0]
	if !m.call.stream {
		return
	}
	m.event("content_block_start")
	m.buf = jsontext.AppendInt(append(m.buf, `,"index":`...), m.n)
	m.buf = append(m.appendBlock(append(m.buf, `,"content_block":`...), "", []byte("{}")), "}\n\n"...)
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
	if !m.call.stream {
		m.text = append(m.text, text...)
		return
	}
	if text == "" {
		return
	}
	m.event("content_block_delta")
	m.buf = jsontext.AppendInt(append(m.buf, `,"index":`...), m.n)
	m.buf = append(append(m.buf, `,"delta":{"type":`...), delta...)
	m.buf = append(jsontext.AppendString(m.buf, text), "}}\n\n"...)
}

// shut ends the open block. If the answer is not streamed, it drops a truncated call, whose input
// would be invalid JSON.
func (m *blocks) shut(cut bool) {
	if m.kind == "" {
		return
	}
	if m.call.stream {
		m.event("content_block_stop")
		m.buf = append(jsontext.AppendInt(append(m.buf, `,"index":`...), m.n), "}\n\n"...)
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

// finish writes the end of the answer, or all of it if it is not streamed.
func (m *blocks) finish(r *api.Result) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.end()
	m.shut(r.Finish == api.FinishLength)
	if !m.call.stream {
		b := append(append(m.appendHead(nil), m.whole...), "],"...)
		b = append(appendStop(b, r), ',')
		b = append(appendBlockUsage(b, r.PromptTokens, r.CachedTokens, r.Tokens), '}')
		jsontext.Write(m.w, http.StatusOK, b)
		return
	}
	m.event("message_delta")
	m.buf = append(appendStop(append(m.buf, `,"delta":{`...), r), '}')
	if list := m.call.Warnings.List(); len(list) > m.warned {
		m.buf = appendWarnings(m.buf, list)
	}
	m.buf = append(m.buf, ',')
	m.buf = append(appendBlockUsage(m.buf, r.PromptTokens, r.CachedTokens, r.Tokens), "}\n\n"...)
	m.event("message_stop")
	m.buf = append(m.buf, "}\n\n"...)
	m.header()
	_ = m.flush() // the client already has all tokens
}

// anthropicError encodes an error in Anthropic's format.
func anthropicError(e *apierr.Error) []byte {
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
