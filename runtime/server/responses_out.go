package server

import (
	"encoding/json"
	"net/http"
	"time"

	"sandwich/runtime/api"
)

// response writes an answer as items of /v1/responses: reasoning, a message, calls. Where it is
// streamed each step is an event; the whole answer is the object of the last one.
type response struct {
	*stream
	call  *call
	seq   int
	items []map[string]any // that are whole
	kind  string           // of the item at hand; "": there is none
	id    string
	name  string // of a call
	text  []byte // of the item at hand
}

type object = map[string]any

func (r *response) object(status string, result *api.Result) object {
	items := r.items
	if items == nil {
		items = []object{}
	}
	o := object{"id": "resp_" + r.answer.id[len("chatcmpl-"):], "object": "response", "created_at": r.created,
		"status": status, "model": r.model, "output": items, "error": nil, "incomplete_details": nil,
		"instructions": nil, "metadata": object{}, "parallel_tool_calls": !r.call.OneCall, "tools": []any{},
		"tool_choice": "auto", "temperature": r.call.Sampling.Temperature, "top_p": r.call.Sampling.TopP}
	if len(r.call.warnings) > 0 {
		o["warnings"] = r.call.warnings
	}
	if result != nil {
		o["usage"] = object{"input_tokens": result.PromptTokens, "output_tokens": result.Tokens,
			"total_tokens":          result.PromptTokens + result.Tokens,
			"input_tokens_details":  object{"cached_tokens": result.CachedTokens},
			"output_tokens_details": object{"reasoning_tokens": 0}}
	}
	return o
}

// event adds an event to what is sent next.
func (r *response) event(kind string, o object) {
	if !r.call.stream {
		return
	}
	if r.seq == 0 {
		r.seq++
		r.event("response.created", object{"response": r.object("in_progress", nil)})
		r.event("response.in_progress", object{"response": r.object("in_progress", nil)})
	}
	o["type"], o["sequence_number"] = kind, r.seq-1
	r.seq++
	text, _ := json.Marshal(o) // maps of text and numbers
	r.buf = append(append(r.buf, "event: "+kind+"\ndata: "...), text...)
	r.buf = append(r.buf, "\n\n"...)
}

// token adds a token to the item that it belongs to.
func (r *response) token(t api.Token) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if t.Reasoning != "" {
		r.open("reasoning", "", "")
		r.add(t.Reasoning, "response.reasoning_text.delta", object{"content_index": 0})
	}
	if t.Text != "" {
		r.open("message", "", "")
		r.add(t.Text, "response.output_text.delta", object{"content_index": 0, "logprobs": []any{}})
	}
	for _, c := range t.Calls {
		if c.Name != "" {
			r.shut("completed")
			r.open("function_call", c.ID, c.Name)
		}
		r.add(c.Arguments, "response.function_call_arguments.delta", object{})
	}
	if !r.call.stream || len(r.buf) == 0 {
		return nil
	}
	r.header()
	return r.flush()
}

// add appends text to the item at hand.
func (r *response) add(text, event string, o object) {
	r.text = append(r.text, text...)
	if text == "" || r.kind == "function_call" && r.call.custom[r.name] {
		return // the text of a custom tool is known when its JSON is whole
	}
	o["item_id"], o["output_index"], o["delta"] = r.id, len(r.items), text
	r.event(event, o)
}

// open begins an item, unless one of its kind is at hand.
func (r *response) open(kind, id, name string) {
	if r.kind == kind && id == "" {
		return
	}
	r.shut("completed")
	r.kind, r.name, r.text = kind, name, nil
	if r.id = id; id == "" {
		r.id = map[string]string{"message": "msg_", "reasoning": "rs_"}[kind] + r.answer.id[len("chatcmpl-"):]
	}
	item := r.item("in_progress")
	if kind == "message" {
		item["content"] = []any{}
	}
	r.event("response.output_item.added", object{"output_index": len(r.items), "item": item})
	if kind == "message" {
		r.event("response.content_part.added", object{"item_id": r.id, "output_index": len(r.items),
			"content_index": 0, "part": r.part("")})
	}
}

func (r *response) part(text string) object {
	return object{"type": "output_text", "text": text, "annotations": []any{}, "logprobs": []any{}}
}

// item is the item at hand.
func (r *response) item(status string) object {
	text := string(r.text)
	switch r.kind {
	case "message":
		return object{"type": "message", "id": r.id, "role": "assistant", "status": status,
			"content": []any{r.part(text)}}
	case "reasoning":
		return object{"type": "reasoning", "id": r.id, "summary": []any{}, "status": status,
			"content": []any{object{"type": "reasoning_text", "text": text}}}
	}
	if r.call.custom[r.name] {
		var arguments struct{ Input string }
		_ = json.Unmarshal(r.text, &arguments) // of a call that was cut there is none
		return object{"type": "custom_tool_call", "id": "ctc_" + r.id, "call_id": r.id, "name": r.name,
			"input": arguments.Input, "status": status}
	}
	return object{"type": "function_call", "id": r.id, "call_id": r.id, "name": r.name, "arguments": text,
		"status": status}
}

// shut ends the item at hand.
func (r *response) shut(status string) {
	if r.kind == "" {
		return
	}
	item, at := r.item(status), len(r.items)
	switch {
	case r.kind == "message":
		r.event("response.output_text.done", object{"item_id": r.id, "output_index": at, "content_index": 0,
			"text": string(r.text), "logprobs": []any{}})
		r.event("response.content_part.done", object{"item_id": r.id, "output_index": at, "content_index": 0,
			"part": r.part(string(r.text))})
	case r.kind == "function_call" && r.call.custom[r.name]:
		r.event("response.custom_tool_call_input.done", object{"item_id": r.id, "output_index": at,
			"input": item["input"]})
	case r.kind == "function_call":
		r.event("response.function_call_arguments.done", object{"item_id": r.id, "output_index": at, "name": r.name,
			"arguments": string(r.text)})
	}
	r.event("response.output_item.done", object{"output_index": at, "item": item})
	r.items = append(r.items, item)
	r.kind = ""
}

// finish writes the whole answer.
func (r *response) finish(result *api.Result) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.end()
	status := "completed"
	if result.Finish == api.FinishLength {
		status = "incomplete"
	}
	r.shut(status)
	o := r.object(status, result)
	if status == "incomplete" {
		o["incomplete_details"] = object{"reason": "max_output_tokens"}
	} else {
		o["completed_at"] = time.Now().Unix()
	}
	if !r.call.stream {
		body, _ := json.Marshal(o)
		_ = r.rc.SetWriteDeadline(time.Now().Add(r.opts.WriteTimeout))
		writeJSON(r.w, http.StatusOK, body)
		return
	}
	r.event("response."+status, object{"response": o})
	r.header()
	_ = r.flush() // a client that left after the last token has what it wanted
}
