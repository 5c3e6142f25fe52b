// Package cost estimates the work of a model's ops under a plan: FLOP, bytes from memory and bytes
// of activations in a forward. A Placer compares them with the ceilings of a machine, to determine
// where each op should run.
package cost
