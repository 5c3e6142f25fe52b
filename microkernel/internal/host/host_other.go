//go:build !amd64 && !arm64

package host

import "sandwich/microkernel/internal/kernel"

// detect is what this machine can run: plain Go.
func detect() kernel.Features { return 0 }
