// Package rates measures the rates of a device that predict the time of a model's kernels: copies,
// launches, and for each class of kernels a memory-bound and a compute-bound run. Package devrates
// holds the results.
package rates
