package attention

import (
	"unsafe"

	"sandwich/microkernel"
	"sandwich/runtime/exec/internal/raw"
	"sandwich/runtime/exec/tp"
	"sandwich/runtime/pool"
)

// minPrivateStates is the number of states of a chunk that fit the private buffer. Longer chunks
// are computed in place.
const minPrivateStates = 1 + 4*minChunk

// privateBytes returns the private memory that a worker needs for segments and chunks of a form. It
// includes their block numbers, because a sequence may end while a descheduled worker still reads
// it.
func (f *form) privateBytes(blocks int) int {
	segment := 4 * maxSegmentRows * f.group * f.layout.HeadDim
	if segment > tp.MostPrivate {
		return 0
	}
	bytes := max(segment, minPrivateStates*f.state) + f.tableBytes(blocks)
	return (bytes + 4095) / 4096 * 4096
}

// tableBytes returns the memory for so many block numbers, in entire cache lines.
func (f *form) tableBytes(blocks int) int { return raw.Lines(4 * blocks) }

// outBytes returns the size of the results of a job.
func (f *form) outBytes(job *microkernel.AttentionJob) int {
	return 4 * job.Tokens * job.Group * f.layout.HeadDim
}

// detach makes a job read the numbers of the blocks of a chunk from private memory, and returns the
// memory after them.
func (f *form) detach(c *chunk, job *microkernel.AttentionJob, own unsafe.Pointer) unsafe.Pointer {
	table := unsafe.Slice((*int32)(own), c.to)
	copy(table[c.from:], unsafe.Slice(job.Table, c.to)[c.from:])
	job.Table, job.Next = &table[0], nil
	return unsafe.Add(own, f.tableBytes(c.to))
}

// runPrivate computes an entire segment that others may reclaim.
func (f *form) runPrivate(w *pool.Worker, c *chunk, job *microkernel.AttentionJob, scratch, own unsafe.Pointer) {
	out, stride := job.Out, job.OutStride
	row := job.Group * f.layout.HeadDim
	job.Out = (*float32)(f.detach(c, job, own))
	job.OutStride = row
	tp.Offer(w)
	f.fused[w.Class()].Run(job, scratch)
	tp.Commit(w)
	raw.CopyRows(out, stride, job.Out, row, job.Tokens, row)
}

// splitPrivate computes a chunk of a split segment that others may reclaim, and copies its states
// to where they are merged.
func (f *form) splitPrivate(w *pool.Worker, c *chunk, job *microkernel.AttentionJob,
	states *microkernel.AttentionStates, scratch, own unsafe.Pointer) {
	table := job.Table
	mine := microkernel.AttentionStates{Memory: f.detach(c, job, own), First: states.First}
	each := f.ranged[w.Class()].StateBytes(job.Tokens * job.Group)
	from, to, n := 0, 0, 1 // states
	if c.from >= states.First {
		mine.First = c.from
		from, to, n = 1, 1+c.from-states.First, c.to-c.from
	}
	tp.Offer(w)
	f.ranged[w.Class()].RunRange(job, &mine, c.from, c.to, scratch)
	tp.Commit(w)
	copy(unsafe.Slice((*byte)(unsafe.Add(states.Memory, to*each)), n*each),
		unsafe.Slice((*byte)(unsafe.Add(mine.Memory, from*each)), n*each))
	job.Table = table
}
