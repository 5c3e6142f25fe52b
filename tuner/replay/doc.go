// Package replay replays request arrivals through the serving scheduler on a virtual clock (rule 3:
// one scheduler, two clocks).
//
// A Trace is a list of request arrivals. A Cost estimates the duration of forwards, from the
// ceilings of a profile or from measurements. Run drives runtime/sched with both and reports time
// to first token, time per output token, attainment of service levels, and goodput.
package replay
