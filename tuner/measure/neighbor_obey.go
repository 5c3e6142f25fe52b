package measure

import (
	"bufio"
	"fmt"
	"io"
	"runtime"
	"time"

	"sandwich/runtime/pool"
)

// Obey takes orders on a thread of its own, bound to the PU: "begin" and "end", one a line. It
// answers an "end" with the part of the PU's time that it took in between, and ends with its input.
// An error says that the PU cannot be had.
func (n Neighbor) Obey(in io.Reader, out io.Writer) error {
	runtime.LockOSThread() // for good: the thread keeps its binding
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

// take burns the neighbor's part of each period, by the time that the kernel gave the thread,
// until the next order. It returns the part that it got, and whether there was an order.
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
