// Package gguf reads and writes GGUF files and converts their tensor types.
//
// [Open] maps a file (all parts of a multi-part one) read-only and checks its whole header before
// anything is handed out: every length, offset and count in it is compared with the bytes that are
// really there, so that a hostile file costs an error and never more memory than a small multiple
// of its header. The header is copied, and metadata decoded when it is asked for; tensor data is
// never copied, and read inside [File.Guard], since other programs may write to the file.
// [Dequantize] and [Quantize] convert whole blocks of every tensor type this program runs, and
// [Writer] streams a file out, atomically.
//
// The format: https://github.com/ggml-org/ggml/blob/master/docs/gguf.md
package gguf
