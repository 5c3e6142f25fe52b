package api

import (
	"context"
	"crypto/sha256"
	"time"
)

// Request is one generation. Its prompt comes as one of Messages, Text and Prompt; what runs it
// reads Prompt alone, which is made of the other two before.
type Request struct {
	Messages []Message // a chat
	Text     string    // to continue
	Prompt   []int32   // token ids

	MaxTokens  int // to generate at most, cut to what the context leaves; 0: just that
	Sampling   Sampling
	Stop       []string // the answer ends before the first that appears
	IgnoreEOS  bool
	Variables  string     // a JSON object that a chat's template may read in addition to the messages; empty: none
	Tools      []Tool     // of a chat, which its answer may call
	ToolChoice ToolChoice // whether it may, or must
	OneCall    bool       // at most one of them
	Continue   bool       // the last message is the assistant's, and the answer goes on with it
	Control    bool       // control tokens are written into the text; made for readers of calls
	Format     Format     // what the answer must be
	Constraint Constraint // that holds it to Format; used for this answer only
	// Prepare makes Constraint. It is called once the request has a place in the queue, and the
	// request runs when it has returned; the time that it takes counts as time in the queue. Its
	// context ends when the request does. It may be nil.
	Prepare     func(ctx context.Context) (Constraint, error)
	Logprobs    bool // log probabilities are wanted in every Token
	TopLogprobs int  // number of likeliest tokens for each, where Logprobs
	OfPrompt    bool // and for the tokens of the prompt, which then come first
	PromptOnly  bool // nothing is generated; MaxTokens is not read
	Class       Class
	Priority    int32 // the lower is the earlier among requests of its Class
	// Queued hears once, before any token, how the request stands. It may be nil.
	Queued func(Queue)
	// Progress hears, until the first token, how far the prompt is: when a part of it was computed.
	// It may be nil.
	Progress func(Progress)
	Salt     [sha256.Size]byte // only requests of one salt may tell each other's prefixes by what is cached
	// Warnings collects what was left out of the request or changed in it. It may be nil.
	Warnings *Warnings
}

// Queue is the state of a request when it arrives, estimated from what others took; times are 0 if
// they are not known.
type Queue struct {
	Ahead int           // requests that wait before it
	Wait  time.Duration // until it runs
	First time.Duration // until its first token

	Prompt int // tokens of its prompt; 0 if what is cached of it is not known
	Cached int // tokens of its prompt that need not be computed
	// Diverged is the index of the first token of the prompt that differs from the most similar
	// text that was computed of late for the same Salt; -1 if there is none, or none differs.
	Diverged int
}

// Progress is how far the prompt of a request is, in tokens.
type Progress struct {
	Total, Done int
	Cached      int           // of Done, those that were there before
	Took        time.Duration // since the request came
}

// Chat tells a chat from a text to continue.
func (r *Request) Chat() bool { return r.Messages != nil }

// Message is one turn of a chat.
type Message struct {
	Role      string // system, user, assistant, tool; templates may know more
	Content   string
	Reasoning string     // of an assistant, apart from Content
	Calls     []ToolCall // of an assistant
	CallID    string     // of a tool: the call that this is the result of
	Name      string     // of a tool: who was called
}

// Sampling says how the next token is drawn from the logits. Limits apply in the order penalties,
// top-k, top-p, min-p, temperature. The zero value takes the likeliest token; a zero switches any
// field off, and so does 1 for TopP and RepeatPenalty.
type Sampling struct {
	Temperature float32 // 0 or less: the likeliest token
	TopK        int     // keep the k likeliest
	TopP        float32 // keep the least set whose probability reaches p
	MinP        float32 // keep tokens at least p times as likely as the likeliest one
	// divides positive and multiplies negative logits of tokens in the prompt and the answer
	RepeatPenalty    float32
	FrequencyPenalty float32           // subtracted once for every time a token was generated
	PresencePenalty  float32           // subtracted once from every token that was generated
	Seed             uint64            // equal seeds give equal draws
	Bias             map[int32]float32 // added to the logits of tokens behind the penalties
}

// Class is the urgency of a request (Agent.xpu section 2): its sender states it, the scheduler acts
// on it.
type Class uint8

const (
	Reactive  Class = iota // latency-critical
	Proactive              // best effort, fills the slack
)

func (c Class) String() string {
	if c == Proactive {
		return "proactive"
	}
	return "reactive"
}
