//go:build !linux

package jit

const pageSize = 16384

func reserve(n int) ([]byte, error)  { return nil, ErrNoExec }
func release(mem []byte) error       { return nil }
func seal(pages, image []byte) error { return ErrNoExec }
