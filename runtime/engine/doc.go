// Package engine owns weights, pool, executors and the serving loop.
package engine
