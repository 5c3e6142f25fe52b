// Package pool runs pinned worker threads in groups with local and global barriers.
//
// A [Pool] holds one goroutine per PU, each locked to an OS thread whose affinity is set and read
// back. Work reaches the workers in one of two ways:
//
//   - [Pool.Run] executes a function on every active worker at once and returns when all are done.
//     The caller is a further thread: on a machine whose every CPU has a worker it competes with
//     them for a moment.
//   - [Pool.Lead] moves the calling program onto worker 0: its function runs on that worker's
//     thread and dispatches with [Leader.Run], taking part itself. Between two runs no thread has
//     to be woken, which is what makes a switch between prefill and decode workers cost
//     microseconds. An engine's loop lives here.
//
// Which workers take part is changed with SetActive (the hot switch), how they are grouped, from
// one op to the next inside a run, with [Worker.Use]. Workers wait by spinning for at most
// [Options.Spin], then in a futex; a worker that the kernel takes its CPU from while it spins stops
// spinning for a while.
//
// A run that can do without workers ([Pool.RunElastic]) goes on without those that lose their CPUs,
// takes back what they were at, and lets them in again where it is then.
package pool
