package calibrate

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"sandwich/microkernel"
	"sandwich/runtime/mem"
	"sandwich/runtime/pool"
	"sandwich/topotree"
)

// memory holds a region on each NUMA node and the parts of it that workers read.
type memory struct {
	machine *topotree.Machine
	reader  *microkernel.Reader
	regions []*region // one per node, or a single one with node mem.AnyNode
	slices  [][]byte  // read by each worker, by worker index
	flush   bool      // flush before each pass, since the last-level caches could hold a region
	reason  error     // why there are no regions
}

// region is memory on one node.
type region struct {
	node int
	cpus topotree.CPUSet
	buf  *mem.Buffer
}

func (r *region) bytes() []byte { return r.buf.Bytes() }

// worthRegion is the minimum size in bytes of the region of a node that is measured.
const worthRegion = 16 << 20

// prepareMemory maps the regions and faults them in. Nodes that cannot be measured are noted. If
// none can, reason says why.
func (f *full) prepareMemory() (*memory, error) {
	host := microkernel.Host()
	reader, err := microkernel.NewReader(host.Best(), host)
	if err != nil {
		return nil, err
	}
	m := &memory{machine: f.profile.Machine, reader: reader, slices: make([][]byte, f.pool.Size())}
	nodes := memoryNodes(m.machine)
	for _, n := range nodes {
		size := regionSize(n, len(nodes), f.reduceBytes())
		if size < worthRegion {
			f.notes = append(f.notes, fmt.Sprintf("memory node %d has too little free memory to measure", n.ID))
			continue
		}
		if !leavesCaches(size, nodeCaches(m.machine, n.CPUs)) {
			if m.flush = f.flushes; !m.flush {
				f.notes = append(f.notes, cacheNote(fmt.Sprintf("memory of node %d", n.ID), size))
			}
		}
		buf, err := mem.Alloc(size, mem.Options{Node: n.ID, Huge: true})
		if errors.Is(err, mem.ErrNoMemory) || errors.Is(err, mem.ErrNoNode) {
			f.notes = append(f.notes, fmt.Sprintf("memory node %d could not be measured: %v", n.ID, err))
			continue
		}
		if err != nil {
			m.free()
			return nil, err
		}
		r := &region{node: n.ID, cpus: n.CPUs, buf: buf}
		m.regions = append(m.regions, r)
		if err := f.fault(r); err != nil {
			m.free()
			return nil, err
		}
	}
	if len(m.regions) == 0 {
		m.reason = errors.New("there is too little free memory to read from")
	}
	return m, nil
}

// memoryNodes returns the nodes with memory, one for nodes with the same PUs. If the machine
// describes none, it returns one with node mem.AnyNode.
func memoryNodes(m *topotree.Machine) []topotree.MemoryNode {
	nodes := m.Localities()
	for _, n := range m.Memory {
		if !n.Device && n.CPUs.IsEmpty() {
			nodes = append(nodes, n)
		}
	}
	slices.SortFunc(nodes, func(a, b topotree.MemoryNode) int { return a.ID - b.ID })
	out := slices.DeleteFunc(nodes, func(n topotree.MemoryNode) bool { return n.Bytes <= 0 })
	if len(out) == 0 {
		out = append(out, topotree.MemoryNode{ID: mem.AnyNode, CPUs: m.Online})
	}
	return out
}

// regionSize returns the bytes of the region of a node. nodes is the number of nodes, and others
// the bytes that all nodes together leave for other buffers. Figures between nodes need a region on
// each node, so maxMemory applies per node. The size is also limited to a quarter of the available
// memory and of the free memory of the node.
func regionSize(n topotree.MemoryNode, nodes, others int) int {
	size := maxMemory
	if free := mem.Available(); free >= 0 {
		size = int(min(int64(size), free/4/int64(nodes)))
	}
	size -= others / nodes
	if free := mem.AvailableOn(n.ID); free >= 0 {
		size = int(min(int64(size), free/4))
	}
	return max(0, size) &^ (2*readChunk - 1)
}

// fault lets the PUs of the node, or all if it has none, touch the region.
func (f *full) fault(r *region) error {
	var workers []int
	for i, pu := range f.pool.PUs() {
		if r.cpus.IsEmpty() || r.cpus.Contains(pu) {
			workers = append(workers, i)
		}
	}
	if len(workers) == 0 {
		workers = firstWorkers(f.pool.Size()) // none of its PUs is allowed
	}
	if _, err := f.pool.SetActive(workers); err != nil {
		return err
	}
	f.pool.Run(func(w *pool.Worker) {
		lo, hi := pool.Split(r.buf.Len(), w.N(), w.ID(), 2<<20)
		r.buf.Touch(lo, hi)
	})
	return nil
}

func (m *memory) free() {
	for _, r := range m.regions {
		_ = r.buf.Free() // the caller could not handle an error
	}
}

// of returns the region nearest to a PU, or nil.
func (m *memory) of(pu int) *region {
	for _, r := range m.regions {
		if r.cpus.Contains(pu) {
			return r
		}
	}
	if len(m.regions) > 0 {
		return m.regions[0]
	}
	return nil
}

// near returns memory near a PU, which may be empty.
func (m *memory) near(pu int) []byte {
	if r := m.of(pu); r != nil {
		return r.bytes()
	}
	return nil
}

// assign divides each region among the workers nearest to it.
func (m *memory) assign(pus, workers []int) {
	sharers := map[*region][]int{}
	for _, w := range workers {
		r := m.of(pus[w])
		sharers[r] = append(sharers[r], w)
	}
	for r, list := range sharers {
		m.divide(r, list)
	}
}

// divide gives each worker its part of a region.
func (m *memory) divide(r *region, workers []int) {
	for i, w := range workers {
		lo, hi := pool.Split(len(r.bytes()), len(workers), i, readChunk)
		m.slices[w] = r.bytes()[lo:hi]
	}
}

// lastCache returns the size in bytes of the last-level cache of a PU, 0 if unknown.
func lastCache(m *topotree.Machine, pu int) int {
	for _, k := range []topotree.Kind{topotree.KindL4, topotree.KindL3, topotree.KindL2} {
		for _, o := range m.Objects {
			if o.Kind == k && o.Bytes > 0 && o.CPUs.Contains(pu) {
				return int(min(o.Bytes, math.MaxInt32))
			}
		}
	}
	return 0
}

// nodeCaches returns the total size of the last-level caches of the PUs of a memory node, or of the
// whole machine for memory without PUs.
func nodeCaches(m *topotree.Machine, cpus topotree.CPUSet) int {
	if cpus.IsEmpty() {
		cpus = m.Online
	}
	for _, k := range []topotree.Kind{topotree.KindL4, topotree.KindL3, topotree.KindL2} {
		sum := 0
		for _, o := range m.Objects {
			if o.Kind == k && o.Bytes > 0 && o.CPUs.Intersects(cpus) {
				sum += int(min(o.Bytes, math.MaxInt32))
			}
		}
		if sum > 0 {
			return sum
		}
	}
	return 0
}

// Durations and sizes of contention samples.
const (
	computeWindow = 400 * time.Microsecond
	memoryWindow  = 3 * time.Millisecond
	readChunk     = 256 << 10 // bytes per call of the reader
)
