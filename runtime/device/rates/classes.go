package rates

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"

	"sandwich/microkernel"
	"sandwich/microkernel/devgen"
	"sandwich/microkernel/devgen/kernels"
	"sandwich/profiles/devrates"
	"sandwich/runtime/device"
)

// Sizes of the runs.
const (
	manyRows  = 256
	longest   = 0.02 // seconds of a compute-bound run, about
	maxBytes  = 128 << 20
	fewSteps  = 4
	manySteps = 32
	minSteps  = 64 // launches of the smallest kernel
)

// shape is the size of a weight matrix.
type shape struct{ n, k int }

// productShapes are tried until a product takes too long: larger ones occupy more of a large
// device.
var productShapes = []shape{{256, 256}, {512, 512}, {2048, 1024}, {8192, 2048}}

// product measures products of one row, of many rows, and of the smallest size.
func (m *meter) product(p Product) (c devrates.Class, err error) {
	s := productShapes[0]
	var compute float64
	for i, try := range productShapes {
		if i > 0 && compute*float64(try.n*try.k)/float64(s.n*s.k) > longest {
			break
		}
		s = try
		steps := fewSteps
		if compute > longest/fewSteps {
			steps = 1
		}
		if compute, err = m.multiply(p, s, manyRows, steps); err != nil {
			return c, err
		}
	}
	memory, err := many(manySteps, func(steps int) (float64, error) { return m.multiply(p, s, 1, steps) })
	if err != nil {
		return c, err
	}
	c.LeastSeconds, err = many(minSteps, func(steps int) (float64, error) {
		return m.multiply(p, shape{64, 256}, 1, steps)
	})
	if err != nil {
		return c, err
	}
	flop, bytes := ProductWork(p, 1, s.n, s.k)
	c.MemoryIntensity, c.BytesPerSecond = flop/bytes, bytes/memory
	flop, bytes = ProductWork(p, manyRows, s.n, s.k)
	c.ComputeIntensity, c.FLOPPerSecond = flop/bytes, flop/compute
	return c, nil
}

// many measures the time of a launch by few launches, and by more if they take little time.
func many(steps int, of func(steps int) (float64, error)) (float64, error) {
	took, err := of(fewSteps)
	if err != nil || took*float64(steps) > longest {
		return took, err
	}
	return of(steps)
}

// ProductWork returns the FLOP of a product and the bytes that it moves.
func ProductWork(p Product, rows, n, k int) (flop, bytes float64) {
	weights := microkernel.Layout{Type: p.Type, N: n, K: k}.Bytes()
	return 2 * float64(rows) * float64(n) * float64(k), float64(weights) + 4*float64(rows)*float64(n+k)
}

// multiply returns the time of a product of rows. Each launch reads another copy of the weights, as
// far as memory allows, so that caches do not hold them.
func (m *meter) multiply(p Product, s shape, rows, steps int) (float64, error) {
	g := kernels.GEMM{Weight: p.Type, Path: p.Path}.For(rows, m.matrixUnit)
	layout := microkernel.Layout{Type: p.Type, N: s.n, K: s.k}
	weights := (uint64(layout.Bytes()) + 255) / 256 * 256
	limit := uint64(maxBytes)
	if free := m.device.Info().FreeBytes; free > 0 {
		limit = min(limit, free/4)
	}
	copies := max(1, min(uint64(steps), limit/weights))
	aStride := p.Path.ActRowBytes(s.k) / 4
	return m.run(g.Kernel, g.Grid(rows, s.n), steps,
		map[string]uint64{"a": 4 * uint64(rows*aStride), "w": weights * copies, "c": 4 * uint64(rows*s.n)},
		map[string]any{"m": rows, "n": s.n, "k": s.k, "a_stride": aStride, "w_stride": layout.PanelStride() / 4,
			"c_stride": s.n}, func(step int) (string, uint64) { return "w", weights * (uint64(step) % copies) })
}

// Sizes of the attention that is measured, those of a common model.
const (
	headDim   = 64
	kvHeads   = 8
	group     = 4
	positions = 1024
)

// AttentionWork returns the FLOP of the attention of rows that each see so many positions, and the
// bytes of keys and values that they read. Rows are those of one sequence.
func AttentionWork(rows, seen, heads, kvHeads, dim int) (flop, bytes float64) {
	flop = 4 * float64(rows) * float64(seen) * float64(heads) * float64(dim)
	return flop, 4*float64(seen)*float64(kvHeads)*float64(dim) + 8*float64(rows)*float64(heads)*float64(dim)
}

func (m *meter) attention() (c devrates.Class, err error) {
	memory, err := m.attend(1, positions, fewSteps)
	if err != nil {
		return c, err
	}
	rows := manyRows
	for rows > 16 && memory*float64(rows)/4 > longest {
		rows /= 2
	}
	compute, err := m.attend(rows, positions, 1)
	if err != nil {
		return c, err
	}
	c.LeastSeconds, err = many(minSteps, func(steps int) (float64, error) { return m.attend(1, 1, steps) })
	if err != nil {
		return c, err
	}
	flop, bytes := AttentionWork(1, positions, kvHeads*group, kvHeads, headDim)
	c.MemoryIntensity, c.BytesPerSecond = flop/bytes, bytes/memory
	flop, bytes = AttentionWork(rows, positions-rows/2, kvHeads*group, kvHeads, headDim)
	c.ComputeIntensity, c.FLOPPerSecond = flop/bytes, flop/compute
	return c, nil
}

// attend returns the time of attention of the last rows of a sequence of so many positions.
func (m *meter) attend(rows, length, steps int) (took float64, err error) {
	const head = microkernel.KVBlock * headDim // words of the K and V block of a head
	blocks := (length + microkernel.KVBlock - 1) / microkernel.KVBlock
	stride := kvHeads * group * headDim
	measure := func(kernel func() (*devgen.Kernel, error), groups [3]int) {
		if err != nil {
			return
		}
		var t float64
		t, err = m.run(kernel, groups, steps, map[string]uint64{"q": 4 * uint64(rows*stride),
			"out": 4 * uint64(rows*stride), "kv": 4 * head * kvHeads * uint64(blocks), "tables": 4 * uint64(blocks),
			"sequences": 16, "parts": 4 * uint64(blocks*kvHeads*group*kernels.PartWords(headDim))},
			map[string]any{"q_stride": stride, "out_stride": stride, "group": group, "head_words": head,
				"block_words": head * kvHeads, "scale": float32(0.125), "kv_heads": kvHeads, "blocks": blocks}, nil,
			contents{"sequences", []uint32{0, uint32(rows), uint32(length - rows), 0}},
			contents{"tables", ascending(blocks)})
		took += t
	}
	if rows > 1 {
		a := kernels.Attention{HeadDim: headDim, Rows: 8}
		measure(a.Kernel, a.Grid(rows, group, kvHeads, 1))
		return took, err
	}
	part := kernels.AttentionPart{HeadDim: headDim, Rows: group}
	merge := kernels.AttentionMerge{HeadDim: headDim, Rows: group}
	measure(part.Kernel, part.Grid(blocks, kvHeads, 1))
	measure(merge.Kernel, merge.Grid(kvHeads, 1))
	return took, err
}

func ascending(n int) (list []uint32) {
	for i := range n {
		list = append(list, uint32(i))
	}
	return list
}

// width is the number of elements of the rows that are measured.
const width = 2048

// RowsWork returns the FLOP and bytes of a kernel of class Rows.
func RowsWork(rows, n int) (flop, bytes float64) {
	elements := float64(rows) * float64(n)
	return 4 * elements, 8 * elements
}

// rows measures norms: of many rows, which determine both rates, and of one.
func (m *meter) rows() (c devrates.Class, err error) {
	took, err := m.normalize(manyRows, fewSteps)
	if err != nil {
		return c, err
	}
	c.LeastSeconds, err = many(minSteps, func(steps int) (float64, error) { return m.normalize(1, steps) })
	if err != nil {
		return c, err
	}
	flop, bytes := RowsWork(manyRows, width)
	c.MemoryIntensity, c.BytesPerSecond = flop/bytes, bytes/took
	c.ComputeIntensity, c.FLOPPerSecond = flop/bytes, flop/took
	return c, nil
}

func (m *meter) normalize(rows, steps int) (float64, error) {
	k := kernels.Norm{Norm: true, Float: true}.For(width)
	return m.run(k.Kernel, k.Grid(width, rows), steps,
		map[string]uint64{"x": 4 * uint64(rows*width), "weight": 4 * width, "out": 4 * uint64(rows*width)},
		map[string]any{"n": width, "x_stride": width, "out_stride": width, "quantized_stride": 0, "eps": float32(1e-5)},
		nil)
}

// contents are the words of a buffer, which is zero otherwise.
type contents struct {
	name  string
	words []uint32
}

// run compiles a kernel and returns the time of a launch, of several in one submission. moving
// returns a binding and its offset for each of them; it may be nil.
func (m *meter) run(kernel func() (*devgen.Kernel, error), groups [3]int, steps int, sizes map[string]uint64,
	push map[string]any, moving func(step int) (string, uint64), fill ...contents) (took float64, err error) {
	k, err := kernel()
	if err != nil {
		return 0, fmt.Errorf("%w: %w", device.ErrRefused, err)
	}
	program, err := m.device.Compile(k)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, program.Free()) }()
	buffers := map[string]device.Buffer{}
	defer func() {
		for _, b := range buffers {
			err = errors.Join(err, b.Free())
		}
	}()
	for name, bytes := range sizes {
		if buffers[name], err = m.device.Alloc((bytes+255)/256*256, device.DeviceLocal); err != nil {
			delete(buffers, name)
			return 0, err
		}
	}
	for _, c := range fill {
		if err := m.device.Write(buffers[c.name], 0, littleEndian(c.words)); err != nil {
			return 0, err
		}
	}
	list := make([]device.Launch, steps)
	for i := range list {
		l := device.Launch{Program: program, Groups: groups}
		for _, b := range k.Bindings {
			s := device.Slice{Buffer: buffers[b.Name]}
			if moving != nil {
				if name, at := moving(i); name == b.Name {
					s.Offset = at
				}
			}
			l.Buffers = append(l.Buffers, s)
		}
		for _, name := range k.Push {
			l.Push = append(l.Push, wordOf(push[name]))
		}
		list[i] = l
	}
	return m.seconds(list...)
}

// wordOf returns the bits of a push word.
func wordOf(x any) uint32 {
	switch x := x.(type) {
	case float32:
		return math.Float32bits(x)
	case int:
		return uint32(x)
	}
	return 0
}

func littleEndian(words []uint32) (data []byte) {
	for _, w := range words {
		data = binary.LittleEndian.AppendUint32(data, w)
	}
	return data
}
