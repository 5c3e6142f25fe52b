package calibrate

import (
	"math"
	"time"
	"unsafe"

	"sandwich/microkernel"
	"sandwich/profiles"
)

// What attention is measured on: the query heads of some tokens that share a KV head, as a chunk of
// a prompt has them, or one head of one token, the fewest rows that generation has, over blocks
// that fit a second-level cache, of half precision or, for integers, of q8_0. A call takes some 100
// microseconds, or less.
const (
	attendDim    = 128
	attendGroup  = 4
	attendTokens = 48 // times attendGroup, a multiple of the rows of every kernel
	attendBlocks = 4
	attendHead   = 4.0 * attendDim * attendBlocks * microkernel.KVBlock // FLOP of a token
)

// attendFigures are the attention of the first worker by each dot product that this CPU has; none
// where there is nothing to choose, or no generated code to choose between. Those of single tokens
// come first and follow each other: they are compared with each other, and tiles leave a slower
// clock behind.
func (b *bench) attendFigures(isa microkernel.ISA, window time.Duration) (out []*figure, err error) {
	if !isa.Generates() {
		return nil, nil
	}
	for _, test := range attendTests {
		for _, d := range microkernel.AttentionDots() {
			if !d.On(isa, microkernel.Host()) {
				continue
			}
			layout := microkernel.KVLayout{HeadDim: attendDim, Elem: profiles.AttendCache(d)}.For(d)
			a, err := microkernel.NewAttention(isa, layout, microkernel.AttentionForm{Dot: d})
			if err != nil {
				return nil, err
			}
			if !a.Native() {
				return nil, nil
			}
			work, err := b.attendWork(a, layout, isa, test.rows, window)
			if err != nil {
				return nil, err
			}
			out = append(out, &figure{workers: firstWorkers(1), work: work, ceiling: profiles.Ceiling{
				Kind: profiles.Compute, ISA: isa.String(), Type: test.typ(d), PUs: 1,
				CPUs: b.pusOf(firstWorkers(1)), Figure: profiles.Figure{Unit: "FLOP/s"}}})
		}
	}
	if len(out) <= len(attendTests) {
		return nil, nil
	}
	return out, nil
}

// attendTests are the types of its figures, and the tokens of a job and their query heads.
var attendTests = []struct {
	typ  func(microkernel.AttentionDot) string
	rows [2]int
}{
	{profiles.AttendStepType, [2]int{1, 1}},
	{profiles.AttendType, [2]int{attendTokens, attendGroup}},
}

// attendWork makes the memory of a job of so many tokens and query heads, and calls of it.
func (b *bench) attendWork(a *microkernel.Attention, l microkernel.KVLayout, isa microkernel.ISA, rows [2]int,
	window time.Duration) (func(int) float64, error) {
	v, err := microkernel.NewVec(isa)
	if err != nil {
		return nil, err
	}
	const row = attendGroup * attendDim
	pitch, size := l.KBytes()+l.VBytes(), 4*attendTokens*row
	buffer, err := b.alloc(attendBlocks*pitch+2*size+64*attendBlocks+a.ScratchBytes(), false)
	if err != nil {
		return nil, err
	}
	kv := buffer.Pointer()
	q := (*float32)(unsafe.Add(kv, attendBlocks*pitch))
	out := (*float32)(unsafe.Add(kv, attendBlocks*pitch+size))
	table := (*int32)(unsafe.Add(kv, attendBlocks*pitch+2*size))
	scratch := unsafe.Add(kv, attendBlocks*pitch+2*size+64*attendBlocks)
	for i, values := 0, unsafe.Slice(q, attendTokens*row); i < len(values); i++ {
		values[i] = float32(math.Sin(float64(i)))
	}
	for i := range attendBlocks {
		*(*int32)(unsafe.Add(unsafe.Pointer(table), 4*i)) = int32(i)
		block := unsafe.Add(kv, i*pitch)
		const some = 16 // of the positions, that q has values for
		for pos := 0; pos < microkernel.KVBlock; pos += some {
			v.StoreK(l, block, pos, q, some, row)
			v.StoreV(l, unsafe.Add(block, l.KBytes()), pos, q, some, row)
		}
	}
	job := &microkernel.AttentionJob{Q: q, QStride: row, Out: out, OutStride: row, Tokens: rows[0],
		Group: rows[1], Until: attendBlocks * microkernel.KVBlock, KV: kv, Pitch: pitch, Table: table,
		Scale: float32(1 / math.Sqrt(attendDim))}
	return func(int) float64 {
		calls := 0
		for began := time.Now(); time.Since(began) < window; calls++ {
			a.Run(job, scratch)
		}
		return float64(calls) * attendHead * float64(rows[0]*rows[1])
	}, nil
}
