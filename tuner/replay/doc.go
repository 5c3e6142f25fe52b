// Package replay replays request arrivals through the scheduler that serves, on a virtual clock
// (rule 3: one scheduler, two clocks).
//
// A Trace is when which request comes. A Cost says how long a forward takes, from the ceilings of a
// profile or from measurement. Run drives runtime/sched with both and reports what the users of
// the trace would have seen: time to first token, time per output token, attainment of service
// levels, and goodput.
package replay
