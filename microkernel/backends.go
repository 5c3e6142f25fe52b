package microkernel

// The backends. Each import registers the instruction sets of one architecture; adding an
// architecture is adding its package and its line here.
import (
	_ "sandwich/microkernel/internal/amd64"
	_ "sandwich/microkernel/internal/arm64"
)
