//go:build !amd64 && !arm64

package microkernel

// detect is what this machine can run: plain Go.
func detect() Features { return 0 }
