package sys

import "golang.org/x/sys/unix"

// lowNice is a nice value whose weight is about a tenth of the default.
const lowNice = 10

// LowerPriority lowers the priority of the calling thread for good. Without permission it does
// nothing.
func LowerPriority() { _ = unix.Setpriority(unix.PRIO_PROCESS, 0, lowNice) }
