package kernels

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"unsafe"

	"sandwich/microkernel"
	"sandwich/microkernel/internal/ref"
)

const block = microkernel.KVBlock

// cache is a KV cache of one layer.
type cache struct {
	layout      microkernel.KVLayout
	heads       int
	memory      []byte
	headBytes   int // K and V block of a head
	blockBytes  int // of all heads
	blocks      int
	numbers     []int // of the blocks of the sequence
	firstInList int   // where the list begins in the table
}

func newCache(r *rand.Rand, dim, heads, positions int) *cache {
	c := &cache{layout: microkernel.KVLayout{HeadDim: dim, Elem: microkernel.KVF16}, heads: heads}
	c.headBytes = c.layout.KBytes() + c.layout.VBytes()
	c.blockBytes = heads * c.headBytes
	need := (positions + block - 1) / block
	c.blocks = need + 2
	c.numbers = r.Perm(c.blocks)[:need]
	c.firstInList = r.IntN(3)
	c.memory = words(c.blocks * c.blockBytes / 4)
	return c
}

// at returns the K block and the V block of a head.
func (c *cache) at(memory []byte, number, head int) (k, v unsafe.Pointer) {
	k = unsafe.Pointer(&memory[number*c.blockBytes+head*c.headBytes])
	return k, unsafe.Add(k, c.layout.KBytes())
}

// table returns the block table.
func (c *cache) table() []byte {
	b := words(c.firstInList + len(c.numbers))
	for i, n := range c.numbers {
		binary.LittleEndian.PutUint32(b[4*(c.firstInList+i):], uint32(n))
	}
	return b
}

// fill stores random keys and values of positions [0, n).
func (c *cache) fill(r *rand.Rand, n int) {
	for pos := range n {
		c.store(pos, floats(randomFloats(r, 2*c.layout.HeadDim)))
	}
}

// store stores the key and the value of a position in every head.
func (c *cache) store(pos int, x []float32) {
	for head := range c.heads {
		k, v := c.at(c.memory, c.numbers[pos/block], head)
		microkernel.RefVec().StoreK(c.layout, k, pos%block, &x[0], 1, 0)
		microkernel.RefVec().StoreV(c.layout, v, pos%block, &x[c.layout.HeadDim], 1, 0)
	}
}

func wordsOf(list ...int) []byte {
	b := words(len(list))
	for i, x := range list {
		binary.LittleEndian.PutUint32(b[4*i:], uint32(x))
	}
	return b
}

func TestRotate(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 0))
	for _, o := range []Rotate{
		{HeadDim: 64, Rotated: 64, Neox: true}, {HeadDim: 64, Rotated: 64},
		{HeadDim: 40, Rotated: 24, Neox: true, QNorm: true, KNorm: true},
		{HeadDim: 128, Rotated: 128, Neox: true, KNorm: true},
		{HeadDim: 16},
	} {
		t.Run(fmt.Sprint(o), func(t *testing.T) { testRotate(t, r, o) })
	}
	for _, o := range []Rotate{{}, {HeadDim: 8, Rotated: 10}, {HeadDim: 8, Rotated: 3}, {HeadDim: 2000}} {
		if k, err := o.Kernel(); err == nil {
			t.Errorf("%+v gives %s, want an error", o, k.Name)
		}
	}
}

func testRotate(t *testing.T, r *rand.Rand, o Rotate) {
	const qHeads, kvHeads, rows, eps = 3, 2, 9, float32(1e-6)
	dim := o.HeadDim
	// Rows 1 to 3 are positions 5 to 7 of a block, rows 4 to 8 positions 2 to 6 of another.
	segments := [][4]int{{1, 3, 5, 2}, {4, 5, 2, 0}}
	c := newCache(r, dim, kvHeads, 2*block)
	qRow, kRow, vRow, angleRow := qHeads*dim+1, kvHeads*dim+2, kvHeads*dim, o.Rotated+2
	q, k, v := randomFloats(r, rows*qRow), randomFloats(r, rows*kRow), randomFloats(r, rows*vRow)
	angles, qNorm, kNorm := randomFloats(r, rows*angleRow), randomFloats(r, dim), randomFloats(r, dim)

	vec := microkernel.RefVec()
	wantQ, wantKV, keys := bytes.Clone(q), bytes.Clone(c.memory), bytes.Clone(k)
	var list []int
	for _, s := range segments {
		list = append(list, s[:]...)
		for i := range s[1] {
			row := s[0] + i
			qs, ks, vs := &floats(wantQ)[row*qRow], &floats(keys)[row*kRow], &floats(v)[row*vRow]
			if o.QNorm {
				vec.RMSNormRows(qs, dim, qs, dim, qHeads, &floats(qNorm)[0], dim, eps)
			}
			if o.KNorm {
				vec.RMSNormRows(ks, dim, ks, dim, kvHeads, &floats(kNorm)[0], dim, eps)
			}
			vec.RoPE(qs, o.Rotated, qHeads, dim, &floats(angles)[row*angleRow], o.Neox)
			vec.RoPE(ks, o.Rotated, kvHeads, dim, &floats(angles)[row*angleRow], o.Neox)
			for head := range kvHeads {
				kb, vb := c.at(wantKV, s[3], head)
				at := uintptr(4 * head * dim)
				vec.StoreK(c.layout, kb, s[2]+i, (*float32)(unsafe.Add(unsafe.Pointer(ks), at)), 1, 0)
				vec.StoreV(c.layout, vb, s[2]+i, (*float32)(unsafe.Add(unsafe.Pointer(vs), at)), 1, 0)
			}
		}
	}
	kernel, err := o.Kernel()
	d := call{kernel: build(t, kernel, err), grid: o.Grid(qHeads, kvHeads, len(segments)),
		buffers: [][]byte{q, k, v, angles},
		push:    pushed(qRow, kRow, vRow, angleRow, qHeads, kvHeads, c.headBytes/4, c.blockBytes/4, eps)}
	if o.QNorm {
		d.buffers = append(d.buffers, qNorm)
	}
	if o.KNorm {
		d.buffers = append(d.buffers, kNorm)
	}
	d.buffers = append(d.buffers, c.memory, wordsOf(list...))
	d.check(t, "q", wantQ)
	d.check(t, "kv", wantKV)
}

func TestAttention(t *testing.T) {
	for i, o := range []Attention{
		{HeadDim: 16, Rows: 4}, {HeadDim: 64, Rows: 4}, {HeadDim: 40, Rows: 3}, {HeadDim: 128, Rows: 8},
		{HeadDim: 80, Rows: 1, Softcap: true},
		{HeadDim: 16, Rows: 4, Window: true}, {HeadDim: 24, Rows: 5, Window: true, Softcap: true},
		{HeadDim: 32, Rows: 4, Sinks: true}, {HeadDim: 192, Rows: 2}, {HeadDim: 16, Rows: 5, Window: true, Sinks: true},
	} {
		t.Run(fmt.Sprint(o), func(t *testing.T) {
			r := rand.New(rand.NewPCG(6, uint64(i)))
			testAttention(t, r, o, 0, 5)          // from the start
			testAttention(t, r, o, 61, 6)         // over the border of a block
			testAttention(t, r, o, 130+i, 1)      // a decode step
			testAttention(t, r, o, 64*(1+i%2), 3) // a block begins
			testAttention(t, r, o, 63, 2)         // few rows in two blocks
			if i == 0 {
				testAttention(t, r, o, 64*65, 1) // more blocks than are merged at a time
			}
		})
	}
}

func testAttention(t *testing.T, r *rand.Rand, o Attention, pos, tokens int) {
	const kvHeads, group, row0 = 2, 3, 1
	dim, rows := o.HeadDim, row0+tokens
	c := newCache(r, dim, kvHeads, pos+tokens)
	c.fill(r, pos+tokens)
	qRow, outRow := kvHeads*group*dim+1, kvHeads*group*dim+2
	q, out := randomFloats(r, rows*qRow), words(rows*outRow)
	want := bytes.Clone(out)
	scale, window, softcap := float32(1/math.Sqrt(float64(dim))), 0, float32(0)
	if o.Window {
		window = 1 + r.IntN(90)
	}
	if o.Window && pos == 61 { // rows of a tile of which some do not visit a block that is not finite
		window = 3
		c.store(0, slices.Repeat([]float32{float32(math.Inf(1))}, 2*dim))
	}
	if o.Softcap {
		softcap = 2.5
	}
	a, err := microkernel.NewAttention(microkernel.Go, c.layout,
		microkernel.AttentionForm{Window: o.Window, Softcap: o.Softcap, Dot: microkernel.AttendF32})
	if err != nil {
		t.Fatal(err)
	}
	sinks := randomFloats(r, kvHeads*group)
	floats(sinks)[1], floats(sinks)[2] = 30, float32(math.Inf(-1)) // above all scores, and none
	table := make([]int32, len(c.numbers))
	for i, n := range c.numbers {
		table[i] = int32(n)
	}
	for head := range kvHeads {
		kb, _ := c.at(c.memory, 0, head)
		at := head * group * dim
		job := microkernel.AttentionJob{Q: &floats(q)[row0*qRow+at], QStride: qRow, Out: &floats(want)[row0*outRow+at],
			OutStride: outRow, Tokens: tokens, Group: group, Pos: pos, KV: kb, Pitch: c.blockBytes, Table: &table[0],
			Scale: scale, Window: window, Softcap: softcap}
		if o.Sinks {
			job.Sinks = &floats(sinks)[head*group]
		}
		a.Run(&job, nil)
	}
	kernel, err := o.Kernel()
	d := call{kernel: build(t, kernel, err), grid: o.Grid(tokens+1, group, kvHeads, 1),
		buffers: [][]byte{q, out, c.memory, c.table(), wordsOf(row0, tokens, pos, c.firstInList)},
		push:    pushed(qRow, outRow, group, c.headBytes/4, c.blockBytes/4, scale)}
	if o.Sinks {
		d.buffers = append(d.buffers, sinks)
	}
	if o.Window {
		d.push = append(d.push, uint32(window))
	}
	if o.Softcap {
		d.push = append(d.push, pushed(float32(2*float64(scale)/float64(softcap)), softcap)...)
	}
	d.check(t, "out", want)
	if dim%16 == 0 && tokens*group <= 8 {
		testAttentionParts(t, o, d, want, pos+tokens, tokens*group)
	}
}

// testAttentionParts runs AttentionPart and AttentionMerge instead of a call of Attention.
func testAttentionParts(t *testing.T, o Attention, d call, want []byte, positions, rows int) {
	const kvHeads = 2
	blocks := (positions+block-1)/block + 1 // one more than there are
	merge := AttentionMerge{HeadDim: o.HeadDim, Rows: rows, Window: o.Window, Sinks: o.Sinks}
	part := AttentionPart{HeadDim: o.HeadDim, Rows: rows, Window: o.Window, Softcap: o.Softcap}
	q, out, kv, table, sequences := d.buffers[0], d.buffers[1], d.buffers[2], d.buffers[3], d.buffers[4]
	parts := words(blocks * kvHeads * rows * PartWords(o.HeadDim))
	group := d.push[2]
	kernel, err := part.Kernel()
	first := call{build(t, kernel, err), part.Grid(blocks, kvHeads, 1), [][]byte{q, kv, table, sequences, parts},
		append([]uint32{d.push[0], group, kvHeads, d.push[3], d.push[4], uint32(blocks)}, d.push[5:]...)}
	kernel, err = merge.Kernel()
	second := call{build(t, kernel, err), merge.Grid(kvHeads, 1), [][]byte{parts, sequences, out},
		[]uint32{d.push[1], group, kvHeads, uint32(blocks)}}
	if o.Sinks {
		second.buffers = append(second.buffers, d.buffers[5])
	}
	if o.Window {
		second.push = append(second.push, d.push[6])
	}
	for _, by := range runners {
		second.buffers[2] = bytes.Clone(out)
		err := by.run(first, first.buffers)
		if err == nil {
			err = by.run(second, second.buffers)
		}
		switch {
		case err == nil:
			compare(t, by.name+" "+second.kernel.Name, second.buffers[2], want)
		case !errors.Is(err, errSkipped):
			t.Fatalf("%s: %v", by.name, err)
		}
	}
}

func TestAttentionRefuses(t *testing.T) {
	for _, o := range []Attention{{}, {HeadDim: 64}, {HeadDim: 64, Rows: 17}, {HeadDim: 1024, Rows: 1}} {
		if k, err := o.Kernel(); err == nil {
			t.Errorf("%+v gives %s, want an error", o, k.Name)
		}
	}
}

// TestGatherKV copies rows of two segments in two layers, the second of which begins one block
// after the first.
func TestGatherKV(t *testing.T) {
	const heads, rows, row0 = 2, 7, 1
	for _, dim := range []int{16, 40, 128} {
		r := rand.New(rand.NewPCG(7, uint64(dim)))
		c := newCache(r, dim, heads, 2*block)
		c.numbers = []int{0, 1, 2, 3}
		var x [][]float32 // by position
		for pos := range 4 * block {
			x = append(x, floats(randomFloats(r, 2*dim)))
			c.store(pos, x[pos])
		}
		segments := [][4]int{{row0, 2, 14, 2}, {row0 + 2, 4, 60, 0}}
		o := GatherKV{HeadDim: dim}
		out := words(2 * rows * heads * o.Words())
		want := bytes.Clone(out)
		var list []int
		for _, s := range segments {
			list = append(list, s[:]...)
			for i := range 2 * s[1] * heads {
				layer, row, head := i/heads/s[1], i/heads%s[1], i%heads
				at := 4 * o.Words() * ((layer*rows+s[0]+row)*heads + head)
				for d, e := range x[(s[3]+layer)*block+s[2]+row] {
					binary.LittleEndian.PutUint16(want[at+2*d:], ref.HalfFromFloat(e))
				}
				clear(want[at+4*dim : at+4*o.Words()])
			}
		}
		kernel, err := o.Kernel()
		d := call{kernel: build(t, kernel, err), grid: o.Grid(2, heads, len(segments)),
			buffers: [][]byte{c.memory, wordsOf(list...), out},
			push:    pushed(rows, heads, c.headBytes/4, c.blockBytes/4, c.blockBytes/4)}
		d.check(t, "out", want)
	}
	for _, dim := range []int{0, 7, 2000} {
		if k, err := (GatherKV{HeadDim: dim}).Kernel(); err == nil {
			t.Errorf("%d dimensions give %s, want an error", dim, k.Name)
		}
	}
}
