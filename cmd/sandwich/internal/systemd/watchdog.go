package systemd

import (
	"context"
	"time"
)

// checks is the number of times that Watch looks for progress in the time of the watchdog. It
// notifies the watchdog after half of them.
const checks = 8

// Watch notifies the watchdog until ctx ends, each time half of the watchdog's time has passed, as
// long as the service makes progress. progress returns a count that grows with the work done, and
// whether there is no work; it may block if the service hangs. A notification that was due without
// progress is sent as soon as the count has grown. Watch returns at once if there is no watchdog.
func (n *Notifier) Watch(ctx context.Context, progress func() (count uint64, idle bool)) {
	if n == nil || n.watchdog == 0 || n.socket == "" {
		return
	}
	tick := time.NewTicker(max(n.watchdog/checks, time.Millisecond))
	defer tick.Stop()
	watch(ctx, tick.C, progress, func() { n.send("WATCHDOG=1") })
}

// watch calls alive after each half of checks ticks, or later once the service has progressed.
func watch(ctx context.Context, ticks <-chan time.Time, progress func() (uint64, bool), alive func()) {
	last, _ := progress()
	progressed := true
	for since := 0; ; {
		select {
		case <-ctx.Done():
			return
		case <-ticks:
		}
		count, idle := progress()
		progressed = progressed || idle || count != last
		last = count
		if since++; progressed && since >= checks/2 {
			alive()
			since, progressed = 0, false
		}
	}
}
