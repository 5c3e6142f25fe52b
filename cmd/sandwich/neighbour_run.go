package main

import (
	"bufio"
	"fmt"
	"io"
	"runtime"
	"time"

	"github.com/spf13/cobra"
)

// newNeighbour is the child process of bench llm --neighbour. It is told "begin" and "end" on its
// input, answers with the part of the PU's time that it took in between, and ends with its input.
func newNeighbour() *cobra.Command {
	return &cobra.Command{
		Use:   "neighbour PU:PART%/PERIOD",
		Short: "Take a part of a PU's time (bench llm --neighbour starts this)",
		Long: `Take a part of a PU's time: the child process of bench llm --neighbour. It is told "begin" and "end", one a line, answers an
"end" with the part that it got, and ends with its input.`,
		Example: "  (echo begin; sleep 1; echo end; sleep 0.1) | sandwich neighbour 1:50%",
		Hidden:  true,
		Args:    exactArgs(1, "a PU and a part of its time, such as 1:50%"),
		RunE: func(c *cobra.Command, args []string) error {
			n, err := parseNeighbour(args[0])
			if err != nil {
				return usageError(err)
			}
			return n.serve(c.InOrStdin(), c.OutOrStdout())
		},
	}
}

// serve obeys orders on a thread of its own, bound to the PU.
func (n neighbour) serve(in io.Reader, out io.Writer) error {
	runtime.LockOSThread() // for good: the thread keeps its binding
	if err := bindThread(n.pu); err != nil {
		return usageError(fmt.Errorf("a neighbour on PU %d: %w", n.pu, err))
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

// take burns the neighbour's part of each period, by the time that the kernel gave the thread,
// until the next order. It returns the part that it got, and whether there was an order.
func (n neighbour) take(orders <-chan string) (part float64, open bool) {
	began, used := time.Now(), threadTime()
	target := time.Duration(float64(n.period) * n.part)
	for next := began.Add(n.period); ; next = next.Add(n.period) {
		for start := threadTime(); threadTime()-start < target && time.Now().Before(next); {
		}
		select {
		case _, open = <-orders:
			return float64(threadTime()-used) / float64(time.Since(began)), open
		case <-time.After(time.Until(next)):
		}
	}
}
