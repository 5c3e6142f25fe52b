package sched

import (
	"time"

	"sandwich/runtime/api"
	"sandwich/runtime/kvcache"
	"sandwich/runtime/phase"
)

// ID identifies a request. The driver chooses it; it is unique among live requests.
type ID uint64

// Class is the urgency of a request as its sender states it.
type Class = api.Class

// Request classes.
const (
	Reactive  = api.Reactive
	Proactive = api.Proactive
)

// EventKind is the kind of an Event.
type EventKind uint8

const (
	Arrive     EventKind = iota // a new request: ID, Class, Prompt or PromptTokens, MaxTokens
	Cancel                      // the client of ID has gone
	Done                        // the forward on Lane ended; precedes its Sampled and Finish events
	Stopped                     // the forward on Lane halted at an op boundary
	Sampled                     // ID continues with Tokens, of which the last was not computed yet
	Finish                      // ID is complete, after Tokens of its draft
	Ready                       // ID, which arrived Pending, may run
	Loaded                      // the blocks of the Load of ID are filled
	LoadFailed                  // the Load of ID ended without them: its positions are computed
)

// Event is an input of Step.
type Event struct {
	Kind  EventKind
	Class Class
	Lane  LaneID
	ID    ID

	Prompt       []int32      // Arrive: token ids, copied; nil in a simulation
	PromptTokens int          // Arrive without Prompt: their number
	MaxTokens    int          // Arrive: most tokens that will be sampled, at least 1
	Logits       bool         // Arrive: the logits of every position are wanted, so no prefix is shared
	Priority     int32        // Arrive: requests of one Class with a lower value go first
	Salt         kvcache.Salt // Arrive: blocks are shared among requests of one salt
	Ends         []int        // Arrive: positions after messages of the prompt, where others may branch; copied
	Stored       int          // Arrive: positions of the prompt that can be loaded, a multiple of kvcache.BlockTokens
	Pending      bool         // Arrive: the request takes a place in its queue and runs only after its Ready
	Tokens       []int32      // Sampled: copied; nil means one token, in a simulation; Finish: accepted drafts
	// Sampled: draft of the following tokens, copied. The next decode batch verifies as many of
	// them as it has rows left.
	Draft   []int32
	Certain int           // Sampled: leading tokens of Draft that will be accepted
	Chance  float64       // Sampled: probability that each further one is accepted if those before it were
	Ahead   time.Duration // Stopped: predicted time of the op at which the forward continues; 0: unknown
}

// Draft describes the drafted tokens of a sequence that may join a decode batch.
type Draft struct {
	ID      ID
	Known   int     // positions that each row of the sequence attends to, about
	Tokens  int     // of the draft
	Certain int     // leading tokens of the draft that will be accepted
	Chance  float64 // probability that each further token is accepted if those before it were
	Rows    int     // result: leading tokens of the draft that join the batch
}

// ActionKind is the kind of an Action.
type ActionKind uint8

const (
	Prefill ActionKind = iota // run tokens Pos .. Pos+N-1 of ID
	Resume                    // continue the halted prefill of ID at the op where it halted
	Decode                    // run the next tokens of each of Rows
	Halt                      // stop the forward on Lane at the next op; it is Done if it ends first
	Preempt                   // ID lost its blocks and its halted forward; it will be computed again
	Reject                    // refuse ID; the scheduler forgets it
	Placed                    // ID, which is Pending, has a place in its queue: prepare it and report it Ready
	Load                      // fill the blocks Pieces of ID, up to position N; report Loaded or LoadFailed
)

// Forward reports whether the action starts a forward.
func (k ActionKind) Forward() bool { return k <= Decode }

// Phase returns the phase of a forward.
func (k ActionKind) Phase() phase.Phase {
	if k == Decode {
		return phase.Decode
	}
	return phase.Prefill
}

// Reason is why a request was rejected.
type Reason uint8

const (
	QueueFull Reason = iota // retry after RetryAfter
	TooLong                 // prompt and MaxTokens exceed the whole KV cache
	Invalid                 // no tokens, or an ID that is in use
)

func (r Reason) String() string {
	return [...]string{"queue is full", "longer than the KV cache", "invalid request"}[r]
}

// Rows are the rows of one request in a prefill of texts or in a decode batch. In a decode batch
// they are its last token and N-1 tokens of its draft; each row gives logits. A request accepts a
// drafted token by reporting it in Sampled together with the token that follows.
type Rows struct {
	ID ID
	N  int
}

// Action is a decision of the scheduler. A Step returns at most one forward (Prefill, Resume,
// Decode) per lane, after all other actions, and none for a lane with a forward in flight. It halts
// a forward once.
type Action struct {
	Kind   ActionKind
	Last   bool   // Prefill, Resume: the chunk ends the known tokens, so logits are wanted
	Lane   LaneID // of a forward, or of the forward to halt
	Set    uint8  // set of activations that the forward uses
	Reason Reason
	ID     ID
	Pos, N int             // Prefill, Resume, Load
	Pieces []kvcache.Piece // Load
	// Prefill, Resume: time after which the forward halts. It starts no op that is predicted to end
	// later, but runs at least one. 0: it halts only for a Halt.
	Quantum time.Duration
	// Prefill: longest predicted op; longer ones are cut until the forward is done. 0: none is cut.
	Bound      time.Duration
	Rows       []Rows        // Decode, and all requests of a prefill of texts; valid until the next Step
	RetryAfter time.Duration // Reject for QueueFull
}

// Stats is a snapshot for metrics.
type Stats struct {
	Waiting, Running [2]int // by the class that the sender stated
	Blocks, Free     int    // KV blocks; Free includes cached blocks without an owner
	Evictions        int64  // sequences left out of a decode batch; they keep their blocks
	Preemptions      int64  // sequences that lost their blocks
	RecomputedTokens int64  // positions computed again after a preemption
	Promotions       int64  // proactive requests that aged
	Stops            int64  // prefills halted at an op
	Quanta           int64  // forwards of proactive prefill paid for by quanta
	Rejections       int64
	ReusedTokens     int64 // positions shared instead of computed
	LoadedTokens     int64 // positions loaded instead of computed
	Loading          int   // requests whose blocks are being filled
}
