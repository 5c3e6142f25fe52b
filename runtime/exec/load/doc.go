// Package load packs the weights of a model into the layout that kernels read.
package load
