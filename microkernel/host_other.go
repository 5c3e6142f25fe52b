//go:build !amd64 && !arm64

package microkernel

// Host is what this machine can run: plain Go.
func Host() Features { return 0 }
