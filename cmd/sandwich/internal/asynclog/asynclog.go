// Package asynclog decouples the writers of log lines from the reader of the log.
package asynclog

import (
	"errors"
	"io"
	"sync"
	"syscall"
	"time"
)

// Bounds of Flush, in steps. A pause of the whole process counts as one step.
const (
	flushStep  = 20 * time.Millisecond
	flushSteps = 50 // for the whole of Flush
	idleSteps  = 10 // without a written record
)

// retryPeriod is the time between attempts to write to a full destination that does not block.
const retryPeriod = 20 * time.Millisecond

// Writer writes records to a destination in order, in a goroutine of its own. Its methods never
// wait for the destination, except for Flush, which is bounded. All of them may be called
// concurrently.
type Writer struct {
	to    io.Writer
	limit int           // bytes of the records that wait
	step  time.Duration // of Flush

	mu      sync.Mutex
	arrived sync.Cond // the queue is not empty
	queue   []record
	bytes   int   // of the queue and of the record that is being written
	written int64 // records that were taken from the queue
	dropped int64 // records that were not written in full
	err     error // the first one of the destination
	healthy bool  // the last record was written

	reported int64 // records of which report knows
	report   func(dropped int64)
}

// record is one call of Write, or a mark of Flush, which has no text.
type record struct {
	text []byte
	done chan struct{}
}

// New returns a Writer over a destination. It keeps at most limit bytes of records that are not
// written yet, and drops further ones.
func New(to io.Writer, limit int) *Writer {
	w := &Writer{to: to, limit: limit, step: flushStep}
	w.arrived.L = &w.mu
	go w.run()
	return w
}

// Write keeps a copy of p to be written, or drops it. It never fails.
func (w *Writer) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.bytes+len(p) > w.limit {
		w.dropped++
		return len(p), nil
	}
	w.bytes += len(p)
	w.put(record{text: append([]byte(nil), p...)})
	return len(p), nil
}

func (w *Writer) put(r record) {
	w.queue = append(w.queue, r)
	w.arrived.Signal()
}

// Dropped returns how many records were not written.
func (w *Writer) Dropped() int64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.dropped
}

// Err returns the first error of the destination.
func (w *Writer) Err() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.err
}

// OnDrop sets a function that receives the number of records that were dropped since its last call.
// It is called after all other records are written, and may write to w.
func (w *Writer) OnDrop(report func(dropped int64)) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.report = report
}

// Flush waits until all records that came before it are written, for about a second at most, and
// for less if the destination takes nothing. It reports whether they are.
func (w *Writer) Flush() bool {
	done := make(chan struct{})
	w.mu.Lock()
	w.put(record{done: done})
	before := w.written
	w.mu.Unlock()
	tick := time.NewTicker(w.step)
	defer tick.Stop()
	idle := 0
	for range flushSteps {
		select {
		case <-done:
			return true
		case <-tick.C:
		}
		w.mu.Lock()
		now := w.written
		w.mu.Unlock()
		if idle++; now != before {
			idle, before = 0, now
		}
		if idle == idleSteps {
			return false
		}
	}
	return false
}

// run writes the records.
func (w *Writer) run() {
	for {
		r := w.next()
		if r.done != nil {
			close(r.done)
		} else {
			w.finish(len(r.text), w.write(r.text))
		}
	}
}

// finish accounts for a record that was taken from the queue.
func (w *Writer) finish(bytes int, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.bytes -= bytes
	w.written++
	if err == nil {
		w.healthy = true
		return
	}
	w.healthy = false
	w.dropped++
	if w.err == nil {
		w.err = err
	}
}

// idle reports dropped records, if the destination takes records again.
func (w *Writer) idle() {
	missed, report := w.dropped-w.reported, w.report
	if missed == 0 || report == nil || !w.healthy {
		return
	}
	w.reported = w.dropped
	w.mu.Unlock() // report may write to w
	defer w.mu.Lock()
	report(missed)
}

// next waits for a record.
func (w *Writer) next() record {
	w.mu.Lock()
	defer w.mu.Unlock()
	for len(w.queue) == 0 {
		if w.idle(); len(w.queue) == 0 {
			w.arrived.Wait()
		}
	}
	r := w.queue[0]
	w.queue[0] = record{}
	if w.queue = w.queue[1:]; len(w.queue) == 0 {
		w.queue = nil
	}
	return r
}

// write writes one record. A destination that another process has made non-blocking is retried.
func (w *Writer) write(text []byte) error {
	for {
		n, err := w.to.Write(text)
		if text = text[min(max(n, 0), len(text)):]; !errors.Is(err, syscall.EAGAIN) || len(text) == 0 {
			return err
		}
		time.Sleep(retryPeriod)
	}
}
