//go:build !linux || portablepark

package sys

import (
	"sync"
	"sync/atomic"
	"time"
)

// parking blocks threads on a condition variable, for systems without futexes. The build tag
// portablepark selects it on Linux for tests.
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

// Nap sleeps for a short time.
func Nap(d time.Duration) { time.Sleep(d) }
