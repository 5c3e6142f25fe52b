package amd64

import "golang.org/x/sys/unix"

// requestTiles asks Linux for permission to use the tile registers in all threads of this process.
// Without permission the first tile instruction faults. The request fails if XCR0 lacks the tiles,
// before Linux 5.16, and if a signal stack is too small for their state
// (Documentation/arch/x86/xstate.rst of Linux).
func requestTiles() bool {
	const archReqXCompPerm, xfeatureTileData = 0x1023, 18
	_, _, errno := unix.RawSyscall(unix.SYS_ARCH_PRCTL, archReqXCompPerm, xfeatureTileData, 0)
	return errno == 0
}
