// Package gemm computes products of activations and packed weights under the schedules of a plan.
//
// A Gemm is one weight shape under one schedule; the tuner times it and serving runs it. Products
// has the products of the ops of one rank: it quantizes their inputs, hands slices out to the
// workers of a tp.Group, or assigns them by measured Throughput if the workers are heterogeneous.
package gemm
