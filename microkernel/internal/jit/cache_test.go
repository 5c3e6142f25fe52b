package jit

import (
	"errors"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
)

// TestCache checks that a key is built once, however many callers ask for it, and that its error is
// kept.
func TestCache(t *testing.T) {
	var builds atomic.Int32
	refused := errors.New("refused")
	c := NewCache(func(n int) (string, error) {
		builds.Add(1)
		if n < 0 {
			return "", refused
		}
		return strconv.Itoa(n), nil
	})
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			if s, err := c.Get(7); s != "7" || err != nil {
				t.Errorf("Get(7) = %q, %v", s, err)
			}
			if _, err := c.Get(-1); !errors.Is(err, refused) {
				t.Errorf("Get(-1): %v", err)
			}
		})
	}
	all.Wait()
	if n := builds.Load(); n != 2 {
		t.Errorf("two keys were built %d times", n)
	}
}
