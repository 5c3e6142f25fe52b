// Package exec runs a model's ops under a plan: packing, GEMM, attention.
package exec
