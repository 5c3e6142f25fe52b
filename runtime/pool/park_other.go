//go:build !linux || portablepark

package pool

import (
	"sync"
	"sync/atomic"
	"time"
)

// parking blocks threads on a condition variable, for systems without futexes. The tag portablepark
// selects it on Linux, so that it can be tested there.
type parking struct {
	mu   sync.Mutex
	cond *sync.Cond
}

func (k *parking) block(v *atomic.Uint32, old uint32) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.cond == nil {
		k.cond = sync.NewCond(&k.mu)
	}
	if v.Load() == old {
		k.cond.Wait()
	}
}

func (k *parking) unblock(*atomic.Uint32) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.cond != nil {
		k.cond.Broadcast()
	}
}

// nap gives the CPU away for a moment.
func nap(d time.Duration) { time.Sleep(d) }
