//go:build unix

package conntable

import (
	"os"
	"syscall"
)

// freeDescriptors returns how many more descriptors the process may open, and whether that is
// known.
func freeDescriptors() (n int, known bool) {
	var limit syscall.Rlimit
	if syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit) != nil || uint64(limit.Cur) > 1<<30 {
		return 0, false
	}
	n = int(limit.Cur)
	if open, err := os.ReadDir("/dev/fd"); err == nil {
		n -= len(open)
	}
	return max(0, n), true
}
