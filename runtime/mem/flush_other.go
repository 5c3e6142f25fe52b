//go:build !amd64 && !(arm64 && linux)

package mem

const flushLine = 0

func flush([]byte) {}
