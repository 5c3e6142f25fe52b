// Package gguf reads and writes GGUF files and converts their tensor types.
//
// [Open] maps a file, with all its parts if there are several, read-only and checks its whole
// header: it compares every length, offset and count with the size of the file, so that a hostile
// file causes an error and takes memory of at most a small multiple of its header. The header is
// copied, and metadata is decoded on request. Tensor data is not copied. Callers read it inside
// [File.Guard], because other programs may write to the file. [Dequantize] and [Quantize] convert
// whole blocks of the tensor types of package qtype, and [Writer] writes a file as a stream.
//
// The format is described at https://github.com/ggml-org/ggml/blob/master/docs/gguf.md.
package gguf
