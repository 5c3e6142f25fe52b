package sim

import (
	"fmt"

	"sandwich/runtime/device"
	"sandwich/runtime/mem"
)

type buffer struct {
	device *Device
	data   []byte
	host   bool
	used   uint64      // bytes of the device's memory
	shared *mem.Buffer // of Shared buffers
	freed  bool
}

// Alloc allocates memory of this process.
func (d *Device) Alloc(bytes uint64, usage device.Usage) (device.Buffer, error) {
	if err := d.queue.Err(); err != nil {
		return nil, err
	}
	b := &buffer{device: d, host: usage != device.DeviceLocal, used: bytes}
	if usage == device.Shared && d.config.Sharing == device.Imported {
		b.used = 0
	}
	if err := d.take(bytes, b.used); err != nil {
		return nil, err
	}
	if usage != device.Shared {
		b.data = make([]byte, bytes)
		return b, nil
	}
	if err := b.share(bytes); err != nil {
		d.release(b.used)
		return nil, err
	}
	return b, nil
}

// share allocates the memory of a Shared buffer.
func (b *buffer) share(bytes uint64) (err error) {
	c := &b.device.config
	if c.Sharing == device.NotShared {
		return fmt.Errorf("the simulated device has %s", c.Sharing)
	}
	if c.RefuseShared != nil {
		if err := c.RefuseShared(bytes); err != nil {
			return err
		}
	}
	if b.shared, err = mem.Alloc(int(bytes), mem.Options{Node: mem.AnyNode}); err != nil {
		return err
	}
	b.data = b.shared.Bytes()[:bytes]
	return nil
}

// take counts memory of the device for an allocation of a number of bytes.
func (d *Device) take(bytes, used uint64) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if bytes == 0 || d.config.MemoryBytes > 0 && used > d.free() {
		return fmt.Errorf("%w: %d bytes asked, %d free", device.ErrMemory, bytes, d.free())
	}
	d.hold(d.used + used)
	return nil
}

func (d *Device) release(used uint64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.hold(d.used - used)
}

// hold sets the bytes that this device holds. d.mu is held.
func (d *Device) hold(bytes uint64) {
	d.used = bytes
	if d.config.Holds != nil {
		d.config.Holds(bytes)
	}
}

// free returns the bytes that neither this device nor other processes hold. d.mu is held.
func (d *Device) free() uint64 {
	taken := d.used
	if d.config.OtherBytes != nil {
		taken += d.config.OtherBytes()
	}
	return d.config.MemoryBytes - min(taken, d.config.MemoryBytes)
}

func (b *buffer) Bytes() uint64 { return uint64(len(b.data)) }

func (b *buffer) Host() []byte {
	if !b.host {
		return nil
	}
	return b.data
}

func (b *buffer) Free() error {
	b.device.mu.Lock()
	if b.freed {
		b.device.mu.Unlock()
		return nil
	}
	b.freed = true
	b.device.hold(b.device.used - b.used)
	b.device.mu.Unlock()
	if b.shared == nil {
		return nil
	}
	b.data = nil
	return b.shared.Free()
}
