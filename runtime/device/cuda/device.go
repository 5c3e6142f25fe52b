package cuda

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"sandwich/runtime/device"
	"sandwich/runtime/device/hostcall"
)

// openDevice is an open CUDA device.
type openDevice struct {
	*library
	properties *properties
	stream     uint64
	exact      device.Exactness

	eventMu sync.Mutex
	events  map[device.Ticket]uint64 // of pending submissions
	idle    []uint64                 // events for later submissions

	stageMu sync.Mutex
	stage   *buffer // memory of this process through which Write and Read copy
	pinned  bool    // the device can use memory of this process
}

// open makes the device's context current in all threads.
func (d *openDevice) open(index int) error {
	if index >= d.count {
		return fmt.Errorf("there are %d CUDA devices", d.count)
	}
	var err error
	if d.properties, err = d.read(index); err != nil {
		return err
	}
	if text := d.properties.lacks(); text != "" {
		return fmt.Errorf("%s lacks %s", d.properties.name, text)
	}
	var context uint64
	err = d.With(d.Main, func(f *hostcall.Frame) error {
		f.Limit *= 4
		out := f.Alloc(8)
		if err := d.call(f, "cuDevicePrimaryCtxRetain", out.Addr(), d.properties.handle); err != nil {
			return err
		}
		context = out.U64(0)
		return nil
	})
	for _, t := range []*hostcall.Thread{d.Main, d.Waiter, d.Builder} {
		if err == nil {
			err = d.With(t, func(f *hostcall.Frame) error { return d.call(f, "cuCtxSetCurrent", context) })
		}
	}
	if err != nil {
		return err
	}
	err = d.With(d.Main, func(f *hostcall.Frame) error {
		const nonBlocking = 1
		out := f.Alloc(8)
		err := d.call(f, "cuStreamCreate", out.Addr(), nonBlocking)
		d.stream = out.U64(0)
		return err
	})
	if err != nil {
		return err
	}
	d.events = map[device.Ticket]uint64{}
	d.Serve(d.await)
	return d.openStage()
}

// openStage shares memory with the driver. The device copies from and to it faster if the driver
// can register it.
func (d *openDevice) openStage() error {
	b, err := d.hostBuffer(stageBytes, device.HostVisible)
	if _, refused := errors.AsType[result](err); refused {
		region, err := d.Process.Share(stageBytes)
		if err != nil {
			return d.Check(err)
		}
		d.stage = &buffer{device: d, bytes: stageBytes, region: region}
		return nil
	}
	d.stage, d.pinned = b, err == nil
	return err
}

// Info describes the device.
func (d *openDevice) Info() device.Info {
	i := d.properties.info()
	i.Exact, i.HostVisible = d.exact, d.pinned
	if d.pinned {
		i.Sharing = device.Imported
	}
	_ = d.With(d.Main, func(f *hostcall.Frame) error { // on an error the free memory is not known
		out := f.Alloc(16)
		err := d.call(f, "cuMemGetInfo_v2", out.Addr(), out.At(8))
		if err == nil {
			i.FreeBytes = out.U64(0)
		}
		return err
	})
	return i
}

// Reached reports whether a submission is complete.
func (d *openDevice) Reached(t device.Ticket) bool { return d.Queue.Reached(t) }

// Wait waits for a submission.
func (d *openDevice) Wait(ctx context.Context, t device.Ticket) error { return d.Queue.Wait(ctx, t) }

// Lost returns a channel that is closed when the device is lost or closed.
func (d *openDevice) Lost() <-chan struct{} { return d.Queue.Lost() }

// Err returns why the device is lost, or nil.
func (d *openDevice) Err() error { return d.Queue.Err() }

// await blocks until the event of a ticket is reached. The queue calls it.
func (d *openDevice) await(t device.Ticket) error {
	d.eventMu.Lock()
	event := d.events[t]
	d.eventMu.Unlock()
	err := d.With(d.Waiter, func(f *hostcall.Frame) error {
		f.Limit = d.Stall
		return d.call(f, "cuEventSynchronize", event)
	})
	if _, failed := errors.AsType[result](err); failed {
		return d.Lose(err) // the context cannot be used after an error of a kernel
	}
	d.eventMu.Lock()
	defer d.eventMu.Unlock()
	delete(d.events, t)
	d.idle = append(d.idle, event)
	return err
}

// event returns an event for a submission.
func (d *openDevice) event(f *hostcall.Frame) (uint64, error) {
	d.eventMu.Lock()
	defer d.eventMu.Unlock()
	if n := len(d.idle); n > 0 {
		e := d.idle[n-1]
		d.idle = d.idle[:n-1]
		return e, nil
	}
	const blockingSync, disableTiming = 1, 2
	out := f.Alloc(8)
	err := d.call(f, "cuEventCreate", out.Addr(), blockingSync|disableTiming)
	return out.U64(0), err
}
