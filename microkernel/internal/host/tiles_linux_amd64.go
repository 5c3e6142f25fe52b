package host

import "golang.org/x/sys/unix"

// mayUseTiles asks the kernel for leave to use the tile registers, for all threads of this process: their state is large, and without
// leave the first instruction is a fault. The answer is no where XCR0 does not have them, where the kernel is older than 5.16, or where
// a signal stack is too small for them. Documentation/x86/xstate.rst of Linux.
func mayUseTiles() bool {
	const archReqXCompPerm, xfeatureTileData = 0x1023, 18
	_, _, errno := unix.RawSyscall(unix.SYS_ARCH_PRCTL, archReqXCompPerm, xfeatureTileData, 0)
	return errno == 0
}
