package hostcall

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"sync"
	"sync/atomic"
	"unsafe"
)

// Region is memory that both processes have mapped at the same address.
type Region struct {
	process *Process
	at      unsafe.Pointer
	size    int
	kept    bool // Process.Close leaves it mapped
	freed   bool
}

// nextRegion is the number of 64 KiB units between the first address of regions and the next one.
var nextRegion atomic.Uint64

// hugePage is the size of a transparent huge page with base pages of 4 KiB.
const hugePage = 2 << 20

// regionsAfter is the distance from the first address of the mailboxes to the first of the regions.
const regionsAfter = 64 << 30

// Share maps size bytes of new, zeroed memory into both processes. Close unmaps it.
func (p *Process) Share(size int) (*Region, error) { return p.share(size, false) }

// ShareKept is Share for memory that stays mapped in this process until [Region.Free], also after
// Close.
func (p *Process) ShareKept(size int) (*Region, error) { return p.share(size, true) }

func (p *Process) share(size int, kept bool) (*Region, error) {
	if size <= 0 {
		return nil, fmt.Errorf("cannot share %d bytes", size)
	}
	size = (size + mappedPage - 1) &^ (mappedPage - 1)
	file, err := sharedFile(size)
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }() // the mappings hold the memory
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return nil, p.Err()
	}
	for range 16 {
		units := uint64(size) / mappedPage
		spare := uint64(0) // to begin at a boundary of huge pages
		if kept && size >= hugePage {
			spare = hugePage/mappedPage - 1
		}
		unit := nextRegion.Add(units+spare) - units
		unit -= unit % (spare + 1)
		at := machines[runtime.GOARCH].bases[0] + regionsAfter + uintptr(unit)*mappedPage
		var base unsafe.Pointer
		if base, err = mapShared(file, at, size); err != nil {
			continue
		}
		if err = p.mapInChild(file, at, size); err == nil {
			r := &Region{process: p, at: base, size: size, kept: kept}
			p.regions[r] = true
			return r, nil
		}
		err = errors.Join(err, unmapShared(base, size))
		if p.Err() != nil {
			break
		}
	}
	return nil, fmt.Errorf("share %d bytes with a driver process: %w", size, err)
}

// mapInChild sends the file to the child and lets it map it.
func (p *Process) mapInChild(file *os.File, at uintptr, size int) error {
	libc := p.LibC()
	var functions [3]uint64
	for i, name := range []string{"recvmsg", "mmap", "close"} {
		var err error
		if functions[i], err = libc.Symbol(name); err != nil {
			return err
		}
	}
	if err := sendFile(p.socket, file); err != nil {
		return fmt.Errorf("send memory to the driver process: %w", err)
	}
	return p.Main().With(func(f *Frame) error {
		const (
			closeOnExec  = 0x40000000 // MSG_CMSG_CLOEXEC
			controlBytes = 24         // a header of 16 bytes, the descriptor, padding
		)
		control := f.Alloc(controlBytes)
		part := f.Struct(f.Alloc(1), uint64(1))
		message := f.Struct(uint64(0), 0, part, uint64(1), control, uint64(controlBytes), 0)
		n, err := f.Call(functions[0], socketFD, message.Addr(), closeOnExec)
		if err != nil {
			return err
		}
		if int32(n) != 1 {
			return errors.New("the driver process cannot receive memory")
		}
		fd := uint64(control.U32(16))
		got, err := f.Call(functions[1], uint64(at), uint64(size), 3, mmapShared, fd, 0)
		if err != nil {
			return err
		}
		if _, err := f.Call(functions[2], fd); err != nil {
			return err
		}
		if got != uint64(at) {
			return errors.New("the driver process cannot map the caller's memory")
		}
		return nil
	})
}

// Bytes returns the memory. The child may write at any time.
func (r *Region) Bytes() []byte { return unsafe.Slice((*byte)(r.at), r.size) }

// Addr returns the address of the memory in both processes.
func (r *Region) Addr() uint64 { return uint64(uintptr(r.at)) }

// Free unmaps the memory in both processes. Neither may use it any more. Further calls do nothing.
func (r *Region) Free() error {
	p := r.process
	p.mu.Lock()
	defer p.mu.Unlock()
	if r.freed || p.closed && !r.kept {
		return nil
	}
	r.freed = true
	delete(p.regions, r)
	err := r.unmap()
	if p.closed || p.Err() != nil {
		return err
	}
	unmap, symErr := p.LibC().Symbol("munmap")
	if symErr != nil {
		return errors.Join(err, symErr)
	}
	return errors.Join(err, p.Main().With(func(f *Frame) error {
		_, err := f.Call(unmap, r.Addr(), uint64(r.size))
		return err
	}))
}

func (r *Region) unmap() error { return unmapShared(r.at, r.size) }

// Mapping is memory of a file that the child opened, mapped into this process. It stays mapped
// until Free, also after Close of the process.
type Mapping struct {
	at   unsafe.Pointer
	size int
	free sync.Once
}

// MapFile maps a file whose descriptor the child has. The child must not be able to shorten it: an
// anonymous file must be sealed against that. The child's descriptor remains open.
func (p *Process) MapFile(descriptor uint64) (*Mapping, error) {
	send, err := p.LibC().Symbol("sendmsg")
	if err != nil {
		return nil, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return nil, p.Err()
	}
	err = p.Main().With(func(f *Frame) error {
		const (
			headerBytes      = 16 + 4 // of a control message with one descriptor
			solSocket, right = 1, 1   // SOL_SOCKET, SCM_RIGHTS
		)
		control := f.Struct(uint64(headerBytes), solSocket, right, uint32(descriptor), 0)
		part := f.Struct(f.Alloc(1), uint64(1))
		message := f.Struct(uint64(0), 0, part, uint64(1), control, uint64(24), 0)
		n, err := f.Call(send, socketFD, message.Addr(), 0)
		if err == nil && int32(n) != 1 {
			err = errors.New("the driver process cannot send memory")
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	file, err := receiveFile(p.socket)
	if err != nil {
		return nil, fmt.Errorf("receive memory of the driver process: %w", err)
	}
	defer func() { _ = file.Close() }() // the mapping holds the memory
	at, size, err := mapReceived(file)
	if err != nil {
		return nil, fmt.Errorf("map memory of the driver process: %w", err)
	}
	return &Mapping{at: at, size: size}, nil
}

// Bytes returns the memory. The child and its devices may write at any time.
func (m *Mapping) Bytes() []byte { return unsafe.Slice((*byte)(m.at), m.size) }

// Free unmaps the memory. Further calls do nothing.
func (m *Mapping) Free() (err error) {
	m.free.Do(func() { err = unmapShared(m.at, m.size) })
	return err
}
