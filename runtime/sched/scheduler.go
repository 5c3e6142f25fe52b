package sched

import (
	"cmp"
	"math"
	"slices"
	"time"

	"sandwich/runtime/kvcache"
)

// request is one live request. It waits in a queue while seq is nil and is
// resident otherwise.
type request struct {
	id       ID
	stated   Class         // of its sender
	class    Class         // that the policy sees
	promoted bool          // aged
	priority int32         // that the policy sees
	rank     int32         // its priority, until it has aged
	named    bool          // token ids are known
	reuse    bool          // may share blocks
	logits   bool          // of every position are wanted
	inFlight bool          // part of the forward in flight
	held     bool          // part of the halted forward
	dead     bool          // gone, but still in flight
	begun    bool          // it had its first quantum
	resumed  bool          // was resident before and lost its blocks
	unready  bool          // has a place of its queue, and may not run yet
	placed   bool          // had one before it was ready, and is not refused any more
	order    uint64        // of arrival
	progress time.Duration // arrival, a proactive one's first quantum, or the last new token
	admitted time.Duration // first time it became resident
	tokens   []int32       // prompt and what was sampled, where named
	ends     []int         // positions behind messages of the prompt, and behind all of it
	known    int           // number of tokens known
	reached  int           // positions that were computed once, or shared
	limit    int           // known never exceeds it
	salt     kvcache.Salt
	draft    int           // guesses that stand in tokens behind the known ones
	rows     int           // of the last forward
	chunk    time.Duration // when the present chunk of its prompt began
	checked  int           // of them, computed guesses that no Sampled has confirmed
	slot     int
	set      uint8         // of activations of its last forward
	ahead    time.Duration // predicted time of the op at which its prefill halted
	seq      *kvcache.Sequence
}

// urgency is the class that decides about blocks.
func (r *request) urgency() Class {
	if r.promoted {
		return Reactive
	}
	return r.class
}

// precedence is the one order of requests: urgency, then priority, then arrival. It sorts the
// queues and what runs, and says who loses blocks.
func precedence(r, o *request) int {
	return cmp.Or(cmp.Compare(r.urgency(), o.urgency()), cmp.Compare(r.rank, o.rank), cmp.Compare(r.order, o.order))
}

func (r *request) before(o *request) bool { return precedence(r, o) < 0 }

// pending is the number of known tokens that are not in the cache: more than one
// needs prefill, one can join a decode batch, none waits for its Sampled.
func (r *request) pending() int { return r.known - r.seq.Len() }

// flight is the forward that the driver runs at present on a lane.
type flight struct {
	active        bool
	prefill       bool
	interruptible bool
	halting       bool // it was told to stop
	lane          Lane
	reqs          []*request
	began         time.Duration
	step          time.Duration // what quanta are a share of, where it earns them; 0 where not
	quantum       bool          // it is paid for by them
}

// Scheduler is the state machine; New makes one, Step drives it.
type Scheduler struct {
	cfg     Config
	policy  policy
	rules   rules
	cache   *kvcache.Cache
	byID    map[ID]*request
	queue   [2][]*request // waiting, by class, each in order of precedence
	running []*request    // resident, in order of precedence
	slots   []int         // free slots
	spare   []*request    // for their memory
	arrived []*request    // in this Step
	fresh   [2]int        // waiting requests by class that never ran
	unready [2]int        // requests by class that are not ready to wait
	first   int32         // the lowest priority of a reactive request as yet, and that of who has aged

	flights    [MostLanes]flight // by lane
	suspended  *request          // its prefill halted at an op and can be resumed ...
	held       []*request        // ... with these, of whom it is the first
	sinceChunk int               // decode batches since the last prefill chunk
	credit     time.Duration     // that proactive prefill has beside reactive work; below 0: a debt
	step       time.Duration     // what credit is kept up to: what the last reactive step earned
	saved      time.Duration     // what reactive prompts earned where quanta are guaranteed
	pace       time.Duration     // that a row of a proactive prompt took of late, halts among it; 0: unknown
	turn       time.Duration     // a proactive request had its first quantum for the last time
	used       [2]time.Duration  // by forwards of each class, where the policy shares time out
	passed     time.Duration     // the last reactive forward began; below 0: there was none
	lives      [2]int            // requests that have not ended, by class
	now        time.Duration
	skew       time.Duration // that the clock went back in all

	blocked  *request // head of the queue that did not fit ...
	blockedN uint64   // ... when this many releases had happened
	releases uint64
	arrivals uint64
	service  time.Duration // moving mean from admission to finish
	turns    [2]turns      // by class as it was stated
	stats    Stats

	actions []Action
	rows    []Rows
	batch   []*request
}

// New returns a scheduler over an empty cache. A policy that
// nobody knows is refused with the list of those there are.
func New(cfg Config) (*Scheduler, error) {
	p, err := policyNamed(cfg.Policy)
	if err != nil {
		return nil, err
	}
	cfg = cfg.withDefaults()
	return &Scheduler{
		policy:     p,
		rules:      p.rules(),
		cfg:        cfg,
		cache:      kvcache.New(max(cfg.Chunk, cfg.MaxRunning), cfg.Stores),
		byID:       make(map[ID]*request),
		sinceChunk: cfg.DecodesBetweenChunks,
		passed:     -1,
	}, nil
}

// Step takes in what happened up to now and returns what to do, ending with the
// next forward where none is in flight and there is something to compute. The
// returned slice is valid until the next Step. Where now goes backwards, time goes on from where it
// was. Events
// of requests that are gone are ignored. Step may also be called while a forward
// is in flight, so that a rejection does not wait for the forward's end.
func (s *Scheduler) Step(now time.Duration, events []Event) []Action {
	s.actions, s.arrived = s.actions[:0], s.arrived[:0]
	if now += s.skew; now < s.now {
		s.skew += s.now - now
		now = s.now
	}
	s.now = now
	for i := range events {
		s.apply(now, &events[i])
	}
	s.promote(now)
	s.expel()
	s.admit(now)
	s.rejectOverflow()
	s.halt()
	s.dispatch()
	return s.actions
}

// halt stops the prefill in flight at its next op where nobody wants it any more,
// and where somebody arrived who, says the policy, does not wait for its end.
func (s *Scheduler) halt() {
	f := &s.flights[prefillLane]
	if !f.active || !f.prefill || f.halting {
		return
	}
	f.halting = !slices.ContainsFunc(f.reqs, func(r *request) bool { return !r.dead })
	for _, r := range s.arrived {
		f.halting = f.halting || f.interruptible && s.byID[r.id] == r && !r.unready && s.policy.halts(s, r)
	}
	if f.halting {
		s.actions = append(s.actions, Action{Kind: Halt, Lane: f.lane, ID: f.reqs[0].id})
	}
}

func (s *Scheduler) apply(now time.Duration, e *Event) {
	switch e.Kind {
	case Arrive:
		s.arrive(now, e)
	case Ready:
		if r := s.byID[e.ID]; r != nil && r.unready {
			s.ready(r)
		}
	case Done:
		s.land(e, true)
	case Stopped:
		s.land(e, false)
	case Sampled:
		if r := s.byID[e.ID]; r != nil {
			s.sampled(now, r, e)
		}
	case Cancel:
		if r := s.byID[e.ID]; r != nil {
			s.leave(r)
		}
	case Finish:
		if r := s.byID[e.ID]; r != nil {
			if r.seq != nil {
				s.served(now - r.admitted)
			}
			s.leave(r)
		}
	}
}

// arrive puts a request into its queue, or refuses what can never run.
func (s *Scheduler) arrive(now time.Duration, e *Event) {
	prompt := e.PromptTokens
	if e.Prompt != nil {
		prompt = len(e.Prompt)
	}
	switch {
	case s.byID[e.ID] != nil || prompt < 1 || e.MaxTokens < 1 || e.Class > Proactive:
		s.reject(e.ID, Invalid)
		return
	case e.MaxTokens > math.MaxInt-prompt || !s.cache.Fits(prompt+e.MaxTokens):
		s.reject(e.ID, TooLong)
		return
	}
	r := s.newRequest()
	r.id, r.stated, r.class, r.progress, r.order = e.ID, e.Class, e.Class, now, s.arrivals
	if s.rules.blind {
		r.class = Reactive
	}
	if s.rules.ranks {
		r.priority, r.rank = e.Priority, e.Priority
		s.lead(r)
	}
	r.known, r.limit, r.salt = prompt, prompt+e.MaxTokens, e.Salt
	r.named, r.reuse = e.Prompt != nil, e.Prompt != nil && !e.Logits && !s.cfg.Whole
	if r.named {
		r.tokens = append(slices.Grow(r.tokens[:0], r.limit), e.Prompt...)
	}
	r.logits = e.Logits
	r.ends = append(r.ends[:0], e.Ends...)
	s.arrivals++
	s.byID[r.id] = r
	if r.unready = e.Pending; r.unready {
		s.unready[r.stated]++
	} else {
		s.enqueue(r)
		s.lives[r.class]++
	}
	s.arrived = append(s.arrived, r)
}

func (s *Scheduler) newRequest() *request {
	n := len(s.spare)
	if n == 0 {
		return &request{}
	}
	r := s.spare[n-1]
	s.spare = s.spare[:n-1]
	*r = request{tokens: r.tokens[:0], ends: r.ends[:0]}
	return r
}

// land ends the forward in flight. A forward that ended has filled its
// positions; one that halted has filled none and may be resumed.
func (s *Scheduler) land(e *Event, done bool) {
	if int(e.Lane) >= len(s.flights) || !s.flights[e.Lane].active {
		return
	}
	f := &s.flights[e.Lane]
	f.active = false
	if !done {
		s.stats.Stops++
	}
	s.settle(f)
	halted := !done && f.interruptible && !slices.ContainsFunc(f.reqs, func(r *request) bool { return r.dead })
	for _, r := range f.reqs {
		r.inFlight = false
		if s.blocked != nil && s.blocked.urgency() < r.urgency() {
			s.blocked = nil // r can be preempted for it from now on
		}
		if r.dead {
			s.release(r)
			s.spare = append(s.spare, r)
			continue
		}
		if done {
			n := min(r.rows, r.pending())
			if f.prefill {
				s.paced(r)
			}
			s.computed(r, n)
			r.checked = r.rows - n
		}
	}
	if halted {
		s.suspend(f.reqs, e.Ahead)
	}
	f.reqs = f.reqs[:0]
}

func (s *Scheduler) computed(r *request, n int) {
	at := r.seq.Len()
	s.stats.RecomputedTokens += int64(max(0, min(r.reached, at+n)-at))
	r.reached = max(r.reached, at+n)
	if r.named {
		s.cache.Append(r.seq, r.tokens[at:at+n])
	} else {
		s.cache.Advance(r.seq, n)
	}
}

// sampled goes on with new tokens. All but the last are guesses that the forward has
// computed; the rest of the draft is forgotten, and its positions are written again.
func (s *Scheduler) sampled(now time.Duration, r *request, e *Event) {
	n := len(e.Tokens)
	why := TooLong
	switch {
	case n == 0 && r.named:
		why = Invalid
	case r.known+max(n, 1) <= r.limit:
		s.extend(r, e.Tokens, e.Draft)
		r.progress = now
		return
	}
	id := r.id
	s.leave(r)
	s.reject(id, why)
}

func (s *Scheduler) extend(r *request, tokens, draft []int32) {
	n := max(len(tokens), 1)
	if r.named {
		r.tokens = append(r.tokens[:r.known], tokens...)
	}
	r.known += n
	if held := min(n-1, r.checked); held > 0 {
		s.computed(r, held)
	}
	r.checked, r.draft = 0, 0
	if r.named {
		r.draft = min(len(draft), r.limit-r.known)
		r.tokens = append(r.tokens, draft[:r.draft]...)
	}
}

// leave ends a request that finished or was cancelled. What is in flight keeps
// its blocks until the forward lands, because workers write to them.
func (s *Scheduler) leave(r *request) {
	delete(s.byID, r.id)
	if r.unready {
		s.unready[r.stated]--
		s.spare = append(s.spare, r)
		return
	}
	s.lives[r.class]--
	if r.inFlight {
		r.dead = true
		return
	}
	if r.seq != nil {
		s.release(r)
	} else {
		s.unqueue(r)
	}
	if s.blocked == r {
		s.blocked = nil
	}
	s.spare = append(s.spare, r)
}

// release takes the blocks and the slot from a resident request.
func (s *Scheduler) release(r *request) {
	s.cache.Free(r.seq)
	r.seq, r.draft, r.checked = nil, 0, 0
	s.slots = append(s.slots, r.slot)
	i := slices.Index(s.running, r)
	s.running = slices.Delete(s.running, i, i+1)
	s.releases++
	if r.held {
		s.forget()
	}
}
