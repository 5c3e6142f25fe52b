package api

import (
	"context"
	"crypto/sha256"
	"math"
	"time"
)

// Request is a request to generate text. Callers set one of Messages, Text and Prompt. The engine
// reads only Prompt; the owner of the tokenizer derives it from the others.
type Request struct {
	Messages []Message // a chat
	Text     string    // a text to continue
	Prompt   []int32   // token ids

	MaxTokens  int // upper bound of generated tokens, also limited by the context; 0: limited by the context alone
	Sampling   Sampling
	Stop       []string // the answer ends before the first of these that appears
	IgnoreEOS  bool
	Variables  string     // JSON object with additional variables for the chat template; empty: none
	Tools      []Tool     // tools that the answer may call (chats only)
	ToolChoice ToolChoice // whether the answer may or must call tools
	OneCall    bool       // at most one call
	Continue   bool       // the answer continues the last message, which is the assistant's
	Control    bool       // keep control tokens in the text; parsers of tool calls need them
	Format     Format     // form of the answer
	Constraint Constraint // enforces Format; must not be shared with other requests
	// Prepare returns the Constraint. The engine calls it once the request is in the queue and runs
	// the request after it has returned; its duration counts as time in the queue. ctx ends
	// together with the request. Prepare may be nil.
	Prepare     func(ctx context.Context) (Constraint, error)
	Logprobs    bool // set the log probability in every Token
	TopLogprobs int  // number of most likely tokens to report for each token; needs Logprobs
	OfPrompt    bool // report log probabilities of the prompt tokens as well, before the answer; needs Logprobs
	PromptOnly  bool // generate nothing; MaxTokens is ignored
	Class       Class
	Priority    int32 // lower values run earlier among requests of the same Class
	// Queued is called once, before the first token, with the state of the queue. It may be nil.
	Queued func(Queue)
	// Progress is called after each computed part of the prompt, until the first token. It may be
	// nil.
	Progress func(Progress)
	// Loading is called with the progress of loading the model, from 0 to 1, while the request
	// waits for that. It may be nil.
	Loading func(share float64)
	// Keep stores the prefix of the prompt on disk at once, if there is a prefix store. Without it,
	// and without marks, a prefix is stored when a second prompt has it.
	Keep        bool
	ToolsMarked bool // a mark of the prefix store follows the tools, as Message.Mark
	// Marks are positions in Prompt at which marks of the prefix store are, ascending. The prompt
	// is stored up to the last one at once. The owner of the tokenizer derives them from the
	// messages.
	Marks []int
	Salt  [sha256.Size]byte // requests with different salts cannot observe each other's cached prefixes
	// Warnings collects what was left out of the request or changed in it. It may be nil.
	Warnings *Warnings
}

// Queue is the state of the queue when a request arrives. Durations are estimates from earlier
// requests, 0 if unknown.
type Queue struct {
	Ahead int           // requests that will run earlier
	Wait  time.Duration // until the request runs
	First time.Duration // until its first token

	Prompt int // tokens of the prompt; 0 if the cached part is not known
	Cached int // tokens of the prompt that are already in the cache
	Stored int // further tokens that will be loaded from disk
	// Diverged is the index of the first token that differs from the most similar recent prompt
	// with the same Salt. It is -1 if there is no such prompt or no token differs.
	Diverged int
}

// Progress counts the computed prompt tokens of a request.
type Progress struct {
	Total, Done int
	Cached      int           // tokens of Done that came from the cache
	Took        time.Duration // since the request arrived
}

// Chat reports whether the request is a chat rather than a text to continue.
func (r *Request) Chat() bool { return r.Messages != nil }

// Message is one message of a chat.
type Message struct {
	Role      string // system, user, assistant or tool; templates may define more
	Content   string
	Reasoning string     // of an assistant, separate from Content
	Calls     []ToolCall // of an assistant
	CallID    string     // of a tool: ID of the call that this message answers
	Name      string     // of a tool: name of the tool
	// Mark is the number of bytes of Content after which a mark of the prefix store is: other
	// prompts are likely to have the text up to there. MarkEnd is after the message; 0 is no mark.
	Mark int
}

// MarkEnd is the Mark of a message that is marked as a whole.
const MarkEnd = math.MaxInt

// Sampling determines how the next token is drawn from the logits. The order is penalties, bias,
// top-k, top-p, min-p, temperature. The zero value selects the most likely token. A zero disables a
// field, as does 1 for TopP and RepeatPenalty.
type Sampling struct {
	Temperature float32 // 0 or less: the most likely token
	TopK        int     // keep the k most likely tokens
	TopP        float32 // keep the smallest set whose probability reaches p
	MinP        float32 // keep tokens at least p times as likely as the most likely one
	// RepeatPenalty divides positive and multiplies negative logits of tokens that occur in the
	// prompt or the answer.
	RepeatPenalty    float32
	FrequencyPenalty float32           // subtracted once for each occurrence of a token in the answer
	PresencePenalty  float32           // subtracted once if a token occurs in the answer
	Seed             uint64            // equal seeds give equal draws
	Bias             map[int32]float32 // added to logits after the penalties
}

// Class is the urgency of a request (Agent.xpu, section 2). Clients state it, the scheduler acts on
// it.
type Class uint8

const (
	Reactive  Class = iota // latency-critical
	Proactive              // best effort
)

func (c Class) String() string {
	if c == Proactive {
		return "proactive"
	}
	return "reactive"
}
