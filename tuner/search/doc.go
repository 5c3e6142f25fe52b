// Package search finds the schedules of one weight shape for a range of M (Sandwich section 6):
// fast start, finetune, sliding window and schedule reuse, and the rival strategies behind the same
// interface.
//
// It is pure: schedules are timed through the Timer interface and time passes on an injected clock,
// so that a search over a simulated machine is deterministic by its seed. The tuner implements
// Timer with the GEMM executor that serving uses.
package search
