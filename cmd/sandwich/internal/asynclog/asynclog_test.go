package asynclog

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// gate is a destination that takes nothing until it is opened.
type gate struct {
	open chan struct{}
	mu   sync.Mutex
	text strings.Builder
}

func (g *gate) Write(p []byte) (int, error) {
	<-g.open
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.text.Write(p)
}

func (g *gate) String() string {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.text.String()
}

// patient returns a Writer whose Flush gives up only after minutes.
func patient(to io.Writer, limit int) *Writer {
	w := New(to, limit)
	w.step = time.Minute
	return w
}

// TestStuckDestination checks that writers do not wait, that whole records are dropped and counted,
// and that the rest is written in order once the destination takes it.
func TestStuckDestination(t *testing.T) {
	g := &gate{open: make(chan struct{})}
	w := New(g, 100)
	reports := make(chan int64, 1)
	w.OnDrop(func(n int64) { reports <- n })
	for i := range 2000 {
		if n, err := fmt.Fprintf(w, "line %04d\n", i); n != 10 || err != nil {
			t.Fatalf("%d %v", n, err)
		}
	}
	if got := w.Dropped(); got != 1990 {
		t.Errorf("%d records dropped, want 1990", got)
	}
	if w.Flush() {
		t.Error("Flush says that a stuck destination has taken everything")
	}
	w.step = time.Minute
	close(g.open)
	if n := <-reports; n != 1990 {
		t.Errorf("%d reported, want 1990", n)
	}
	io.WriteString(w, "after\n")
	if !w.Flush() {
		t.Error("Flush gives up although the destination takes everything")
	}
	text := g.String()
	if lines := strings.Split(text, "\n"); len(lines) != 12 || lines[0] != "line 0000" || lines[9] != "line 0009" ||
		lines[10] != "after" {
		t.Errorf("written %q", text)
	}
	if err := w.Err(); err != nil {
		t.Error(err)
	}
}

// failing returns its errors in their order, then writes.
type failing struct {
	errs []error
	text strings.Builder
}

func (f *failing) Write(p []byte) (int, error) {
	if len(f.errs) == 0 {
		return f.text.Write(p)
	}
	err := f.errs[0]
	f.errs = f.errs[1:]
	if errors.Is(err, syscall.EAGAIN) {
		n, _ := f.text.Write(p[:len(p)/2])
		return n, err
	}
	return 0, err
}

// TestFailingDestination checks that records of a failed write count as dropped, that later ones
// are tried, and that a full non-blocking destination loses nothing.
func TestFailingDestination(t *testing.T) {
	f := &failing{errs: []error{syscall.EPIPE, syscall.EAGAIN, syscall.EAGAIN}}
	w := patient(f, 1<<10)
	for _, line := range []string{"lost\n", "halves\n", "whole\n"} {
		io.WriteString(w, line)
	}
	if !w.Flush() || f.text.String() != "halves\nwhole\n" {
		t.Errorf("written %q", f.text.String())
	}
	if w.Dropped() != 1 || !errors.Is(w.Err(), syscall.EPIPE) {
		t.Errorf("%d dropped, %v", w.Dropped(), w.Err())
	}
}

// TestCopies checks that a record may be changed after Write.
func TestCopies(t *testing.T) {
	g := &gate{open: make(chan struct{})}
	w := patient(g, 100)
	line := []byte("a\n")
	w.Write(line)
	line[0] = 'b'
	close(g.open)
	if w.Flush(); g.String() != "a\n" {
		t.Errorf("written %q", g.String())
	}
}

func TestLimits(t *testing.T) {
	g := &gate{open: make(chan struct{})}
	close(g.open)
	w := patient(g, 10)
	io.WriteString(w, strings.Repeat("x", 11))
	w.Flush()
	io.WriteString(w, strings.Repeat("y", 10))
	if w.Flush(); g.String() != strings.Repeat("y", 10) || w.Dropped() != 1 {
		t.Errorf("written %q, %d dropped", g.String(), w.Dropped())
	}
}
