// Package remote implements the common part of devices whose driver runs in a child process: the
// process with its threads, the queue of submissions, and the translation of errors.
package remote

import (
	"errors"
	"fmt"
	"time"

	"sandwich/runtime/device"
	"sandwich/runtime/device/hostcall"
	"sandwich/runtime/device/internal/queue"
)

// Options configures [Start].
type Options struct {
	hostcall.Options
	// Stall is the time after which a submission that does not complete loses the device; 10
	// seconds by default.
	Stall time.Duration
}

// Device is the process of a driver and the queue of a device.
type Device struct {
	Process *hostcall.Process
	Queue   *queue.Queue
	Main    *hostcall.Thread // allocations, recording and submissions
	Waiter  *hostcall.Thread // waits for submissions
	Builder *hostcall.Thread // compiles
	Stall   time.Duration
}

// Start starts a process with three threads. Await is called as [queue.New] says.
func Start(o Options) (*Device, error) {
	if o.Stall <= 0 {
		o.Stall = 10 * time.Second
	}
	p, err := hostcall.Start(o.Options)
	if err != nil {
		return nil, err
	}
	d := &Device{Process: p, Main: p.Main(), Stall: o.Stall}
	for _, t := range []**hostcall.Thread{&d.Waiter, &d.Builder} {
		if *t, err = p.NewThread(); err != nil {
			return nil, errors.Join(err, p.Close())
		}
	}
	return d, nil
}

// Serve starts the queue and makes the end of the process lose it.
func (d *Device) Serve(await func(device.Ticket) error) {
	d.Queue = queue.New(func(t device.Ticket) error { return d.Check(await(t)) })
	go func() {
		<-d.Process.Lost()
		_ = d.Check(d.Process.Err()) // for its effect
	}()
}

// Check returns err. If it says that the process is lost, the device is lost too, and the result
// wraps [device.ErrLost].
func (d *Device) Check(err error) error {
	if !errors.Is(err, hostcall.ErrLost) {
		return err
	}
	if !errors.Is(err, device.ErrLost) {
		err = fmt.Errorf("%w: %w", device.ErrLost, err)
	}
	if d.Queue != nil {
		d.Queue.Lose(err)
		return d.Queue.Err()
	}
	return err
}

// Lose gives the device up for a reason and kills the process.
func (d *Device) Lose(reason error) error {
	d.Process.Fail(reason)
	return d.Check(d.Process.Err())
}

// With calls f with exclusive use of a thread, as [hostcall.Thread.With] does.
func (d *Device) With(t *hostcall.Thread, f func(*hostcall.Frame) error) error {
	if d.Queue != nil {
		if err := d.Queue.Err(); err != nil {
			return err
		}
	}
	return d.Check(t.With(f))
}

// Close ends the process and the queue.
func (d *Device) Close() error {
	if d.Queue == nil {
		return d.Process.Close()
	}
	d.Queue.Lose(fmt.Errorf("%w: closed", device.ErrLost))
	err := d.Process.Close()
	d.Queue.Join()
	return err
}
