// Package offload runs forwards of a model on a device (package device), for example the prefill of
// prompts, while the cores decode.
//
// A Runner holds a copy of the packed weights and of the KV cache in device memory, in the CPU's
// layouts. It launches one kernel or a few per op of the model. Results have the bits of package
// exec, so that a sequence may move between the device and the cores at any chunk: after each
// segment of a forward the Runner copies the new keys and values to the cores' cache, and before a
// forward it copies blocks that the cores have written to the device.
//
// Supported are dense decoders (embedding, RMS norm, matrix products, rotation, attention, sums) on
// one rank, with paths int8, int8-256 and f32, f16 KV blocks and float32 attention. Other models
// and plans are refused by the name of what is missing.
package offload
