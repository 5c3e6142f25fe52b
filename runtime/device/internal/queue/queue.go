// Package queue tracks the submissions of a device: which are complete, who waits for them, and
// whether the device is lost.
package queue

import (
	"context"
	"sync"
	"sync/atomic"

	"sandwich/runtime/device"
)

// Queue hands out tickets and waits for them in order, in a goroutine of its own. Its methods may
// be called concurrently.
type Queue struct {
	await func(device.Ticket) error

	submitMu sync.Mutex // held while a submission is made, so that tickets follow its order
	reached  atomic.Uint64

	mu        sync.Mutex
	submitted device.Ticket
	err       error
	changed   chan struct{} // closed and replaced when a ticket is reached
	work      chan struct{} // has a token if submissions may be pending
	lost      chan struct{} // closed by Lose
	ended     chan struct{} // closed when the goroutine has ended
}

// New starts a queue. await blocks until a ticket is reached; it is called once per ticket, in
// order. An error of await loses the device. The caller ends the queue by Lose and Join.
func New(await func(device.Ticket) error) *Queue {
	q := &Queue{await: await, changed: make(chan struct{}), work: make(chan struct{}, 1),
		lost: make(chan struct{}), ended: make(chan struct{})}
	go q.run()
	return q
}

func (q *Queue) run() {
	defer close(q.ended)
	for {
		select {
		case <-q.work:
		case <-q.lost:
			return
		}
		for q.pending() {
			next := device.Ticket(q.reached.Load() + 1)
			if err := q.await(next); err != nil {
				q.Lose(err)
				return
			}
			q.mu.Lock()
			q.reached.Store(uint64(next))
			close(q.changed)
			q.changed = make(chan struct{})
			q.mu.Unlock()
		}
	}
}

// pending reports whether a submission is not reached and the device is not lost.
func (q *Queue) pending() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.err == nil && uint64(q.submitted) > q.reached.Load()
}

// Submit calls submit with the next ticket. The ticket is used only if submit succeeds.
func (q *Queue) Submit(submit func(device.Ticket) error) (device.Ticket, error) {
	q.submitMu.Lock()
	defer q.submitMu.Unlock()
	if err := q.Err(); err != nil {
		return 0, err
	}
	q.mu.Lock()
	t := q.submitted + 1
	q.mu.Unlock()
	if err := submit(t); err != nil {
		return 0, err
	}
	q.mu.Lock()
	q.submitted = t
	q.mu.Unlock()
	select {
	case q.work <- struct{}{}:
	default:
	}
	return t, nil
}

// Reached reports whether a submission is complete.
func (q *Queue) Reached(t device.Ticket) bool { return uint64(t) <= q.reached.Load() }

// Wait blocks until the submission is complete, the context ends or the device is lost.
func (q *Queue) Wait(ctx context.Context, t device.Ticket) error {
	for {
		q.mu.Lock()
		changed, err := q.changed, q.err
		q.mu.Unlock()
		if q.Reached(t) {
			return nil
		}
		if err != nil {
			return err
		}
		select {
		case <-changed:
		case <-q.lost:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// Drain blocks until all submissions made so far are complete.
func (q *Queue) Drain(ctx context.Context) error {
	q.mu.Lock()
	t := q.submitted
	q.mu.Unlock()
	return q.Wait(ctx, t)
}

// Lose marks the device as lost for a reason. Only the first reason is kept.
func (q *Queue) Lose(err error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.err == nil {
		q.err = err
		close(q.lost)
	}
}

// Lost returns a channel that is closed by Lose.
func (q *Queue) Lost() <-chan struct{} { return q.lost }

// Err returns why the device is lost, or nil.
func (q *Queue) Err() error {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.err
}

// Join waits until the goroutine has ended, after Lose.
func (q *Queue) Join() { <-q.ended }
