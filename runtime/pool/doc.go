// Package pool runs pinned worker threads in groups with local and global barriers.
//
// A [Pool] has one goroutine per PU, each locked to an OS thread whose affinity is set and read
// back. There are two ways to run work:
//
//   - [Pool.Run] executes a function on every active worker at once and returns when all are done.
//     The caller is a further thread, which competes with the workers if every CPU has one.
//   - [Pool.Lead] moves the caller to worker 0: its function runs on that worker's thread and
//     starts runs with [Leader.Run] in which it takes part. No thread has to be woken between two
//     runs, so a switch between prefill and decode workers takes microseconds. The loop of an
//     engine runs there. With [Pool.LeadShared] several engines share a pool: each loop has a
//     thread of its own that is worker 0 while its engine has the pool.
//
// SetActive changes which workers take part (the hot switch). [Worker.Use] changes how they are
// grouped, from one op to the next inside a run. Workers wait by spinning for at most
// [Options.Spin], then in a futex. A worker that loses its CPU while it spins stops spinning for
// some time.
//
// [Pool.RunTolerant] runs a function that can continue without some workers: in preemption-tolerant
// mode the team continues without workers that lose their CPUs, reclaims their chunks, and lets
// them rejoin at the current step.
//
// The files are layers, and each uses only those before it: counter.go, barrier.go, membership.go
// and team.go have data without threads; pool.go has the types of pool and workers; wait.go,
// worker.go, tolerant.go and sync.go have what a worker does inside a run; chunk.go, run.go,
// switch.go, lead.go and loop.go start and end runs; new.go makes a pool.
package pool
