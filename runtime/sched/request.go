package sched

import (
	"cmp"
	"time"

	"sandwich/runtime/kvcache"
)

// request is a live request. It waits in a queue while seq is nil and is resident otherwise.
type request struct {
	id       ID
	stated   Class         // by its sender
	class    Class         // that the policy sees
	promoted bool          // has aged
	priority int32         // that the policy sees
	rank     int32         // its priority, until it ages
	named    bool          // token ids are known
	reuse    bool          // may share blocks
	logits   bool          // the logits of every position are wanted
	inFlight bool          // part of a forward in flight
	held     bool          // part of the halted forward
	loading  bool          // its blocks are being filled
	dead     bool          // has ended, but is still part of a forward in flight
	begun    bool          // its first forward has started
	resumed  bool          // was resident before and lost its blocks
	unready  bool          // has a place in its queue and may not run yet
	placed   bool          // had a place before it was ready, and is not rejected any more
	order    uint64        // of arrival
	progress time.Duration // time of arrival, of a proactive request's first quantum, or of the last new token
	admitted time.Duration // when it became resident for the first time
	tokens   []int32       // prompt, sampled tokens and draft, if named
	ends     []int         // positions after messages of the prompt, and after all of it
	known    int           // number of tokens known
	reached  int           // positions computed or shared at some time
	limit    int           // known never exceeds it
	salt     kvcache.Salt
	stored   int           // positions that can be loaded
	draft    int           // drafted tokens after the known ones in tokens
	certain  int           // drafted tokens that will be accepted
	chance   float64       // that each further drafted token is accepted
	rows     int           // of the last forward
	chunk    time.Duration // when the current chunk of its prompt started
	again    int           // known tokens that were accepted and must be computed again, because others were not
	checked  int           // drafted tokens computed and not yet confirmed by a Sampled
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

// writes reports whether a forward or a load writes to the blocks of the request, so that it must
// keep them.
func (r *request) writes() bool { return r.inFlight || r.loading }

// precedence orders requests by urgency, then priority, then arrival. Queues and running requests
// are sorted by it; the last request in this order loses its blocks first.
func precedence(r, o *request) int {
	return cmp.Or(cmp.Compare(r.urgency(), o.urgency()), cmp.Compare(r.rank, o.rank), cmp.Compare(r.order, o.order))
}

func (r *request) before(o *request) bool { return precedence(r, o) < 0 }

// pending is the number of known tokens that are not in the cache. One can join a decode batch,
// together with those that must be computed again after a draft; more need a prefill; none waits
// for a Sampled.
func (r *request) pending() int { return r.known - r.seq.Len() }

// decodable reports whether the pending tokens can join a decode batch.
func (r *request) decodable() bool { return r.pending() == 1+r.again }
