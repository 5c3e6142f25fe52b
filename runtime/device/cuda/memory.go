package cuda

import (
	"context"
	"errors"
	"fmt"

	"sandwich/runtime/device"
	"sandwich/runtime/device/hostcall"
)

// stageBytes is the size of the memory through which Write and Read copy.
const stageBytes = 4 << 20

type buffer struct {
	device     *openDevice
	bytes      uint64
	address    uint64           // on the device; 0 if it cannot use the region
	region     *hostcall.Region // of memory of this process
	registered bool
}

func (b *buffer) Bytes() uint64 { return b.bytes }

func (b *buffer) Host() []byte {
	if b.region == nil {
		return nil
	}
	return b.region.Bytes()[:b.bytes]
}

// Alloc allocates memory and fills it with zeros.
func (d *openDevice) Alloc(bytes uint64, usage device.Usage) (device.Buffer, error) {
	if bytes == 0 || bytes >= 1<<48 {
		return nil, fmt.Errorf("%w: a buffer of %d bytes", device.ErrMemory, bytes)
	}
	if usage != device.DeviceLocal {
		if !d.pinned {
			return nil, fmt.Errorf("%s cannot use memory of the host", d.properties.name)
		}
		b, err := d.hostBuffer(bytes, usage)
		if err != nil {
			return nil, err
		}
		return b, nil
	}
	b := &buffer{device: d, bytes: bytes}
	err := d.With(d.Main, func(f *hostcall.Frame) error {
		out := f.Alloc(8)
		err := d.call(f, "cuMemAlloc_v2", out.Addr(), (bytes+15)&^15)
		b.address = out.U64(0)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("allocate %d bytes: %w", bytes, err)
	}
	if err := d.runOnce(step{name: "cuMemsetD8Async", args: []uint64{b.address, 0, bytes}}); err != nil {
		return nil, errors.Join(err, b.Free())
	}
	return b, nil
}

// hostBuffer allocates memory of this process that the device can use.
func (d *openDevice) hostBuffer(bytes uint64, usage device.Usage) (*buffer, error) {
	share := d.Process.Share
	if usage == device.Shared {
		share = d.Process.ShareKept
	}
	region, err := share(int(bytes))
	if err != nil {
		return nil, d.Check(err)
	}
	b := &buffer{device: d, bytes: bytes, region: region}
	err = d.With(d.Main, func(f *hostcall.Frame) error {
		const portableMapped = 1 | 2
		err := d.call(f, "cuMemHostRegister_v2", region.Addr(), uint64(len(region.Bytes())), portableMapped)
		if err != nil {
			return err
		}
		b.registered = true
		out := f.Alloc(8)
		err = d.call(f, "cuMemHostGetDevicePointer_v2", out.Addr(), region.Addr(), 0)
		b.address = out.U64(0)
		return err
	})
	if err != nil {
		return nil, errors.Join(err, b.Free())
	}
	return b, nil
}

// Free releases the memory.
func (b *buffer) Free() error {
	d := b.device
	if d.Process.Err() != nil { // what the device had ended with the process
		if b.region != nil {
			return b.region.Free()
		}
		return nil
	}
	address, registered := b.address, b.registered
	b.address, b.registered = 0, false
	if b.region == nil {
		if address == 0 {
			return nil
		}
		return d.With(d.Main, func(f *hostcall.Frame) error { return d.call(f, "cuMemFree_v2", address) })
	}
	var err error
	if registered {
		err = d.With(d.Main, func(f *hostcall.Frame) error {
			return d.call(f, "cuMemHostUnregister", b.region.Addr())
		})
	}
	return errors.Join(err, b.region.Free())
}

// Write copies data into a buffer.
func (d *openDevice) Write(to device.Buffer, offset uint64, data []byte) error {
	return d.transfer(to, offset, data, func(part []byte, address uint64) error {
		copy(d.stage.region.Bytes(), part)
		return d.runOnce(step{name: "cuMemcpyHtoDAsync_v2",
			args: []uint64{address, d.stage.region.Addr(), uint64(len(part))}})
	})
}

// Read copies data from a buffer.
func (d *openDevice) Read(from device.Buffer, offset uint64, data []byte) error {
	return d.transfer(from, offset, data, func(part []byte, address uint64) error {
		err := d.runOnce(step{name: "cuMemcpyDtoHAsync_v2",
			args: []uint64{d.stage.region.Addr(), address, uint64(len(part))}})
		if err != nil {
			return err
		}
		copy(part, d.stage.region.Bytes())
		return nil
	})
}

// transfer calls move for parts of the data that fit into the stage.
func (d *openDevice) transfer(b device.Buffer, offset uint64, data []byte, move func([]byte, uint64) error) error {
	if err := device.CheckRange(b, offset, uint64(len(data))); err != nil {
		return err
	}
	if err := d.Err(); err != nil {
		return err
	}
	d.stageMu.Lock()
	defer d.stageMu.Unlock()
	at := b.(*buffer).address + offset
	for len(data) > 0 {
		n := min(len(data), stageBytes)
		if err := move(data[:n], at); err != nil {
			return err
		}
		data, at = data[n:], at+uint64(n)
	}
	return nil
}

// runOnce runs one step and waits for it.
func (d *openDevice) runOnce(s step) error {
	t, err := d.Submit(&commands{device: d, steps: []step{s}})
	if err != nil {
		return err
	}
	return d.Wait(context.Background(), t)
}
