// Package hostcall makes C calls from a static Go program without cgo. The calls run in a child
// process, so that a driver that crashes or hangs ends the child and not the caller.
//
// The child is an ELF executable of a few kilobytes that this package emits ([Executable]). It
// links to the host's C library, glibc or musl, maps memory that it shares with the caller at the
// address at which the caller has it, and serves calls from a mailbox in that memory:
//
//	caller                                   child
//	writes function and arguments
//	increments request, wakes the child      reads the records, makes the calls, writes the results
//	reads the results                        sets done to request, wakes the caller
//
// Both sides sleep in a futex while they wait. A [Thread] is a thread of the child with a mailbox
// and scratch memory of its own; calls of distinct threads run concurrently.
//
// Arguments and results are integers and pointers. Memory of the child outside the shared mappings
// cannot be read by the caller, and every value that comes from the child is checked before use.
//
// The child runs with no_new_privs, receives SIGKILL when the caller ends, inherits no descriptor
// but the standard streams, and has the CPU affinity that the caller had at start-up.
package hostcall
