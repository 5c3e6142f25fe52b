// Package engine runs requests of token ids on a model. A Runner owns what one model needs:
// weights, KV cache, worker pool and executors. An Engine runs many requests at once on a Runner,
// as the scheduler decides; a Sequence runs one without a scheduler.
package engine
