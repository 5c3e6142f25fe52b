// Package gate decides whether one plan is slower than another. It computes intervals, tests and a
// verdict with an exit code from samples, and checks invariants of a plan. It reads no files,
// measures nothing and reads no clock. The command `sandwich plan check` calls it.
package gate
