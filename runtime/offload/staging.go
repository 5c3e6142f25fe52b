package offload

import (
	"slices"

	"sandwich/runtime/device"
	"sandwich/runtime/kvcache"
	"sandwich/runtime/model"
)

// stagedBlock is a block of a layer that is copied between both caches through a staging buffer.
type stagedBlock struct {
	op     int // that writes it
	layer  int
	block  int
	at     uint64 // in the staging buffer
	length int
}

// blocksOf lists the blocks of a batch that each op writes, in the order of ops. Staged one after
// the other they need that many bytes.
func (r *Runner) blocksOf(segments func(store int) []kvcache.BlockID) (list []stagedBlock, bytes uint64) {
	for i := range r.model.Ops {
		op := &r.model.Ops[i]
		if op.Kind != model.OpRotate || op.KVLayer != op.Layer {
			continue
		}
		length := r.kv.Place(op.Layer).Block // a multiple of alignment, see checkAlignment
		for _, block := range segments(r.layers.Of[op.Layer]) {
			list = append(list, stagedBlock{op: i, layer: op.Layer, block: int(block), at: bytes, length: length})
			bytes += uint64(length)
		}
	}
	return list, bytes
}

// between returns the blocks that the ops [from, to) write.
func between(list []stagedBlock, from, to int) []stagedBlock {
	first, _ := slices.BinarySearchFunc(list, from, func(b stagedBlock, op int) int { return b.op - op })
	last, _ := slices.BinarySearchFunc(list, to, func(b stagedBlock, op int) int { return b.op - op })
	return list[first:last]
}

// copies returns the copies of blocks from a staging buffer to the device's cache, or back. Blocks
// that follow each other in both are one copy. Drivers make one command of copies between the same
// two buffers.
func (r *Runner) copies(list []stagedBlock, stage device.Slice, toStage bool) (steps []device.Step) {
	var last device.Copy
	for i := range list {
		b := &list[i]
		c := device.Copy{To: device.Slice{Buffer: r.mem.kv.Buffer, Offset: b.place(r)},
			From: device.Slice{Buffer: stage.Buffer, Offset: b.at}, Bytes: uint64(b.length)}
		if toStage {
			c.To, c.From = c.From, c.To
		}
		if i > 0 && c.To.Offset == last.To.Offset+last.Bytes && c.From.Offset == last.From.Offset+last.Bytes {
			last.Bytes += c.Bytes
			steps[len(steps)-1] = last
			continue
		}
		last = c
		steps = append(steps, c)
	}
	return steps
}

// place returns the place of a block in the device's KV cache.
func (b *stagedBlock) place(r *Runner) uint64 {
	p := r.kv.Place(b.layer)
	return uint64(p.First + b.block*p.Block)
}

// memory returns the memory of a block in the cores' cache.
func (b *stagedBlock) memory(r *Runner) []byte {
	return r.kv.Block(b.layer, kvcache.BlockID(b.block))[:b.length]
}

// scatter copies blocks from a staging buffer that the device has written to the cores' cache. It
// reads a buffer that is not host-visible at once.
func (r *Runner) scatter(list []stagedBlock, stage device.Slice) error {
	if len(list) == 0 {
		return nil
	}
	from, begin := stage.Buffer.Host(), uint64(0)
	if from == nil {
		end := list[len(list)-1]
		begin = list[0].at
		from = make([]byte, end.at+uint64(end.length)-begin)
		if err := r.dev.Read(stage.Buffer, begin, from); err != nil {
			return err
		}
	}
	for i := range list {
		b := &list[i]
		copy(b.memory(r), from[b.at-begin:])
	}
	return nil
}

// gather copies blocks from the cores' cache to a staging buffer.
func (r *Runner) gather(list []stagedBlock, stage device.Slice) error {
	to := stage.Buffer.Host()
	hostVisible := to != nil
	if !hostVisible {
		end := list[len(list)-1]
		to = make([]byte, end.at+uint64(end.length))
	}
	for i := range list {
		copy(to[list[i].at:], list[i].memory(r))
	}
	if hostVisible {
		return nil
	}
	return r.dev.Write(stage.Buffer, 0, to)
}
