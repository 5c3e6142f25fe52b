package offload

import (
	"encoding/binary"
	"fmt"
	"slices"

	"sandwich/microkernel"
	"sandwich/microkernel/devgen/kernels"
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
	gathers  bool         // kernels can copy single rows
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

// copiesRows reports whether the keys and values of batches of so many rows are copied row by row,
// which moves less than whole blocks.
func (c *blockCopier) copiesRows(rows int) bool { return c.gathers && rows < minStatic }

// canGather reports whether the kernels that copy rows support the heads of all layers.
func (c *blockCopier) canGather() bool {
	for i := range c.model.Ops {
		if op := &c.model.Ops[i]; op.Kind == model.OpRotate && op.Heads.Dim%8 != 0 {
			return false
		}
	}
	return !c.shared
}

func gatherOf(op *model.Op) kernels.GatherKV { return kernels.GatherKV{HeadDim: op.Heads.Dim} }

// rows appends the rows of a batch that each op writes, as one entry per layer, in the order of
// ops. Staged one after the other they need that many bytes.
func (c *blockCopier) rows(list []stagedBlock, rows int) ([]stagedBlock, uint64) {
	bytes := uint64(0)
	for i := range c.model.Ops {
		op := &c.model.Ops[i]
		if op.Kind != model.OpRotate || op.KVLayer != op.Layer || c.onCores.Has(i) {
			continue
		}
		length := 4 * rows * op.Heads.KV * gatherOf(op).Words() // a multiple of alignment
		list = append(list, stagedBlock{op: i, layer: op.Layer, at: bytes, length: length})
		bytes += uint64(length)
	}
	return list, bytes
}

// maxGathered limits the distance of the layers that one kernel copies, in words.
const maxGathered = 1 << 30

// alike returns how many of the first layers of a list one kernel can copy, and the words of the
// cache from one layer to the next.
func (c *blockCopier) alike(list []stagedBlock) (n, layerWords int) {
	first := c.kv.Place(list[0].layer)
	for n = 1; n < len(list); n++ {
		p, last := c.kv.Place(list[n].layer), c.kv.Place(list[n-1].layer)
		distance := (p.First - last.First) / 4
		if p.Layout != first.Layout || p.Head != first.Head || p.Block != first.Block || distance < 0 ||
			c.layers.Of[list[n].layer] != c.layers.Of[list[0].layer] || list[n].length != list[0].length ||
			n > 1 && distance != layerWords || (p.First-first.First)/4 > maxGathered {
			break
		}
		layerWords = distance
	}
	return n, layerWords
}

// scatterRows copies rows from a staging buffer that the device has written to the cores' cache. It
// returns ErrResult if a key or a value is not finite.
func (c *blockCopier) scatterRows(list []stagedBlock, stage device.Slice, stores []storeInputs) error {
	if len(list) == 0 {
		return nil
	}
	begin := list[0].at
	from, err := c.staged(list, stage)
	if err != nil {
		return err
	}
	for i := range list {
		b := &list[i]
		p := c.kv.Place(b.layer)
		dim, heads := p.Layout.HeadDim, p.Block/p.Head
		words := kernels.GatherKV{HeadDim: dim}.Words()
		for _, g := range stores[c.layers.Of[b.layer]].list {
			block := c.kv.Block(b.layer, g.Block)
			for row := range g.N {
				for head := range heads {
					at := int(b.at-begin) + 4*words*((g.Row+row)*heads+head)
					if !putRow(block[head*p.Head:][:p.Head], dim, g.Pos%kvcache.BlockTokens+row, from[at:][:4*words]) {
						return fmt.Errorf("%w: layer %d has keys or values that are not finite", ErrResult, b.layer)
					}
				}
			}
		}
	}
	return nil
}

// putRow copies the keys and values of a head, as kernels.GatherKV stores them, to a position of
// its K and V block, and reports whether all are finite.
func putRow(block []byte, dim, position int, row []byte) (finite bool) {
	const panel = microkernel.PanelWidth // positions of keys, dimensions of values
	const exponents, ones, carries = 0x7C007C00_7C007C00, 0x04000400_04000400, 0x80008000_80008000
	carried := uint64(0)
	keys := block[2*(position/panel*panel*dim+position%panel):]
	for d := 0; d < dim; d += 4 {
		four := binary.LittleEndian.Uint64(row[2*d:])
		carried |= four&exponents + ones
		at := keys[2*panel*d:]
		binary.LittleEndian.PutUint16(at, uint16(four))
		binary.LittleEndian.PutUint16(at[2*panel:], uint16(four>>16))
		binary.LittleEndian.PutUint16(at[4*panel:], uint16(four>>32))
		binary.LittleEndian.PutUint16(at[6*panel:], uint16(four>>48))
	}
	values := block[2*kvcache.BlockTokens*dim:]
	for d, row := 0, row[2*dim:]; d < len(row)/2; d += panel {
		copy(values[2*(d*kvcache.BlockTokens+position*panel):], row[2*d:][:2*panel])
	}
	for d, row := 0, row[2*dim:]; d < len(row)/2; d += 4 {
		carried |= binary.LittleEndian.Uint64(row[2*d:])&exponents + ones
	}
	return carried&carries == 0
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
	from, err := c.staged(list, stage)
	if err != nil {
		return err
	}
	return divide(len(list), minCopied, func(first, end int) error {
		for i := first; i < end; i++ {
			copy(list[i].memory(c), from[list[i].at-list[0].at:])
		}
		return nil
	})
}

// minCopied is the least number of blocks that a goroutine copies.
const minCopied = 4

// staged returns the staging buffer from the first entry of a list to its last one. It reads a
// buffer that is not host-visible.
func (c *blockCopier) staged(list []stagedBlock, stage device.Slice) ([]byte, error) {
	begin, last := list[0].at, &list[len(list)-1]
	end := last.at + uint64(last.length)
	if host := stage.Buffer.Host(); host != nil {
		return host[begin:end], nil
	}
	data := make([]byte, end-begin)
	return data, c.dev.Read(stage.Buffer, begin, data)
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
