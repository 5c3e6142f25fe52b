// Package search finds the schedules of one weight shape for a range of M (Sandwich section 6):
// fast start, finetune, sliding window and schedule reuse. Rival strategies implement the same
// interface.
//
// The package is pure: it times schedules through the Timer interface and reads an injected clock,
// so that a search over a simulated machine is deterministic by its seed. The tuner implements
// Timer with the GEMM executor that serves.
package search
