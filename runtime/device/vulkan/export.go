package vulkan

import (
	"bytes"
	"crypto/rand"
	"errors"
	"fmt"

	"sandwich/runtime/device"
	"sandwich/runtime/device/hostcall"
)

// Extensions that export memory, and their handle types.
const (
	fdExtension     = "VK_KHR_external_memory_fd"
	dmaBufExtension = "VK_EXT_external_memory_dma_buf"

	opaqueFD = 0x1
	dmaBuf   = 0x200
)

// Structure types.
const (
	typeExternalBuffer     = 1000072000
	typeExport             = 1000072002
	typeDedicated          = 1000127001
	typeGetFD              = 1000074002
	typeExternalInfo       = 1000071002
	typeExternalProperties = 1000071003
)

// export is memory of the driver that this process has mapped.
type export struct {
	mapping *hostcall.Mapping
	offset  int // of the buffer in the mapping
}

func (e *export) bytes(n uint64) []byte { return e.mapping.Bytes()[e.offset:][:n] }

// findExport sets the handle type of exported buffers: a dma-buf if the driver has it.
func (p *physical) findExport(f *hostcall.Frame, fs functions) error {
	if !p.exportsFD {
		return nil
	}
	const exportable = 2
	for _, handle := range []uint32{dmaBuf, opaqueFD} {
		if handle == dmaBuf && !p.exportsDmaBuf {
			continue
		}
		info := f.Struct(typeExternalInfo, uint64(0), 0, bufferUsage, handle)
		properties := f.Struct(typeExternalProperties, uint64(0), 0, 0, 0)
		err := fs.void(f, "vkGetPhysicalDeviceExternalBufferProperties", p.handle, info.Addr(), properties.Addr())
		if err != nil {
			return err
		}
		if properties.U32(16)&exportable != 0 {
			p.exports = handle
			return nil
		}
	}
	return nil
}

// sharing returns how Shared buffers are made.
func (p *physical) sharing() device.Sharing {
	switch {
	case p.importsHost:
		return device.Imported
	case p.exports != 0:
		return device.Exported
	}
	return device.NotShared
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

// checkExport clears the handle type of exported buffers if this process cannot map them.
func (d *logicalDevice) checkExport() error {
	if d.physical.sharing() != device.Exported {
		return nil
	}
	b, err := d.newBuffer(1<<16, fromExport)
	if err != nil {
		d.physical.exports = 0
		return d.Err()
	}
	return b.Free()
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
	if b.export.offset, err = b.findOffset(); err != nil {
		return err
	}
	clear(b.export.bytes(b.bytes))
	return nil
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

// findOffset returns where the buffer begins in the mapped file. The device writes a random number
// to the begin and to the end of the buffer, which must appear there.
func (b *buffer) findOffset() (int, error) {
	const step, most = 64, 64 << 10 // the offset is a multiple of a cache line
	marker := make([]byte, min(16, b.bytes))
	if _, err := rand.Read(marker); err != nil {
		return 0, err
	}
	end := b.bytes - uint64(len(marker))
	for _, at := range []uint64{0, end} {
		if err := b.device.Write(b, at, marker); err != nil {
			return 0, err
		}
	}
	file := b.export.mapping.Bytes()
	for at := 0; at <= most && uint64(at)+b.bytes <= uint64(len(file)); at += step {
		if bytes.HasPrefix(file[at:], marker) && bytes.HasPrefix(file[uint64(at)+end:], marker) {
			return at, nil
		}
	}
	return 0, errors.New("this process cannot see what the device writes to exported memory")
}
