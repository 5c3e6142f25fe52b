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

// AnyNode as Options.Node leaves the placement to the system. Note that the zero value of Options
// names node 0.
const AnyNode = -1

// ErrNoMemory is wrapped by errors of Alloc that say how much was asked for and how much there is.
var ErrNoMemory = errors.New("not enough memory")

// ErrNoNode is wrapped by errors about a NUMA node this machine does not have or may not use.
var ErrNoNode = errors.New("no such memory node")

// Options of Alloc.
type Options struct {
	// NUMA node (operating system number) to prefer; AnyNode for none. A full node falls back to
	// others: check Residency
	Node  int
	Huge  bool // ask for transparent huge pages; Note tells if they are switched off
	Touch bool // fault every page in now, on the calling thread, instead of at first use
}

// Buffer is zeroed memory off the Go heap.
type Buffer struct {
	data  []byte
	node  int
	note  string
	unmap func() error
	freed atomic.Bool
}

var live, made atomic.Int64

// Total is the number of bytes in buffers that are not freed, rounded up to pages.
func Total() int64 { return live.Load() }

// Allocations is the number of buffers ever made: serving makes none.
func Allocations() int64 { return made.Load() }

// Alloc maps at least size bytes (0 counts as 1) of zeroed memory. It fails with ErrNoMemory when
// the memory available to this process is less, and with ErrNoNode for a node that is not there.
// What was asked for and only advisory (placement in a sandbox that forbids it, huge pages) never
// fails; Note tells.
func Alloc(size int, o Options) (*Buffer, error) {
	if size < 0 {
		return nil, fmt.Errorf("a buffer of %d bytes cannot be made", size)
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

const (
	roomCheck = 32 << 20 // smaller buffers are not worth the reading of /proc
	sizeLimit = 1 << 46  // beyond what 64-bit machines map; keeps the arithmetic on sizes from overflowing
)

// checkRoom refuses what would be granted by the system's overcommitment and paid with a kill at
// first use.
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
	err := fmt.Errorf("%w: %s were asked for and %s available to this process", ErrNoMemory, FormatBytes(int64(size)),
		text)
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

// Bytes is the memory, at least as long as was asked for: whole pages. It must not be used after
// Free.
func (b *Buffer) Bytes() []byte { return b.data }

// Float32s is the memory seen as floats.
func (b *Buffer) Float32s() []float32 { return float32s(b.data) }

// Pointer is the address of the first byte.
func (b *Buffer) Pointer() unsafe.Pointer { return unsafe.Pointer(unsafe.SliceData(b.data)) }

// Len is the length in bytes of Bytes.
func (b *Buffer) Len() int { return len(b.data) }

// Node is the NUMA node asked for, or AnyNode.
func (b *Buffer) Node() int { return b.node }

// Note says in one sentence what was asked for and could not be had, or is empty.
func (b *Buffer) Note() string { return b.note }

// Touch faults the pages of bytes lo to hi in without changing them. The pages of a buffer without
// a node come to be on the node of the thread that touches them first, so workers may each touch
// their own range of a shared buffer before anything is written to it. Ranges of different callers
// that share a page must not be written to meanwhile.
func (b *Buffer) Touch(lo, hi int) {
	if lo < hi && !populate(b.data[lo:hi]) {
		for at := lo &^ (pageSize - 1); at < hi; at += pageSize {
			p := (*uint32)(unsafe.Pointer(&b.data[at]))
			atomic.AddUint32(p, 0)
		}
	}
}

// Free returns the memory to the system; further calls do nothing. That it is not in use any more
// is the caller's to know: a later access ends the process.
func (b *Buffer) Free() error {
	if b.freed.Swap(true) {
		return nil
	}
	live.Add(-int64(len(b.data)))
	b.data = nil
	return b.unmap()
}

// float32s is b seen as floats; a tail shorter than a float is left out. b starts at a multiple of
// 4, as all memory of this package does.
func float32s(b []byte) []float32 {
	return unsafe.Slice((*float32)(unsafe.Pointer(unsafe.SliceData(b))), len(b)/4)
}

// FormatBytes writes a size for people: 3.1 GiB.
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

// FormatNodes writes bytes by node and the share that lies on another node than asked for: node 0
// 1.2 GiB, node 1 1.1 GiB, 0.0 % remote.
func FormatNodes(on map[int]int64, remote float64) string {
	var parts []string
	for _, node := range slices.Sorted(maps.Keys(on)) {
		parts = append(parts, fmt.Sprintf("node %d %s", node, FormatBytes(on[node])))
	}
	return fmt.Sprintf("%s, %.1f %% remote", strings.Join(parts, ", "), 100*remote)
}
