package exec

import (
	"unsafe"

	"sandwich/microkernel"
	"sandwich/runtime/pool"
)

// apartBytes is the memory that a worker needs to compute tiles and ranges of a cut apart: with the
// numbers of the blocks it reads, since a sequence that goes on without the worker may end.
func (c *cut) apartBytes(blocks int) int {
	tile := 4 * attentionTile * c.group * c.layout.HeadDim
	if tile > apartMost {
		return 0
	}
	bytes := max(tile, leastApartStates*c.state) + c.tableBytes(blocks)
	return (bytes + 4095) / 4096 * 4096
}

// leastApartStates is how many states of a range there is room for. Longer ranges are not computed
// apart.
const leastApartStates = 1 + 4*leastRange

// tableBytes is the memory for the numbers of so many blocks, in whole cache lines.
func (c *cut) tableBytes(blocks int) int { return (4*blocks + cacheLine - 1) / cacheLine * cacheLine }

// tileBytes is what a job puts out.
func (c *cut) tileBytes(job *microkernel.AttentionJob) int {
	return 4 * job.Tokens * job.Group * c.layout.HeadDim
}

// detach lets a job read the numbers of blocks [from, to) from the worker's own memory, and returns
// what follows them there.
func (c *cut) detach(p *kvRange, job *microkernel.AttentionJob, own unsafe.Pointer) unsafe.Pointer {
	table := unsafe.Slice((*int32)(own), p.to)
	copy(table[p.from:], unsafe.Slice(job.Table, p.to)[p.from:])
	job.Table, job.Next = &table[0], nil
	return unsafe.Add(own, c.tableBytes(p.to))
}

// runApart is a tile of a worker that may lose its CPU.
func (c *cut) runApart(w *pool.Worker, p *kvRange, job *microkernel.AttentionJob, scratch, own unsafe.Pointer) {
	out, stride := job.Out, job.OutStride
	row := job.Group * c.layout.HeadDim
	job.Out = (*float32)(c.detach(p, job, own))
	job.OutStride = row
	offer(w)
	c.fused[w.Class()].Run(job, scratch)
	commit(w)
	copyRows(out, stride, job.Out, row, job.Tokens, row)
}

// rangeApart is a range of one: its states are copied to where they are merged from.
func (c *cut) rangeApart(w *pool.Worker, p *kvRange, job *microkernel.AttentionJob,
	states *microkernel.AttentionStates, scratch, own unsafe.Pointer) {
	table := job.Table
	mine := microkernel.AttentionStates{Memory: c.detach(p, job, own), First: states.First}
	each := c.ranged[w.Class()].StateBytes(job.Tokens * job.Group)
	from, to, n := 0, 0, 1 // states
	if p.from >= states.First {
		mine.First = p.from
		from, to, n = 1, 1+p.from-states.First, p.to-p.from
	}
	offer(w)
	c.ranged[w.Class()].RunRange(job, &mine, p.from, p.to, scratch)
	commit(w)
	copy(unsafe.Slice((*byte)(unsafe.Add(states.Memory, to*each)), n*each),
		unsafe.Slice((*byte)(unsafe.Add(mine.Memory, from*each)), n*each))
	job.Table = table
}
