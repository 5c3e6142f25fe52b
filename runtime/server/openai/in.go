// Package openai serves OpenAI's chat and text completions and list of models, and the tokenization
// endpoints of llama-server and vLLM.
package openai

import (
	"encoding/json"
	"fmt"
	"net/http"

	"sandwich/runtime/api"
	"sandwich/runtime/server/apierr"
	"sandwich/runtime/server/exchange"
	"sandwich/runtime/server/fields"
	"sandwich/runtime/server/generation"
	"sandwich/runtime/server/jsontext"
	"sandwich/runtime/server/request"
	"sandwich/runtime/toolcall"
)

// API serves chat and text completions, the list of models and the tokenization endpoints of
// llama-server and vLLM.
type API struct{ *generation.Runner }

// chatBody is the body of /v1/chat/completions.
type chatBody struct {
	request.Common
	Messages            json.RawMessage   `json:"messages"`
	ParallelToolCalls   *bool             `json:"parallel_tool_calls"`
	Continue            *bool             `json:"continue_final_message"`
	AddGenerationPrompt *bool             `json:"add_generation_prompt"`
	Logprobs            *bool             `json:"logprobs"`
	TopLogprobs         *jsontext.Integer `json:"top_logprobs"`
}

// completionBody is the body of /v1/completions.
type completionBody struct {
	request.Common
	Prompt   json.RawMessage   `json:"prompt"`
	Logprobs *jsontext.Integer `json:"logprobs"`
}

// parseChat checks the body of /v1/chat/completions.
func parseChat(data []byte) (*request.Call, *apierr.Error) {
	var b chatBody
	c, e := request.Parse(data, &b, &b.Common, chatFields())
	if e != nil {
		return nil, e
	}
	if c.TopLogprobs, e = fields.Integer(b.TopLogprobs, "top_logprobs", 0, request.MaxTopLogprobs, 0); e != nil {
		return nil, e
	}
	if b.Echoes() {
		return nil, apierr.Invalid("echo", "is supported by /v1/completions only; leave it out")
	}
	c.Logprobs = b.Logprobs != nil && *b.Logprobs
	if c.TopLogprobs > 0 && !c.Logprobs {
		return nil, apierr.Invalid("top_logprobs", "requires logprobs to be true")
	}
	if c.Messages, e = parseMessages(b.Messages, c.Warnings); e != nil {
		return nil, e
	}
	if e = b.tools(&c.Request); e != nil {
		return nil, e
	}
	if !jsontext.IsEmpty(b.PromptCacheKey) {
		c.MarkPreamble()
	}
	if b.Continue != nil && *b.Continue || b.AddGenerationPrompt != nil && !*b.AddGenerationPrompt {
		c.Continue = true
		if last := c.Messages[len(c.Messages)-1]; last.Role != "assistant" || last.Content == "" || last.Calls != nil {
			return nil, apierr.Invalid("continue_final_message",
				"requires a last message of the assistant with text to continue")
		}
	}
	return c, nil
}

// parseCompletion checks the body of /v1/completions.
func parseCompletion(data []byte) (*request.Call, *apierr.Error) {
	var b completionBody
	c, e := request.Parse(data, &b, &b.Common, completionFields())
	if e != nil {
		return nil, e
	}
	if c.MaxTokens == 0 && b.NPredict == nil && b.MaxTokens == nil {
		c.MaxTokens = 16 // the endpoint's default
	}
	c.Logprobs = b.Logprobs != nil
	if c.TopLogprobs, e = fields.Integer(b.Logprobs, "logprobs", 0, request.MaxTopLogprobs, 0); e != nil {
		return nil, e
	}
	if e := parsePrompt(b.Prompt, c); e != nil {
		return nil, e
	}
	if c.Choices() > request.MaxChoices {
		return nil, apierr.Invalid("prompt", "and n ask for %d answers; at most %d are allowed", c.Choices(),
			request.MaxChoices)
	}
	if b.Echoes() {
		c.Echo = make([]request.Echo, max(1, len(c.Prompts)))
		c.OfPrompt = c.Logprobs
		c.PromptOnly = b.MaxTokens != nil && *b.MaxTokens == 0
	}
	return c, nil
}

var (
	chatFields       = fields.Names[chatBody]()
	completionFields = fields.Names[completionBody]()
)

// tools reads tools, tool_choice and parallel_tool_calls.
func (b *chatBody) tools(r *api.Request) (e *apierr.Error) {
	if r.ToolChoice, e = request.ParseToolChoice(b.ToolChoice); e != nil {
		return e
	}
	r.OneCall = b.ParallelToolCalls != nil && !*b.ParallelToolCalls
	if !jsontext.IsEmpty(b.Tools) {
		e = fields.Each(b.Tools, "tools", toolcall.MaxTools, func(i int, item json.RawMessage) *apierr.Error {
			at := fmt.Sprintf("tools[%d]", i)
			var t request.Tool
			if e := fields.Decode(item, &t, at); e != nil {
				return e
			}
			switch {
			case t.Type != nil && *t.Type != "function":
				return apierr.Invalid(at+".type", "is %q; only functions are supported", jsontext.Clip(*t.Type))
			case t.Function == nil:
				return apierr.Invalid(at+".function", "is missing; send the name and parameters of a function")
			}
			r.Tools = append(r.Tools, t.Function.Tool())
			r.ToolsMarked = r.ToolsMarked || !jsontext.IsNull(t.Cache)
			return nil
		})
	}
	if e == nil {
		e = request.CheckTools(r)
	}
	return e
}

// Generate returns the handler of /v1/chat/completions or /v1/completions.
func (s *API) Generate(chat bool) func(http.ResponseWriter, *http.Request) {
	parse := parseCompletion
	if chat {
		parse = parseChat
	}
	return func(w http.ResponseWriter, r *http.Request) {
		s.Handle(w, r, parse, func(x *exchange.Exchange, r *http.Request, c *request.Call, g generation.Generator) {
			out := exchange.NewStream(exchange.NewAnswer(g.Model().ID, chat), x, s.Limits.Heartbeat)
			if c.Stream {
				s.Respond(x, r, c, g, out, newChunked(out, c))
			} else {
				s.Respond(x, r, c, g, out, newWhole(out, c))
			}
		})
	}
}
