package vulkan

import (
	"context"
	"errors"
	"fmt"

	"sandwich/runtime/device"
	"sandwich/runtime/device/hostcall"
)

// buffer is a Vulkan buffer with its memory.
type buffer struct {
	device  *logicalDevice
	bytes   uint64
	handle  uint64
	memory  uint64
	address uint64           // on the device
	mapped  uint64           // address in the child, of staging memory that is not imported
	region  *hostcall.Region // of imported memory
	export  *export          // of exported memory
}

func (b *buffer) Bytes() uint64 { return b.bytes }

func (b *buffer) Host() []byte {
	switch {
	case b.region != nil:
		return b.region.Bytes()[:b.bytes]
	case b.export != nil:
		return b.export.bytes(b.bytes)
	}
	return nil
}

// hostAllocation is the handle type of imported memory.
const hostAllocation = 0x80

// source states where the memory of a buffer comes from.
type source uint8

const (
	fromDevice source = iota
	fromMapped        // visible to the child
	fromRegion        // imported
	fromKept          // imported, and kept by this process until it is freed
	fromExport        // of the driver, exported to this process
)

// imported reports whether the memory is of this process.
func (s source) imported() bool { return s == fromRegion || s == fromKept }

// Alloc allocates a buffer and fills it with zeros.
func (d *logicalDevice) Alloc(bytes uint64, usage device.Usage) (device.Buffer, error) {
	if bytes == 0 || bytes >= 1<<48 {
		return nil, fmt.Errorf("%w: a buffer of %d bytes", device.ErrMemory, bytes)
	}
	switch usage {
	case device.Shared:
		return d.allocShared(bytes)
	case device.HostVisible:
		if !d.physical.importsHost {
			return nil, fmt.Errorf("%s cannot use memory of the host (it lacks %s)", d.physical.name, importExtension)
		}
		b, err := d.newBuffer(bytes, fromRegion)
		if err != nil {
			return nil, err
		}
		return b, nil
	}
	b, err := d.newBuffer(bytes, fromDevice)
	if err != nil {
		return nil, err
	}
	if err := d.runOnce(fill{b}); err != nil {
		return nil, errors.Join(err, b.Free())
	}
	return b, nil
}

// allocShared allocates a buffer that the cores use too.
func (d *logicalDevice) allocShared(bytes uint64) (device.Buffer, error) {
	var from source
	switch d.physical.sharing() {
	case device.Imported:
		from = fromKept
	case device.Exported:
		from = fromExport
	default:
		return nil, fmt.Errorf("%s cannot share memory with the host (it lacks %s and %s)", d.physical.name,
			importExtension, fdExtension)
	}
	b, err := d.newBuffer(bytes, from)
	if err != nil {
		return nil, err
	}
	return b, nil
}

// newBuffer allocates a buffer, rounded up to 16 bytes.
func (d *logicalDevice) newBuffer(bytes uint64, from source) (*buffer, error) {
	b := &buffer{device: d, bytes: bytes}
	size := (bytes + 15) &^ 15
	if from.imported() {
		share := d.Process.Share
		if from == fromKept {
			share = d.Process.ShareKept
		}
		region, err := share(int(size))
		if err != nil {
			return nil, d.Check(err)
		}
		b.region = region
		size = uint64(len(region.Bytes()))
	}
	err := d.With(d.Main, func(f *hostcall.Frame) error { return b.allocate(f, size, from) })
	if err == nil && from == fromExport {
		err = b.mapExport()
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("allocate %d bytes: %w", bytes, err), b.Free())
	}
	return b, nil
}

func (b *buffer) allocate(f *hostcall.Frame, size uint64, from source) error {
	d, fs := b.device, b.device.functions
	out := f.Alloc(8)
	var external any = uint64(0)
	if from.imported() {
		external = f.Struct(typeExternalBuffer, uint64(0), hostAllocation)
	} else if from == fromExport {
		external = f.Struct(typeExternalBuffer, uint64(0), d.physical.exports)
	}
	info := f.Struct(12, external, 0, size, bufferUsage, 0, 0, uint64(0))
	if err := fs.call(f, "vkCreateBuffer", d.handle, info.Addr(), 0, out.Addr()); err != nil {
		return err
	}
	b.handle = out.U64(0)
	requirements := f.Alloc(24)
	if err := fs.void(f, "vkGetBufferMemoryRequirements", d.handle, b.handle, requirements.Addr()); err != nil {
		return err
	}
	kind, next, err := b.memoryType(f, requirements.U32(16), from)
	if err != nil {
		return err
	}
	if !from.imported() {
		size = requirements.U64(0)
	}
	allocate := f.Struct(5, next, size, kind)
	if err := fs.call(f, "vkAllocateMemory", d.handle, allocate.Addr(), 0, out.Addr()); err != nil {
		return err
	}
	b.memory = out.U64(0)
	if err := fs.call(f, "vkBindBufferMemory", d.handle, b.handle, b.memory, 0); err != nil {
		return err
	}
	address := f.Struct(1000244001, uint64(0), b.handle)
	if b.address, err = f.Call(fs["vkGetBufferDeviceAddress"], d.handle, address.Addr()); err != nil {
		return err
	}
	if from == fromMapped {
		const whole = 1<<64 - 1
		err := fs.call(f, "vkMapMemory", d.handle, b.memory, 0, whole, 0, out.Addr())
		b.mapped = out.U64(0)
		return err
	}
	return nil
}

// mapExport maps the memory of a buffer into this process and fills it with zeros.
func (b *buffer) mapExport() error {
	d := b.device
	var descriptor uint64
	err := d.With(d.Main, func(f *hostcall.Frame) error {
		info, out := f.Struct(typeGetFD, uint64(0), b.memory, d.physical.exports), f.Alloc(8)
		err := d.functions.call(f, "vkGetMemoryFdKHR", d.handle, info.Addr(), out.Addr())
		descriptor = uint64(out.U32(0))
		return err
	})
	if err != nil {
		return err
	}
	mapping, err := d.Process.MapFile(descriptor)
	err = errors.Join(err, d.closeInChild(descriptor))
	if err != nil {
		if mapping != nil {
			err = errors.Join(err, mapping.Free())
		}
		return d.Check(err)
	}
	b.export = &export{mapping: mapping}
	return b.export.find(b.bytes, func(at uint64, data []byte) error { return d.Write(b, at, data) })
}

func (d *logicalDevice) closeInChild(descriptor uint64) error {
	closeFile, err := d.Process.LibC().Symbol("close")
	if err != nil {
		return err
	}
	return d.With(d.Main, func(f *hostcall.Frame) error {
		_, err := f.Call(closeFile, descriptor)
		return err
	})
}

// memoryType returns the memory type of a buffer and the chain of structures of its allocation.
func (b *buffer) memoryType(f *hostcall.Frame, set uint32, from source) (int, hostcall.Block, error) {
	d, p := b.device, b.device.physical
	const deviceAddress = 2
	kind := -1
	var external any = uint64(0)
	switch from {
	case fromDevice:
		kind = p.memoryType(set, deviceLocal)
	case fromMapped:
		if kind = p.memoryType(set, hostVisible|hostCoherent|hostCached); kind < 0 {
			kind = p.memoryType(set, hostVisible|hostCoherent)
		}
	case fromExport:
		kind = p.memoryType(set, hostVisible|hostCoherent|hostCached)
		dedicated := f.Struct(typeDedicated, uint64(0), uint64(0), b.handle)
		external = f.Struct(typeExport, dedicated, p.exports)
	case fromRegion, fromKept:
		properties := f.Struct(1000178001, uint64(0), 0, 0)
		err := d.functions.call(f, "vkGetMemoryHostPointerPropertiesEXT", d.handle, hostAllocation, b.region.Addr(),
			properties.Addr())
		if err != nil {
			return 0, hostcall.Block{}, err
		}
		kind = p.memoryType(set&properties.U32(16), hostVisible|hostCoherent)
		external = f.Struct(1000178000, uint64(0), hostAllocation, b.region.Addr())
	}
	if kind < 0 {
		return 0, hostcall.Block{}, fmt.Errorf("%s has no memory of the needed type", p.name)
	}
	return kind, f.Struct(1000060000, external, deviceAddress, 0), nil
}

// Free releases the buffer.
func (b *buffer) Free() error {
	d := b.device
	if d.Process.Err() != nil {
		return b.freeHost() // the rest ended with the process
	}
	err := d.With(d.Main, func(f *hostcall.Frame) error {
		return errors.Join(d.functions.void(f, "vkDestroyBuffer", d.handle, b.handle, 0),
			d.functions.void(f, "vkFreeMemory", d.handle, b.memory, 0))
	})
	b.handle, b.memory = 0, 0
	return errors.Join(err, b.freeHost())
}

// freeHost unmaps the memory from this process.
func (b *buffer) freeHost() error {
	switch {
	case b.region != nil:
		return b.region.Free()
	case b.export != nil:
		return b.export.mapping.Free()
	}
	return nil
}

// stage is memory through which Write and Read copy.
type stage struct {
	buffer *buffer
	region *hostcall.Region
	memcpy uint64 // if the buffer is not imported
}

const stageBytes = 4 << 20

// newStage imports memory of the host, or maps memory of the driver where that fails.
func (d *logicalDevice) newStage() (*stage, error) {
	if d.physical.importsHost {
		if b, err := d.newBuffer(stageBytes, fromRegion); err == nil {
			return &stage{buffer: b, region: b.region}, nil
		}
		d.physical.importsHost = false
	}
	b, err := d.newBuffer(stageBytes, fromMapped)
	if err != nil {
		return nil, err
	}
	s := &stage{buffer: b}
	if s.region, err = d.Process.Share(stageBytes); err != nil {
		return nil, err
	}
	s.memcpy, err = d.Process.LibC().Symbol("memcpy")
	return s, err
}

// move copies between the region and the buffer, if they are distinct.
func (d *logicalDevice) move(to, from, bytes uint64) error {
	if d.stage.memcpy == 0 {
		return nil
	}
	return d.With(d.Main, func(f *hostcall.Frame) error {
		_, err := f.Call(d.stage.memcpy, to, from, bytes)
		return err
	})
}

// Write copies data into a buffer.
func (d *logicalDevice) Write(to device.Buffer, offset uint64, data []byte) error {
	return d.transfer(to, offset, data, func(part []byte, s *stage, target device.Slice) error {
		n := uint64(len(part))
		copy(s.region.Bytes(), part)
		if err := d.move(s.buffer.mapped, s.region.Addr(), n); err != nil {
			return err
		}
		return d.runOnce(device.Copy{To: target, From: device.Slice{Buffer: s.buffer}, Bytes: n})
	})
}

// Read copies data from a buffer.
func (d *logicalDevice) Read(from device.Buffer, offset uint64, data []byte) error {
	return d.transfer(from, offset, data, func(part []byte, s *stage, target device.Slice) error {
		n := uint64(len(part))
		if err := d.runOnce(device.Copy{To: device.Slice{Buffer: s.buffer}, From: target, Bytes: n}); err != nil {
			return err
		}
		if err := d.move(s.region.Addr(), s.buffer.mapped, n); err != nil {
			return err
		}
		copy(part, s.region.Bytes())
		return nil
	})
}

// transfer calls move for parts of the data that fit into the stage.
func (d *logicalDevice) transfer(
	b device.Buffer, offset uint64, data []byte, move func(part []byte, s *stage, target device.Slice) error,
) error {
	if err := device.CheckRange(b, offset, uint64(len(data))); err != nil {
		return err
	}
	if err := d.Err(); err != nil {
		return err
	}
	d.stageMu.Lock()
	defer d.stageMu.Unlock()
	for len(data) > 0 {
		n := min(len(data), stageBytes)
		if err := move(data[:n], d.stage, device.Slice{Buffer: b, Offset: offset}); err != nil {
			return err
		}
		data, offset = data[n:], offset+uint64(n)
	}
	return nil
}

// runOnce runs steps that need not be valid for callers, and waits for them.
func (d *logicalDevice) runOnce(steps ...any) error {
	c, err := d.record(steps)
	if err != nil {
		return err
	}
	t, err := d.Submit(c)
	if err == nil {
		err = d.Wait(context.Background(), t)
	}
	return errors.Join(err, c.Free())
}
