//go:build !amd64

package amd64

import "sandwich/microkernel/internal/kernel"

// detect returns no features: this is not an amd64 machine.
func detect() kernel.Features { return 0 }
