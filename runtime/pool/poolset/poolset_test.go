package poolset

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"sandwich/runtime/pool"
)

// TestOpen checks which users share a pool, and that the last one ends it.
func TestOpen(t *testing.T) {
	var p Set
	open := func(pus []int, o pool.Options) *Use {
		t.Helper()
		u, err := p.Open(pus, o)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(u.Close)
		return u
	}
	first := open([]int{0, 0}, pool.Options{})
	for name, c := range map[string]struct {
		pus  []int
		o    pool.Options
		same bool
	}{
		"equal":       {[]int{0, 0}, pool.Options{}, true},
		"fewer":       {[]int{0}, pool.Options{}, false},
		"others":      {[]int{0, 1}, pool.Options{}, false},
		"other spin":  {[]int{0, 0}, pool.Options{Spin: time.Millisecond}, false},
		"other kinds": {[]int{0, 0}, pool.Options{Class: []int{0, 1}}, false},
		"slower":      {[]int{0, 0}, pool.Options{Slow: []float64{0.5, 1}}, false},
	} {
		u := open(c.pus, c.o)
		if same := u.Pool == first.Pool; same != c.same {
			t.Errorf("%s: the pool is shared: %v", name, same)
		}
		if u.First() == c.same {
			t.Errorf("%s: is the first user: %v", name, u.First())
		}
		u.Close()
		u.Close()
	}
	if _, err := p.Open(nil, pool.Options{}); err == nil {
		t.Error("a pool without PUs is accepted")
	}
	second := open([]int{0, 0}, pool.Options{})
	if got := fmt.Sprint(p.List()); got != "[{[0 0] 2}]" {
		t.Errorf("pools %s", got)
	}
	first.Close()
	if !second.First() || first.First() {
		t.Error("the second user does not become the first")
	}
	ran := atomic.Int32{}
	second.Pool.Run(func(*pool.Worker) { ran.Add(1) })
	second.Close()
	if ran.Load() != 2 || len(p.List()) != 0 {
		t.Errorf("%d workers ran; pools at the end: %v", ran.Load(), p.List())
	}
	defer func() {
		if recover() != pool.ErrClosed {
			t.Error("the workers go on after the last user")
		}
	}()
	second.Pool.Run(func(*pool.Worker) {})
}

// TestConcurrent checks that users that come and go at the same time share a pool that works.
func TestConcurrent(t *testing.T) {
	var p Set
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for range 20 {
				u, err := p.Open([]int{0}, pool.Options{Spin: pool.NoSpin})
				if err != nil {
					t.Error(err)
					return
				}
				ran := false
				u.Pool.Run(func(*pool.Worker) { ran = true })
				if !ran {
					t.Error("no worker ran")
				}
				u.Close()
			}
		})
	}
	all.Wait()
	if len(p.List()) != 0 {
		t.Errorf("pools at the end: %v", p.List())
	}
}
