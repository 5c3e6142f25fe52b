package sched

import (
	"time"

	"sandwich/runtime/api"
	"sandwich/runtime/kvcache"
)

// ID names a request; the driver chooses it, unique among the live ones.
type ID uint64

// Class is the urgency of a request, as its sender states it.
type Class = api.Class

// The classes, under the scheduler's own name.
const (
	Reactive  = api.Reactive
	Proactive = api.Proactive
)

// Lane is one stream of forwards. The cores are lane 0 and run all of them; with two lanes the
// first runs prefills and the second decode batches.
type Lane uint8

const (
	prefillLane Lane = iota
	decodeLane

	MostLanes = 2
)

// Sets is the number of sets of activations that a lane has: one keeps the prefill
// that halted while forwards run on the other.
const Sets = 2

// Config is fixed for the life of a scheduler. A zero field takes the default
// named beside it.
type Config struct {
	Blocks int            // KV blocks there are, of one store that remembers everything; see kvcache.BlockTokens
	Stores []kvcache.Spec // the stores there are, instead of Blocks
	// Lanes is how many forwards run side by side; 1. With 2 prefills run on the first and decode
	// batches on the second, each on a device of its own (Agent.xpu section 4.3).
	Lanes      int
	MaxRunning int // sequences of one class that run at once, hence rows of a decode batch; 1
	Queue      int // requests of each class that may wait; more are rejected
	Chunk      int // tokens of a prefill chunk at most; 512
	LogitRows  int // tokens of a chunk whose logits are all wanted, at most; 1
	// Texts says that requests are read to their end and nothing is drawn: a prefill, of however
	// few tokens, takes on other texts of its class that fit its Chunk whole, and nothing is
	// decoded.
	Texts bool
	Whole bool // a prefill is all of its text, however long that is, and nothing of it is shared

	Policy   string        // who decides what runs next, of Policies(); DefaultPolicy
	MixedCap int           // rows of a decode batch that mixes the classes, where nothing is predicted; 3
	Aging    time.Duration // a proactive request without progress for so long has aged; 30 s, negative: never

	// Decode batches that run between two prefill chunks while there is decode work; 1.
	DecodesBetweenChunks int

	Quantum float64       // share of a reactive step that proactive prefill gets after each; 0.75
	Bound   time.Duration // ops of a prefill that may halt are cut where they are predicted to last longer; 10 ms
	TPOT    time.Duration // objective by which decode batches of both classes are bounded; 0: by MixedCap
	Slice   time.Duration // of a policy that shares time out; 50 ms

	// Forecast predicts a decode step of so many rows, which see so many positions together;
	// 0 where it does not know. nil: nothing is predicted, and steps are as long as the last.
	Forecast func(rows, positions int) time.Duration
}

func (c Config) withDefaults() Config {
	set := func(v *int, d int) {
		if *v < 1 {
			*v = d
		}
	}
	set(&c.Lanes, 1)
	c.Lanes = min(c.Lanes, MostLanes)
	set(&c.MaxRunning, 1)
	set(&c.Chunk, 512)
	set(&c.LogitRows, 1)
	set(&c.MixedCap, 3)
	set(&c.DecodesBetweenChunks, 1)
	if !(c.Quantum > 0) {
		c.Quantum = 0.75
	}
	if c.Bound <= 0 {
		c.Bound = 10 * time.Millisecond
	}
	if c.Slice <= 0 {
		c.Slice = 50 * time.Millisecond
	}
	c.Blocks, c.Queue = max(c.Blocks, 0), max(c.Queue, 0)
	if c.Stores == nil {
		c.Stores = kvcache.Paged(c.Blocks)
	}
	if c.Aging == 0 {
		c.Aging = 30 * time.Second
	}
	return c
}

func (c Config) residents() int { return Residents(c.MaxRunning) }

// Residents bounds the sequences that hold blocks at once where maxRunning of each class run, and
// as many proactive ones that are due stay beside them.
func Residents(maxRunning int) int { return 3 * maxRunning }

// EventKind says what happened.
type EventKind uint8

const (
	Arrive  EventKind = iota // a new request: ID, Class, Prompt or PromptTokens, MaxTokens
	Cancel                   // nobody wants ID any more
	Done                     // the forward on Lane ended; precedes its Sampled and Finish
	Stopped                  // the forward on Lane halted at an op boundary
	Sampled                  // ID goes on with Tokens, of which the last was not computed yet
	Finish                   // ID is complete
	Ready                    // ID, which arrived Pending, may run
)

// Event is one thing that happened, reported to Step.
type Event struct {
	Kind  EventKind
	Class Class
	Lane  Lane
	ID    ID

	Prompt       []int32      // Arrive: token ids, copied; nil in a simulation
	PromptTokens int          // Arrive without Prompt: their number
	MaxTokens    int          // Arrive: tokens that will be sampled at most, at least 1
	Logits       bool         // Arrive: those of every position are wanted, so that none is shared
	Priority     int32        // Arrive: the lower is the earlier among requests of its Class
	Salt         kvcache.Salt // Arrive: blocks are shared among requests of one salt
	Ends         []int        // Arrive: positions behind messages of the prompt, copied: it may be branched there
	Pending      bool         // Arrive: the request takes a place of its queue, and runs only after its Ready
	Tokens       []int32      // Sampled: copied; nil in a simulation, which means one
	// Sampled: guesses at what follows, copied; the next decode checks them if it has rows left
	Draft []int32
	Ahead time.Duration // Stopped: the predicted time of the op at which it goes on; 0: unknown
}

// ActionKind says what the driver has to do.
type ActionKind uint8

const (
	Prefill ActionKind = iota // run tokens Pos .. Pos+N-1 of ID
	Resume                    // go on with the stopped prefill of ID at the op it halted at
	Decode                    // run the next tokens of each of Rows
	Halt                      // stop the forward on Lane at the next op; it is Done where it ends first
	Preempt                   // ID lost its blocks and what is kept of its halted forward; it is computed again later
	Reject                    // refuse ID; it is forgotten here
	Placed                    // ID, which is Pending, has a place in its queue: prepare it and report it Ready
)

// Reason is why a request was rejected.
type Reason uint8

const (
	QueueFull Reason = iota // come again after RetryAfter
	TooLong                 // prompt and MaxTokens exceed the whole KV cache
	Invalid                 // no tokens, or an ID that is in use
)

func (r Reason) String() string {
	return [...]string{"queue is full", "longer than the KV cache", "invalid request"}[r]
}

// Rows are the rows of one request in a prefill of texts, or in a decode batch: its last token and
// N-1 of a draft. Each gives logits. Who draws the token that the draft has there keeps the row
// and reports it with the token that follows.
type Rows struct {
	ID ID
	N  int
}

// Forward says whether an action is work to run.
func (k ActionKind) Forward() bool { return k <= Decode }

// Action is one decision. Of the forwards (Prefill, Resume, Decode) a Step
// returns at most one for each lane, behind all else, and none while one is in flight there; it
// halts a forward once.
type Action struct {
	Kind   ActionKind
	Last   bool  // Prefill, Resume: the chunk ends the known tokens, so logits are wanted
	Lane   Lane  // of a forward, and of the one that halts
	Set    uint8 // of activations that a forward runs on
	Reason Reason
	ID     ID
	Pos, N int // Prefill, Resume
	// Prefill, Resume: after this time the forward halts, without beginning an op that is
	// predicted to end behind it; it runs at least one. 0: only for a Halt.
	Quantum time.Duration
	// Prefill: ops that are predicted to last longer are cut, until the forward is done; 0: none.
	Bound      time.Duration
	Rows       []Rows        // Decode, and all of a prefill of texts; valid until the next Step
	RetryAfter time.Duration // Reject for QueueFull
}

// Stats is a snapshot for metrics.
type Stats struct {
	Waiting, Running [2]int // by class of the request
	Blocks, Free     int    // KV blocks; Free counts cached content nobody holds
	Evictions        int64  // sequences left out of a decode batch; they keep their blocks
	Preemptions      int64  // sequences that lost their blocks for want of free ones
	RecomputedTokens int64  // positions computed again after that
	Promotions       int64  // proactive requests that aged
	Stops            int64  // prefills halted at an op
	Quanta           int64  // forwards of proactive prefill beside reactive work
	Rejections       int64
	ReusedTokens     int64 // positions shared instead of computed
}
