package vulkan

import (
	"bytes"
	"crypto/rand"
	"errors"

	"sandwich/runtime/device/hostcall"
)

// Extensions that export memory, and their handle types.
const (
	fdExtension     = "VK_KHR_external_memory_fd"
	dmaBufExtension = "VK_EXT_external_memory_dma_buf"

	opaqueFD = 0x1
	dmaBuf   = 0x200
)

// Usage flags of buffers: storage, device address, source and target of copies.
const bufferUsage = 0x20 | 0x20000 | 1 | 2

// Structure types of external memory.
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

// exportHandle returns the handle type of exported buffers of a physical device: a dma-buf if the
// driver has it, else an opaque file. It returns 0 if buffers cannot be exported.
func exportHandle(f *hostcall.Frame, fs functions, physical uint64, hasDmaBuf bool) (uint32, error) {
	const exportable = 2
	for _, handle := range []uint32{dmaBuf, opaqueFD} {
		if handle == dmaBuf && !hasDmaBuf {
			continue
		}
		info := f.Struct(typeExternalInfo, uint64(0), 0, bufferUsage, handle)
		properties := f.Struct(typeExternalProperties, uint64(0), 0, 0, 0)
		err := fs.void(f, "vkGetPhysicalDeviceExternalBufferProperties", physical, info.Addr(), properties.Addr())
		if err != nil {
			return 0, err
		}
		if properties.U32(16)&exportable != 0 {
			return handle, nil
		}
	}
	return 0, nil
}

// find sets the offset of a buffer of a number of bytes in the mapping. write, which writes to the
// buffer by the device, puts a random number at its begin and at its end, which must appear there.
func (e *export) find(size uint64, write func(at uint64, data []byte) error) error {
	const step, limit = 64, 64 << 10 // the offset is a multiple of a cache line
	marker := make([]byte, min(16, size))
	if _, err := rand.Read(marker); err != nil {
		return err
	}
	end := size - uint64(len(marker))
	for _, at := range []uint64{0, end} {
		if err := write(at, marker); err != nil {
			return err
		}
	}
	file := e.mapping.Bytes()
	for at := 0; at <= limit && uint64(at)+size <= uint64(len(file)); at += step {
		if bytes.HasPrefix(file[at:], marker) && bytes.HasPrefix(file[uint64(at)+end:], marker) {
			e.offset = at
			clear(e.bytes(size))
			return nil
		}
	}
	return errors.New("this process cannot see what the device writes to exported memory")
}
