// Package gate decides whether one plan is slower than another: from samples that another program
// took it makes intervals, tests and a verdict with its exit code, and it checks what a plan must
// hold whatever its speed. It reads no file, measures nothing and knows no clock, so that a gate is
// tested as arithmetic. The command `sandwich plan check` calls it.
package gate
