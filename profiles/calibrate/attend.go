package calibrate

import (
	"math"
	"time"
	"unsafe"

	"sandwich/microkernel"
	"sandwich/profiles"
)

// Sizes of the attention jobs that are measured: the query heads of some tokens of a prompt that
// share a KV head, or one head of one token, over blocks that fit into L2. The cache type is that
// of profiles.AttentionCache. A call takes about 100 microseconds or less.
const (
	attendDim    = 128
	attendGroup  = 4
	attendTokens = 48 // times attendGroup, a multiple of the rows of every kernel
	attendBlocks = 4
	attendHead   = 4.0 * attendDim * attendBlocks * microkernel.KVBlock // FLOP of a token
)

// attendFigures returns figures of the first worker's attention with each dot product of this CPU.
// It returns none if there is only one dot product or no generated code. Figures of single tokens
// come first and follow each other, since tiles may lower the clock afterwards and these figures
// are compared.
func (b *bench) attendFigures(isa microkernel.ISA, window time.Duration) (out []*figure, err error) {
	if !isa.Generates() {
		return nil, nil
	}
	for _, test := range attendTests {
		for _, d := range microkernel.AttentionDots() {
			if !d.On(isa, microkernel.Host()) {
				continue
			}
			layout := microkernel.KVLayout{HeadDim: attendDim, Elem: profiles.AttentionCache(d)}.For(d)
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

// attendTests lists the ceiling types with the numbers of tokens and query heads of a job.
var attendTests = []struct {
	typ  func(microkernel.AttentionDot) string
	rows [2]int
}{
	{profiles.AttentionStepType, [2]int{1, 1}},
	{profiles.AttentionType, [2]int{attendTokens, attendGroup}},
}

// attendWork allocates a job with some tokens and query heads and returns a function that runs it
// repeatedly.
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
		const some = 16 // positions per call, limited by the values in q
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
