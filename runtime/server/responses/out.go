package responses

import (
	"encoding/json"
	"net/http"
	"slices"
	"strconv"
	"time"

	"sandwich/runtime/api"
	"sandwich/runtime/server/exchange"
	"sandwich/runtime/server/jsontext"
)

// response writes an answer as items of /v1/responses: reasoning, messages and calls. A stream has
// an event for each step; its last event contains the whole answer.
type response struct {
	*exchange.Stream
	asked  *createRequest
	seq    int              // next sequence number plus one; 0 before the first event
	items  []map[string]any // finished items
	kind   string           // type of the open item; "": none
	id     string
	callID string // of the open call
	name   string // of the open call
	text   []byte // of the open item
	probs  []byte // log probabilities of the open message: list elements
	early  []byte // log probabilities of tokens without text so far
}

// object is a JSON object.
type object = map[string]any

// waiting writes a comment or, once parts of the prompt are computed, an in_progress event with the
// progress.
func (r *response) waiting() {
	if r.PromptProgress.Done == 0 {
		r.Comment()
		return
	}
	r.event("response.in_progress", object{"response": r.object("in_progress", nil),
		"prompt_progress": json.RawMessage(exchange.AppendProgress(nil, r.PromptProgress)[len(`"prompt_progress":`):])})
}

// object returns the response object with its finished items, and the usage if result is not nil.
func (r *response) object(status string, result *api.Result) object {
	items := r.items
	if items == nil {
		items = []object{}
	}
	a := r.asked
	o := object{"id": "resp_" + r.unique(), "object": "response", "created_at": r.Created,
		"status": status, "model": r.Model, "output": items, "error": nil, "incomplete_details": nil,
		"instructions": a.body.Instructions, "metadata": jsontext.OrElse(a.body.Metadata, "{}"),
		"parallel_tool_calls": !a.OneCall,
		"tools":               []any{}, "tool_choice": jsontext.OrElse(a.body.ToolChoice, `"auto"`),
		"temperature": a.Sampling.Temperature,
		"top_p":       a.Sampling.TopP, "previous_response_id": nil, "store": a.store,
		"max_output_tokens": a.body.MaxOutputTokens, "top_logprobs": a.TopLogprobs, "background": false}
	if a.previous != nil {
		o["previous_response_id"] = a.previous.id
	}
	if list := a.Warnings.List(); len(list) > 0 {
		o["warnings"] = list
	}
	if result != nil {
		o["usage"] = usage(result)
	}
	return o
}

// usage returns the token counts of a generation. Rejected drafted tokens are not part of the
// output tokens.
func usage(r *api.Result) object {
	details := object{"reasoning_tokens": 0}
	if r.DraftedTokens > 0 {
		details["accepted_prediction_tokens"] = r.AcceptedTokens
		details["rejected_prediction_tokens"] = r.DraftedTokens - r.AcceptedTokens
	}
	return object{"input_tokens": r.PromptTokens, "output_tokens": r.Tokens,
		"total_tokens": r.PromptTokens + r.Tokens, "input_tokens_details": object{"cached_tokens": r.CachedTokens},
		"output_tokens_details": details}
}

// unique returns the part that the ids of the answer and of its items share.
func (r *response) unique() string { return r.Answer.ID[len("chatcmpl-"):] }

// event adds an event to the buffer if the answer is streamed.
func (r *response) event(kind string, o object) {
	if !r.asked.Stream {
		return
	}
	if r.seq == 0 {
		r.seq++
		r.event("response.created", object{"response": r.object("in_progress", nil)})
		r.event("response.in_progress", object{"response": r.object("in_progress", nil)})
	}
	o["type"], o["sequence_number"] = kind, r.seq-1
	r.seq++
	text, _ := json.Marshal(o) // marshaling maps of strings and numbers cannot fail
	r.Buf = append(append(r.Buf, "event: "+kind+"\ndata: "...), text...)
	r.Buf = append(r.Buf, "\n\n"...)
}

// Token adds a token to its item.
func (r *response) Token(_ int, t api.Token) error {
	r.Mu.Lock()
	defer r.Mu.Unlock()
	if t.Reasoning != "" {
		r.openItem("reasoning")
		r.add(t.Reasoning, "response.reasoning_text.delta", object{"content_index": 0})
	}
	if r.asked.Logprobs && t.ID != api.NoToken && t.Reasoning == "" && len(t.Calls) == 0 {
		r.early = exchange.AppendChatToken(jsontext.Comma(r.early), &t)
	}
	if t.Text != "" {
		r.openItem("message")
		if len(r.early) > 0 {
			r.probs = append(jsontext.Comma(r.probs), r.early...)
		}
		r.add(t.Text, "response.output_text.delta", object{"content_index": 0, "logprobs": elements(r.early)})
	}
	if t.Text != "" || t.Reasoning != "" || len(t.Calls) > 0 {
		r.early = nil
	}
	for _, c := range t.Calls {
		if c.Name != "" {
			r.closeItem("completed")
			r.callID, r.name = c.ID, c.Name
			if r.asked.Custom[c.Name] {
				r.openItem("custom_tool_call")
			} else {
				r.openItem("function_call")
			}
		}
		r.add(c.Arguments, "response.function_call_arguments.delta", object{})
	}
	if !r.asked.Stream || len(r.Buf) == 0 {
		return nil
	}
	r.SendHeader()
	return r.Flush()
}

// elements returns a JSON list of encoded elements.
func elements(of []byte) json.RawMessage {
	return append(append([]byte{'['}, of...), ']')
}

// add appends text to the open item.
func (r *response) add(text, event string, o object) {
	r.text = append(r.text, text...)
	if text == "" || r.kind == "custom_tool_call" {
		return // the input of a custom tool is known when its JSON is complete
	}
	o["item_id"], o["output_index"], o["delta"] = r.id, len(r.items), text
	r.event(event, o)
}

// itemPrefixes has the id prefixes of items by type.
var itemPrefixes = map[string]string{"message": "msg_", "reasoning": "rs_", "function_call": "fc_",
	"custom_tool_call": "ctc_"}

// openItem starts an item of a type, unless one is open.
func (r *response) openItem(kind string) {
	if r.kind == kind {
		return
	}
	r.closeItem("completed")
	r.kind, r.text, r.probs = kind, nil, nil
	r.id = itemPrefixes[kind] + r.unique() + strconv.Itoa(len(r.items))
	item := r.item("in_progress")
	part := r.part("")
	if part != nil {
		item["content"] = []any{}
	}
	r.event("response.output_item.added", object{"output_index": len(r.items), "item": item})
	if part != nil {
		r.event("response.content_part.added", object{"item_id": r.id, "output_index": len(r.items),
			"content_index": 0, "part": part})
	}
}

// part returns the content part of the open item, or nil if items of its type have none.
func (r *response) part(text string) object {
	switch r.kind {
	case "message":
		return object{"type": "output_text", "text": text, "annotations": []any{}, "logprobs": elements(r.probs)}
	case "reasoning":
		return object{"type": "reasoning_text", "text": text}
	}
	return nil
}

// item returns the open item.
func (r *response) item(status string) object {
	text := string(r.text)
	o := object{"type": r.kind, "id": r.id, "status": status}
	switch r.kind {
	case "message":
		o["role"], o["content"] = "assistant", []any{r.part(text)}
	case "reasoning":
		o["summary"], o["content"] = []any{}, []any{r.part(text)}
	case "custom_tool_call":
		var arguments struct{ Input string }
		_ = json.Unmarshal(r.text, &arguments) // empty if the call was truncated
		o["call_id"], o["input"] = r.callID, arguments.Input
		r.asked.setName(r.name, o)
	default:
		o["call_id"], o["arguments"] = r.callID, text
		r.asked.setName(r.name, o)
	}
	return o
}

// closeItem ends the open item.
func (r *response) closeItem(status string) {
	if r.kind == "" {
		return
	}
	item, text := r.item(status), string(r.text)
	event := func(kind string, more object) {
		more["item_id"], more["output_index"] = r.id, len(r.items)
		r.event(kind, more)
	}
	switch r.kind {
	case "message":
		event("response.output_text.done", object{"content_index": 0, "text": text, "logprobs": elements(r.probs)})
	case "reasoning":
		event("response.reasoning_text.done", object{"content_index": 0, "text": text})
	case "custom_tool_call":
		event("response.custom_tool_call_input.delta", object{"delta": item["input"]})
		event("response.custom_tool_call_input.done", object{"input": item["input"]})
	default:
		event("response.function_call_arguments.done", object{"name": item["name"], "arguments": text})
	}
	if part := r.part(text); part != nil {
		event("response.content_part.done", object{"content_index": 0, "part": part})
	}
	r.event("response.output_item.done", object{"output_index": len(r.items), "item": item})
	r.items = append(r.items, item)
	r.kind = ""
}

// Finish writes the whole answer.
func (r *response) Finish(result *api.Result) {
	r.Mu.Lock()
	defer r.Mu.Unlock()
	r.Stop()
	status := "completed"
	if result.Finish == api.FinishLength {
		status = "incomplete"
	}
	r.closeItem(status)
	o := r.object(status, result)
	if status == "incomplete" {
		o["incomplete_details"] = object{"reason": "max_output_tokens"}
	} else {
		o["completed_at"] = time.Now().Unix()
	}
	body, _ := json.Marshal(o) // marshaling maps of strings and numbers cannot fail
	if r.asked.store {
		r.keep(o["id"].(string), body)
	}
	if !r.asked.Stream {
		jsontext.Write(r.W, http.StatusOK, body)
		return
	}
	r.event("response."+status, object{"response": json.RawMessage(body)})
	r.SendHeader()
	_ = r.Flush() // the client already has all tokens
}

// keep stores the answer for later requests that continue it.
func (r *response) keep(id string, body []byte) {
	a := r.asked
	t := &turn{id: id, salt: a.salt, previous: a.previous, body: body}
	for _, item := range a.items {
		t.input = append(t.input, slices.Clone(item)) // do not retain the memory of the body
	}
	for _, item := range r.items {
		text, _ := json.Marshal(item)
		t.output = append(t.output, text)
	}
	a.answers.put(t)
}
