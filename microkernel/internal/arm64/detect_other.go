//go:build !arm64

package arm64

import "sandwich/microkernel/internal/kernel"

// detect returns no features: this is not an arm64 machine.
func detect() kernel.Features { return 0 }
