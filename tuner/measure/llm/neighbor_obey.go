package llm

import (
	"bufio"
	"fmt"
	"io"
	"runtime"
	"time"

	"sandwich/runtime/pool"
)

// Obey reads orders, "begin" and "end", one per line, on a thread pinned to the PU. It answers
// "end" with the fraction of the PU's time that it used since "begin", and returns at the end of
// its input. It returns an error if it cannot use the PU.
func (n Neighbor) Obey(in io.Reader, out io.Writer) error {
	runtime.LockOSThread() // permanently: the thread keeps its affinity
	if err := bindThread(n.PU); err != nil {
		return fmt.Errorf("a neighbor on PU %d: %w", n.PU, err)
	}
	orders := make(chan string)
	go func() {
		defer close(orders)
		for s := bufio.NewScanner(in); s.Scan(); {
			orders <- s.Text()
		}
	}()
	fmt.Fprintln(out, "ready")
	for order := range orders {
		if order != "begin" {
			continue
		}
		part, open := n.take(orders)
		if !open {
			return nil
		}
		fmt.Fprintln(out, part)
	}
	return nil
}

// take uses the neighbor's fraction of each period, by the thread's CPU time, until the next order.
// It returns the fraction that it got, and whether there was an order.
func (n Neighbor) take(orders <-chan string) (part float64, open bool) {
	began, used := time.Now(), pool.ThreadTime()
	target := time.Duration(float64(n.Period) * n.Part)
	for next := began.Add(n.Period); ; next = next.Add(n.Period) {
		for start := pool.ThreadTime(); pool.ThreadTime()-start < target && time.Now().Before(next); {
		}
		select {
		case _, open = <-orders:
			return float64(pool.ThreadTime()-used) / float64(time.Since(began)), open
		case <-time.After(time.Until(next)):
		}
	}
}
