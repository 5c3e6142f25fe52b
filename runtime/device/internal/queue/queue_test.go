package queue

import (
	"context"
	"errors"
	"testing"

	"sandwich/runtime/device"
)

// accept is a submission without work.
func accept(device.Ticket) error { return nil }

// TestOrder checks that tickets are awaited once each, in order, and reached only after that.
func TestOrder(t *testing.T) {
	awaited, release := make(chan device.Ticket), make(chan error)
	q := New(func(n device.Ticket) error {
		awaited <- n
		return <-release
	})
	for want := device.Ticket(1); want <= 3; want++ {
		if n, err := q.Submit(accept); n != want || err != nil {
			t.Fatalf("ticket %d, want %d: %v", n, want, err)
		}
	}
	for want := device.Ticket(1); want <= 3; want++ {
		if n := <-awaited; n != want || q.Reached(n) {
			t.Fatalf("awaits %d, want %d", n, want)
		}
		release <- nil
		if err := q.Wait(t.Context(), want); err != nil || !q.Reached(want) {
			t.Fatalf("ticket %d: %v", want, err)
		}
	}
	if err := q.Drain(t.Context()); err != nil {
		t.Error(err)
	}
	q.Lose(device.ErrLost)
	q.Join()
}

// TestRefusedSubmission checks that a submission that fails uses no ticket.
func TestRefusedSubmission(t *testing.T) {
	q := New(accept)
	refused := errors.New("refused")
	if _, err := q.Submit(func(device.Ticket) error { return refused }); !errors.Is(err, refused) {
		t.Error(err)
	}
	if n, err := q.Submit(accept); n != 1 || err != nil {
		t.Errorf("ticket %d: %v", n, err)
	}
	q.Lose(device.ErrLost)
	q.Join()
}

// TestLose checks that every waiter returns the first reason, also if await fails.
func TestLose(t *testing.T) {
	reason := errors.New("the driver hangs")
	q := New(func(device.Ticket) error { return reason })
	waited := make(chan error)
	for range 3 {
		go func() { waited <- q.Wait(context.WithoutCancel(t.Context()), 1) }()
	}
	if _, err := q.Submit(accept); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		if err := <-waited; !errors.Is(err, reason) {
			t.Error(err)
		}
	}
	q.Join()
	q.Lose(errors.New("later"))
	if _, err := q.Submit(accept); !errors.Is(err, reason) || !errors.Is(q.Err(), reason) || q.Reached(1) {
		t.Errorf("%v %v", err, q.Err())
	}
}
