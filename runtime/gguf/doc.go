// Package gguf reads and writes GGUF files and converts their tensor types.
//
// [Open] maps a file (all parts of a multi-part one) read-only and checks its whole header before anything is handed
// out: every length, offset and count in it is compared with the bytes that are really there, so that a hostile
// file costs an error and never more memory than a small multiple of its header. Metadata stays in the file until it is asked for; tensor data
// is never copied. [Dequantize] and [Quantize] convert whole blocks of every tensor type this program runs, and [Writer]
// streams a file out, atomically.
//
// The format: https://github.com/ggml-org/ggml/blob/master/docs/gguf.md
package gguf
