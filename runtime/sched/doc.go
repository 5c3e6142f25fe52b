// Package sched decides which forward runs next. It is a pure state machine for continuous batching
// with chunked prefill over a paged KV cache, with two request classes, preemption and aging
// (Agent.xpu sections 4.4 and 4.5). A forward is one prefill chunk or one decode batch.
//
// A Scheduler takes the time and the events since the last step. It decides what runs, on which
// lane and set of activations, which request is preempted and which forward halts:
//
//	acts := s.Step(now, events)   // at most one forward per lane
//	s.Fill(lane, &batch)          // rows, block tables and positions of that forward
//	... run it ...
//	events = append(events[:0], Event{Kind: Done, Lane: lane})
//	events = append(events, Event{Kind: Sampled, ID: id, Tokens: t}, ...)
//
// A Driver is this loop over a Clock and an Executor. Those of the engine are real, those of the
// trace simulator virtual. The package starts no goroutine, reads no clock and does no I/O; Step
// allocates only when a request arrives.
//
// Config.Lanes lists the streams of forwards: one lane of the cores, or one for each phase if a
// device runs a phase. Config.Policy names the policy, which is one file: it chooses the next
// forward, the rows of a batch, the sequence to preempt, and when a prefill halts.
//
// Invariants, which tests check on random histories:
//
//   - No request is lost: each one that arrives ends by Finish, Cancel or Reject.
//   - Blocks balance: the KV cache is free when no request lives.
//   - Positions are computed again only after a preemption for blocks. A sequence without a row in
//     a batch pauses and keeps its blocks.
//   - No deadlock: while there is anything to compute, a forward is in flight. A request that could
//     not run alone is refused on arrival, and the first of the reactive and aged requests is never
//     preempted.
//   - Waits are bounded. Within a class requests go by priority, if the policy uses it, then by
//     arrival. A proactive request without progress for Config.Aging has aged: it gets quanta, a
//     row in the decode batch and precedence for blocks, and still halts for a reactive arrival.
//     Aged requests rank with the first priority, by arrival.
//   - Under the policy sandwich the oldest waiting proactive request has its first quantum within
//     Config.Aging and one reactive service time, while at most twice MaxRunning of them live and a
//     chunk takes at most an eighth of Config.Aging. A request that has started continues at a rate
//     that no reactive load takes away. Next to reactive decoding, proactive prefill gets exactly
//     its share, whatever is predicted.
package sched
