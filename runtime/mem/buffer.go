package mem

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync/atomic"
	"unsafe"
)

// AnyNode as Options.Node leaves the placement to the system. The zero value of Options requests
// node 0.
const AnyNode = -1

// ErrNoMemory is wrapped by the errors of Alloc and CheckLimit if too little memory is available.
// They name the requested size and the limit.
var ErrNoMemory = errors.New("not enough memory")

// ErrNoNode is wrapped by the errors of Alloc for a NUMA node that does not exist or that this
// process may not use.
var ErrNoNode = errors.New("no such memory node")

// Options configures Alloc.
type Options struct {
	// Node is the preferred NUMA node (operating system number), or AnyNode. If it is full, pages
	// come from other nodes; see Buffer.Residency.
	Node  int
	Huge  bool // request transparent huge pages; Buffer.Note reports if they are not available
	Touch bool // fault in every page now, on the calling thread, instead of at first use
}

// Buffer is memory outside the Go heap, zeroed when it is allocated.
type Buffer struct {
	data  []byte
	node  int
	note  string
	unmap func() error
	freed atomic.Bool
}

var live, made atomic.Int64

// Total returns the number of bytes in buffers that are not freed, each rounded up to whole pages.
// It may be called concurrently.
func Total() int64 { return live.Load() }

// Allocations returns the number of buffers allocated since the start of the process. It may be
// called concurrently.
func Allocations() int64 { return made.Load() }

// Alloc maps at least size bytes (0 counts as 1) of zeroed memory. It returns ErrNoMemory if less
// memory is available to this process, and ErrNoNode for a node that does not exist or may not be
// used. It does not fail if huge pages are not available or a sandbox forbids placement;
// Buffer.Note then reports it. It may be called concurrently.
func Alloc(size int, o Options) (*Buffer, error) {
	if size < 0 {
		return nil, fmt.Errorf("invalid buffer size %d: must not be negative", size)
	}
	if err := checkRoom(size); err != nil {
		return nil, err
	}
	data, unmap, err := mapMemory(max(size, 1), o.Huge)
	if err != nil {
		return nil, noMemory(size, Available(), err)
	}
	b := &Buffer{data: data, node: o.Node, unmap: unmap}
	if b.note, err = place(data, o); err != nil {
		return nil, errors.Join(err, unmap())
	}
	live.Add(int64(len(data)))
	made.Add(1)
	if o.Touch {
		b.Touch(0, len(data))
	}
	return b, nil
}

// Allocator allocates a Buffer, as Alloc does. nil stands for Alloc.
type Allocator func(size int, o Options) (*Buffer, error)

// Alloc calls the allocator.
func (a Allocator) Alloc(size int, o Options) (*Buffer, error) {
	if a == nil {
		return Alloc(size, o)
	}
	return a(size, o)
}

// Wrap returns a Buffer of zeroed memory outside the Go heap that the caller mapped, for example
// memory of a device. It requests the placement and huge pages of o; Note reports what is not
// available. Free calls unmap.
func Wrap(data []byte, o Options, unmap func() error) *Buffer {
	b := &Buffer{data: data, node: o.Node, unmap: unmap}
	var err error
	if b.note, err = place(data, o); err != nil {
		b.note = err.Error()
	}
	live.Add(int64(len(data)))
	made.Add(1)
	return b
}

const (
	roomCheck = 32 << 20 // smaller buffers are allocated without reading /proc
	sizeLimit = 1 << 46  // more than 64-bit machines map; keeps arithmetic on sizes from overflowing
)

// checkRoom returns ErrNoMemory if size exceeds the available memory. Because of overcommitment the
// system would grant such a mapping, and kill the process at first use.
func checkRoom(size int) error {
	if size < roomCheck {
		return nil
	}
	there := Available()
	if size > sizeLimit || there >= 0 && int64(size) > there {
		return noMemory(size, there, nil)
	}
	return nil
}

func noMemory(size int, there int64, cause error) error {
	text := "an unknown amount is"
	if there >= 0 {
		text = FormatBytes(there) + " are"
	}
	err := fmt.Errorf("%w: %s were requested, but %s available to this process", ErrNoMemory,
		FormatBytes(int64(size)), text)
	if cause != nil {
		err = fmt.Errorf("%w (%w)", err, cause)
	}
	note := BindingLimit()
	if cause != nil {
		note = LimitNote()
	}
	if note != "" {
		err = fmt.Errorf("%w: %s", err, note)
	}
	return err
}

// Bytes returns the memory: the requested size rounded up to whole pages. It must not be used after
// Free.
func (b *Buffer) Bytes() []byte { return b.data }

// Float32s returns the memory as float32 values.
func (b *Buffer) Float32s() []float32 { return float32s(b.data) }

// Pointer returns the address of the first byte.
func (b *Buffer) Pointer() unsafe.Pointer { return unsafe.Pointer(unsafe.SliceData(b.data)) }

// Len returns the length of Bytes.
func (b *Buffer) Len() int { return len(b.data) }

// Node returns the requested NUMA node, or AnyNode.
func (b *Buffer) Node() int { return b.node }

// Note returns which requested huge pages or placement were not available, in one sentence, or "".
func (b *Buffer) Note() string { return b.note }

// Touch faults in the pages of bytes [lo,hi) without changing them. A page of a buffer without a
// node is placed on the node of the thread that touches it first, so each worker may touch its own
// range of a shared buffer before the first write. It may be called concurrently, but pages shared
// by several ranges must not be written to at the same time.
func (b *Buffer) Touch(lo, hi int) {
	if lo < hi && !populate(b.data[lo:hi]) {
		for at := lo &^ (pageSize - 1); at < hi; at += pageSize {
			p := (*uint32)(unsafe.Pointer(&b.data[at]))
			atomic.AddUint32(p, 0)
		}
	}
}

// Free returns the memory to the system. Further calls do nothing. The caller must make sure that
// the memory is no longer in use: a later access crashes the process.
func (b *Buffer) Free() error {
	if b.freed.Swap(true) {
		return nil
	}
	live.Add(-int64(len(b.data)))
	b.data = nil
	return b.unmap()
}

// float32s returns b as float32 values, without a tail of less than 4 bytes. b must start at a
// multiple of 4, as all memory of this package does.
func float32s(b []byte) []float32 {
	return unsafe.Slice((*float32)(unsafe.Pointer(unsafe.SliceData(b))), len(b)/4)
}

// FormatBytes returns a size as text in binary units, such as 3.1 GiB.
func FormatBytes(n int64) string {
	units := []string{"B", "KiB", "MiB", "GiB", "TiB"}
	f, u := float64(n), 0
	for f >= 1024 && u < len(units)-1 {
		f, u = f/1024, u+1
	}
	if u == 0 {
		return fmt.Sprintf("%d B", n)
	}
	return fmt.Sprintf("%.1f %s", f, units[u])
}

// FormatNodes returns as text the bytes on each node and the fraction that is not on the requested
// node: node 0 1.2 GiB, node 1 1.1 GiB, 0.0 % remote.
func FormatNodes(on map[int]int64, remote float64) string {
	var parts []string
	for _, node := range slices.Sorted(maps.Keys(on)) {
		parts = append(parts, fmt.Sprintf("node %d %s", node, FormatBytes(on[node])))
	}
	return fmt.Sprintf("%s, %.1f %% remote", strings.Join(parts, ", "), 100*remote)
}
