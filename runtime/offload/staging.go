package offload

import (
	"slices"

	"sandwich/runtime/device"
	"sandwich/runtime/exec/attention"
	"sandwich/runtime/exec/tp"
	"sandwich/runtime/kvcache"
	"sandwich/runtime/model"
	"sandwich/runtime/offload/handover"
)

// stagedBlock is a block of a layer that is copied between both caches through a staging buffer.
type stagedBlock struct {
	op     int // that writes it
	layer  int
	block  int
	at     uint64 // in the staging buffer
	length int
}

// blockCopier copies blocks between the cache of the cores and that of the device.
type blockCopier struct {
	dev      device.Device
	host     device.Usage // of staging buffers
	model    *model.Model
	layers   *tp.Layers
	kv       *attention.KVStore
	onDevice device.Slice   // the cache of the device
	shared   bool           // it is that of the cores: no block is copied
	onCores  handover.Parts // whose keys and values the device does not need
}

// of lists the blocks of a batch that each op writes, in the order of ops. Staged one after the
// other they need that many bytes.
func (c *blockCopier) of(segments func(store int) []kvcache.BlockID) (list []stagedBlock, bytes uint64) {
	if c.shared {
		return nil, 0
	}
	for i := range c.model.Ops {
		op := &c.model.Ops[i]
		if op.Kind != model.OpRotate || op.KVLayer != op.Layer || c.onCores.Has(i) {
			continue
		}
		length := c.kv.Place(op.Layer).Block // a multiple of alignment, see checkAlignment
		for _, block := range segments(c.layers.Of[op.Layer]) {
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
func (c *blockCopier) copies(list []stagedBlock, stage device.Slice, toStage bool) (steps []device.Step) {
	var last device.Copy
	for i := range list {
		b := &list[i]
		next := device.Copy{To: device.Slice{Buffer: c.onDevice.Buffer, Offset: b.place(c)},
			From: device.Slice{Buffer: stage.Buffer, Offset: b.at}, Bytes: uint64(b.length)}
		if toStage {
			next.To, next.From = next.From, next.To
		}
		if i > 0 && next.To.Offset == last.To.Offset+last.Bytes && next.From.Offset == last.From.Offset+last.Bytes {
			last.Bytes += next.Bytes
			steps[len(steps)-1] = last
			continue
		}
		last = next
		steps = append(steps, next)
	}
	return steps
}

// place returns the place of a block in the device's KV cache.
func (b *stagedBlock) place(c *blockCopier) uint64 {
	p := c.kv.Place(b.layer)
	return uint64(p.First + b.block*p.Block)
}

// memory returns the memory of a block in the cores' cache.
func (b *stagedBlock) memory(c *blockCopier) []byte {
	return c.kv.Block(b.layer, kvcache.BlockID(b.block))[:b.length]
}

// scatter copies blocks from a staging buffer that the device has written to the cores' cache. It
// reads a buffer that is not host-visible at once.
func (c *blockCopier) scatter(list []stagedBlock, stage device.Slice) error {
	if len(list) == 0 {
		return nil
	}
	from, begin := stage.Buffer.Host(), uint64(0)
	if from == nil {
		end := list[len(list)-1]
		begin = list[0].at
		from = make([]byte, end.at+uint64(end.length)-begin)
		if err := c.dev.Read(stage.Buffer, begin, from); err != nil {
			return err
		}
	}
	for i := range list {
		b := &list[i]
		copy(b.memory(c), from[b.at-begin:])
	}
	return nil
}

// gather copies blocks from the cores' cache to a staging buffer.
func (c *blockCopier) gather(list []stagedBlock, stage device.Slice) error {
	to := stage.Buffer.Host()
	hostVisible := to != nil
	if !hostVisible {
		end := list[len(list)-1]
		to = make([]byte, end.at+uint64(end.length))
	}
	for i := range list {
		copy(to[list[i].at:], list[i].memory(c))
	}
	if hostVisible {
		return nil
	}
	return c.dev.Write(stage.Buffer, 0, to)
}
