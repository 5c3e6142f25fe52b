// Package model reads the configuration of a model from a GGUF file or a Hugging Face config.json,
// and describes the model as a flat list of ops with their weights. Each architecture is one file.
// The package executes nothing: runtime/exec runs the ops.
package model
