package sched

import (
	"math"
	"time"

	"sandwich/runtime/kvcache"
	"sandwich/runtime/phase"
)

// flight is the forward in flight on a lane.
type flight struct {
	active        bool
	prefill       bool
	interruptible bool // it may halt for a request
	halting       bool // a Halt was returned for it
	quantum       bool // credit of the policy pays for it
	exclusive     bool // a decode batch that runs alone, while prefills that contend with it wait
	lane          LaneID
	reqs          []*request
	began         time.Duration
	earning       time.Duration // predicted time that earns the policy credit; 0: none
}

// Scheduler is the state machine; New makes one, Step drives it. It is not safe for concurrent use.
type Scheduler struct {
	cfg    Config
	policy policy
	rules  rules
	laneOf [phase.Count]LaneID
	cache  *kvcache.Cache
	now    time.Duration
	skew   time.Duration // total time by which the clock went backwards

	// Requests.
	byID     map[ID]*request
	queue    [2][]*request // waiting, by class, in order of precedence
	running  []*request    // resident, in order of precedence
	slots    []int         // free slots
	spare    []*request    // ended requests, for their memory
	arrived  []*request    // in this Step
	arrivals uint64
	fresh    [2]int // waiting requests that never ran, by stated class
	unready  [2]int // requests that are not ready to wait, by stated class
	lives    [2]int // requests that are ready and have not ended, by class
	first    int32  // the lowest priority value of reactive requests so far, which aged requests get

	// Admission: the head of the queue that did not fit, and the number of releases at that time.
	blocked  *request
	blockedN uint64
	releases uint64
	loads    []*request // whose blocks are being filled, including those that have ended

	// Forwards.
	flights    []flight   // by lane
	suspended  *request   // first request of the halted prefill; nil: none
	held       []*request // all requests of the halted prefill
	sinceChunk int        // decode batches since the last prefill chunk

	// Estimates of waiting times.
	service    time.Duration // moving mean from admission to finish
	departures [2]departures // from the queues, by stated class

	stats   Stats
	actions []Action
	rows    [phase.Count][]Rows // of the actions of a Step
	batch   []*request
	drafts  []Draft
}

// New returns a scheduler with an empty cache. It refuses an unknown policy and an invalid list of
// lanes.
func New(cfg Config) (*Scheduler, error) {
	p, err := newPolicy(cfg.Policy)
	if err != nil {
		return nil, err
	}
	cfg = cfg.withDefaults()
	laneOf, err := lanesByPhase(cfg.Lanes)
	if err != nil {
		return nil, err
	}
	s := &Scheduler{
		policy:     p,
		rules:      p.rules(),
		cfg:        cfg,
		laneOf:     laneOf,
		cache:      kvcache.New(max(cfg.Chunk, cfg.BatchRows), cfg.Stores),
		byID:       make(map[ID]*request),
		flights:    make([]flight, len(cfg.Lanes)),
		sinceChunk: cfg.DecodesBetweenChunks,
	}
	for i := range s.flights {
		s.flights[i].lane = LaneID(i)
	}
	return s, nil
}

// Lanes returns the lanes of the scheduler; a LaneID is an index of it.
func (s *Scheduler) Lanes() []Lane { return s.cfg.Lanes }

// flight returns the forward in flight of a phase's lane.
func (s *Scheduler) flight(p phase.Phase) *flight { return &s.flights[s.laneOf[p]] }

// sharedLane reports whether both phases have the same lane.
func (s *Scheduler) sharedLane() bool { return s.laneOf[phase.Prefill] == s.laneOf[phase.Decode] }

// unpredicted is the predicted time of a step of which nothing is known.
const unpredicted = time.Duration(math.MaxInt64)

// predicted returns the predicted time of a decode step, or unpredicted.
func (s *Scheduler) predicted(rows, positions int) time.Duration {
	if s.cfg.Forecast != nil {
		if d := s.cfg.Forecast(rows, positions); d > 0 {
			return d
		}
	}
	return unpredicted
}

// decodes reports whether a resident request is ready for a decode batch.
func (s *Scheduler) decodes(r *request) bool { return s.ready(r) && r.decodable() && !s.cfg.Texts }

// ready reports whether a resident request may be part of a new forward. A halted prefill of
// several texts continues with the first of them.
func (s *Scheduler) ready(r *request) bool {
	return !r.writes() && (!r.held || r == s.suspended)
}

// Live returns the number of requests that have not ended.
func (s *Scheduler) Live() int { return len(s.byID) }

// Precedes reports whether the prompt of one live request is read before that of another, as far as
// their precedence decides.
func (s *Scheduler) Precedes(id, other ID) bool {
	r, o := s.byID[id], s.byID[other]
	return r != nil && o != nil && r.before(o)
}

// Cached returns how many tokens of a prompt would be shared if it arrived now.
func (s *Scheduler) Cached(salt kvcache.Salt, prompt []int32) int {
	seq := s.cache.Open(salt)
	defer s.cache.Free(seq)
	return s.cache.Adopt(seq, prompt)
}

// Stats returns a snapshot.
func (s *Scheduler) Stats() Stats {
	st := s.stats
	st.Blocks, st.Free = s.cache.Blocks(), s.cache.Idle()
	st.Waiting, st.Loading = s.unready, len(s.loads)
	for _, q := range s.queue {
		for _, r := range q {
			st.Waiting[r.stated]++
		}
	}
	for _, r := range s.running {
		st.Running[r.stated]++
	}
	return st
}

// Pin holds a cached block, so that it can be copied while forwards run (kvcache.Cache.Pin).
func (s *Scheduler) Pin(store int, k *kvcache.Key) (kvcache.BlockID, bool) {
	return s.cache.Pin(store, k)
}

// Unpin releases a block of Pin. A request that did not fit is tried again by the next Step.
func (s *Scheduler) Unpin(store int, id kvcache.BlockID) {
	s.cache.Unpin(store, id)
	s.releases++
}

// Has reports whether a store of the cache has a block with a key.
func (s *Scheduler) Has(store int, k *kvcache.Key) bool { return s.cache.Has(store, k) }
