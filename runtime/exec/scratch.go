package exec

import (
	"unsafe"

	"sandwich/runtime/mem"
	"sandwich/runtime/model"
)

// gemmScratch is the memory a worker needs for any product of the rank.
func (r *rank) gemmScratch(rows int) (most int) {
	for class := range 1 + len(r.others) {
		for _, g := range r.of(class) {
			if g != nil {
				most = max(most, g.scratchBytes)
			}
		}
	}
	for i := range r.shard.model.Ops {
		switch op := &r.shard.model.Ops[i]; {
		case op.Kind == model.OpConv:
			most = max(most, convScratch(op))
		case op.Table != nil:
			most = max(most, 4*op.Table.N)
		case gated(op) && len(op.W) > 0:
			most = max(most, r.pairScratch(op, rows))
		case op.Kind == model.OpMatMul:
			most = max(most, r.sumScratch(op, rows))
		}
	}
	return most
}

// allocateScratch gives each worker its own, on the node of its rank.
func (e *Executor) allocateScratch(p *Shards, pus []int) error {
	gemm := 0
	for r := range e.ranks {
		gemm = max(gemm, e.ranks[r].gemmScratch(e.bufs.rows))
		e.apartBytes = max(e.apartBytes, e.ranks[r].apartBytes(e.bufs.rows))
	}
	gemm = gemm/4096*4096 + 4096
	each := gemm + e.apartBytes
	e.scratch = make([]workerScratch, len(pus))
	for r := range e.ranks {
		var workers []int
		for index, pu := range pus {
			if p.rankOf(pu) == r {
				workers = append(workers, index)
			}
		}
		memory, err := mem.Alloc(each*len(workers), mem.Options{Node: p.list[r].node, Huge: true,
			Touch: p.list[r].node != mem.AnyNode})
		if err != nil {
			return err
		}
		e.memory = append(e.memory, memory)
		for i, index := range workers {
			e.scratch[index].gemm = unsafe.Add(memory.Pointer(), i*each)
			e.scratch[index].apart = unsafe.Add(memory.Pointer(), i*each+gemm)
		}
	}
	return nil
}
