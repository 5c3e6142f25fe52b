// Package exec runs the ops of a model under a plan.
//
// Open assembles a model: weights, KV cache, activations and workers. Assembly.Compile prepares an
// Executor for a phase of the plan. Executor.Run executes a forward: every active worker walks the
// list of ops, takes chunks of each op and meets the other workers at a barrier. A forward may halt
// between steps and resume later.
//
// The ops are in sub-packages, bottom up: tp (shards of the model and groups of workers), gemm,
// load, attention, state, moe, rowwise. They get a tp.Group and do not know the Executor.
package exec
