package vec

import (
	"unsafe"

	"sandwich/microkernel/internal/kernel"
)

// AttentionForm selects what a model family does to scores; code is generated for it.
type AttentionForm struct {
	Window  bool // jobs have a window
	Softcap bool // jobs have a soft cap
	Dot     AttentionDot
}

// AttentionJob is the attention of consecutive tokens of one sequence for the query heads that
// share one KV head.
type AttentionJob struct {
	Q         *float32 // [Tokens][Group][HeadDim], tokens QStride elements apart
	QStride   int
	Out       *float32 // [Tokens][Group][HeadDim], tokens OutStride elements apart
	OutStride int
	Tokens    int
	Group     int // query heads of the KV head
	Pos       int // position of the first token; a token sees every position up to its own
	// Until, unless 0, lets every token see all positions below it, including later ones:
	// bidirectional attention of a text that is cached up to there.
	Until int
	// KV is the address of block 0 of the KV head: a K block followed by a V block. Blocks of
	// consecutive ids are Pitch bytes apart. Table holds the ids of the sequence's blocks in order,
	// (Pos+Tokens+63)/64 of them, or (Until+63)/64.
	KV    unsafe.Pointer
	Pitch int
	Table *int32
	Scale float32 // of the scores, usually 1/sqrt(HeadDim); positive
	// Window is the largest number of positions a token sees, including its own (Beltagy, Peters,
	// Cohan: Longformer, 2020, section 3.1); 0 if the form has none. With Until it is centered on
	// the token: Window/2 positions on either side. Blocks that no token sees are not read, and
	// their entries of Table may be undefined.
	Window int
	// Softcap bounds the scaled scores: Softcap*tanh(score/Softcap); 0 if the form has none.
	Softcap float32
	// Sinks, unless nil, has one additional score for each of the Group heads, which takes weight
	// and contributes no value (Xiao et al.: Efficient Streaming Language Models with Attention
	// Sinks, 2024).
	Sinks *float32
	// Next is the block that this worker will probably read first after the job, or nil. It is
	// prefetched during the job's last block.
	Next unsafe.Pointer
}

// skips returns the number of positions before the first one that a token sees.
func (j *AttentionJob) skips(token int) int {
	switch {
	case j.Window == 0:
		return 0
	case j.Until > 0:
		return max(0, j.Pos+token-j.Window/2)
	}
	return max(0, j.Pos+token+1-j.Window)
}

// sees returns the end of the positions that a token sees.
func (j *AttentionJob) sees(token int) int {
	switch {
	case j.Until == 0:
		return j.Pos + token + 1
	case j.Window > 0:
		return min(j.Until, j.Pos+token+j.Window/2+1)
	}
	return j.Until
}

// scales sets the factors that the kernel multiplies scores by.
func (j *AttentionJob) scales(args *kernel.AttentionArgs) {
	args.Scale = j.Scale
	if j.Softcap > 0 {
		args.Scale, args.Factor, args.SoftCap = 1, capFactor(j.Scale, j.Softcap), j.Softcap
	}
}

// after returns the block to prefetch during the last of the job's blocks before number `to`.
func (j *AttentionJob) after(to int) unsafe.Pointer {
	if j.Next != nil {
		return j.Next
	}
	return unsafe.Add(j.KV, int(*at(j.Table, to-1))*j.Pitch)
}

// Blocks returns the range of blocks that the job's tokens see: [from, to).
func (j *AttentionJob) Blocks() (from, to int) {
	return j.skips(0) / KVBlock, (j.sees(j.Tokens-1) + KVBlock - 1) / KVBlock
}
