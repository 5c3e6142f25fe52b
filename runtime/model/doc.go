// Package model describes a model by its configuration, and as a flat list of ops with their
// weights, which Builder writes from the configuration. The package executes nothing: runtime/exec
// runs the ops. Its sub-packages have the architectures and read, write and synthesize model files.
package model
