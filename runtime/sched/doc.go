// Package sched is the pure state machine that decides what runs next:
// iteration-level continuous batching with chunked prefill over a paged KV
// cache, two classes of requests, preemption and aging (Agent.xpu sections 4.4
// and 4.5; one forward is one prefill chunk or one decode batch, never both).
//
// A Scheduler is told the time and what has happened, and decides everything: what
// runs next, on which lane and set of activations, who gives way, what halts.
//
//	acts := s.Step(now, events)   // at most one of them is a forward
//	s.Fill(&batch)                // rows, tables and positions of that forward
//	... run it ...
//	events = append(events[:0], Event{Kind: Done})
//	events = append(events, Event{Kind: Sampled, ID: id, Tokens: t}, ...)
//
// A Driver is the loop that does so, with a Clock and an Executor: the engine's are
// real, the trace simulator's virtual. There is no goroutine, no clock and no I/O
// here, and Step allocates only where a request arrives.
//
// What a service may decide otherwise (the next forward, the rows of a batch, the
// victim, the leave to halt) is a policy, one file each, named by Config.Policy.
//
// What holds at every time (tests check it on random histories):
//
//   - no request is lost: each one that arrived ends by Finish, Cancel or Reject;
//   - blocks balance: the KV cache is whole and free when nothing is left;
//   - nothing is computed twice but for want of blocks: who finds no row in a
//     batch pauses and keeps what it has;
//   - no deadlock: while there is anything to compute, a forward is in flight.
//     A request that could not run even alone is refused on arrival, and the
//     first of the reactive and aged requests is never preempted;
//   - waits are bounded: within a class the order is that of priority, where the policy
//     heeds it, then of arrival, and a proactive request that made no progress for
//     Config.Aging has aged: it gets quanta, a place in the decode batch and a turn for
//     blocks, and still halts for a reactive arrival. Whoever has aged goes by arrival
//     with the first, whatever their priority;
//   - under the policy sandwich the oldest proactive request that waits has its first quantum
//     within Config.Aging and one reactive service time, while no more than twice MaxRunning of
//     them live and a chunk takes an eighth of Config.Aging at most; and who has begun goes on at
//     a rate that no reactive load takes away (guarantee.go);
//   - beside reactive decoding proactive prefill takes its share and no more, whatever
//     is predicted.
package sched
