// Package gguf reads and writes GGUF files and dequantizes their tensors.
package gguf
