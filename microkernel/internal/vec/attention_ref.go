package vec

import "unsafe"

// refAttention defines fused attention, row by row.
func refAttention(l KVLayout, dot AttentionDot, job *AttentionJob) {
	out := make([]float32, l.HeadDim)
	for r := range job.Tokens * job.Group {
		token, head := r/job.Group, r%job.Group
		q := vecOf(at(job.Q, token*job.QStride+head*l.HeadDim), l.HeadDim)
		m, s := negInf, float32(0)
		clear(out)
		if job.Sinks != nil {
			m, s = *at(job.Sinks, head), 1
		}
		for b := job.skips(token) / KVBlock; b*KVBlock < job.sees(token); b++ {
			job.refBlock(l, dot, token, b, q, out, &m, &s)
		}
		refFinishAttention(at(job.Out, token*job.OutStride+head*l.HeadDim), 0, &out[0], 0, &s, 1, l.HeadDim)
	}
}

// refRange defines a range: the blocks [from, to) for the rows [lo, hi) into a state.
func refRange(l KVLayout, dot AttentionDot, job *AttentionJob, state unsafe.Pointer, lo, hi, from, to int) {
	out, m, s := stateFields(state)
	for r := lo; r < hi; r++ {
		token, head := r/job.Group, r%job.Group
		q := vecOf(at(job.Q, token*job.QStride+head*l.HeadDim), l.HeadDim)
		row := vecOf(at(out, (r-lo)*l.paddedDim()), l.HeadDim)
		for b := max(from, job.skips(token)/KVBlock); b < to && b*KVBlock < job.sees(token); b++ {
			job.refBlock(l, dot, token, b, q, row, at(m, r-lo), at(s, r-lo))
		}
	}
}

// refBlock merges block b for a row of a token into the row's running output, maximum and sum.
func (j *AttentionJob) refBlock(l KVLayout, dot AttentionDot, token, b int, q, out []float32, m, s *float32) {
	k := unsafe.Add(j.KV, int(*at(j.Table, b))*j.Pitch)
	v, n := unsafe.Add(k, l.KBytes()), min(j.sees(token)-b*KVBlock, KVBlock)
	scale := j.Scale
	var p [KVBlock]float32
	dot.refScores(l, q, k, p[:n])
	if j.Softcap > 0 {
		refSoftCap(p[:n], capFactor(scale, j.Softcap), j.Softcap)
		scale = 1
	}
	for pos := range min(n, j.skips(token)-b*KVBlock) {
		p[pos] = negInf
	}
	valid, mb, sb := int32(n), float32(0), float32(0)
	refSoftmaxBlock(&p[0], KVBlock, 1, KVBlock, &valid, scale, &mb, &sb)
	block := make([]float32, l.HeadDim)
	dot.refValues(l, p[:n], v, block)
	refMergeBlock(&out[0], 0, m, s, &block[0], 0, &mb, &sb, 1, l.HeadDim)
}

// refScores computes the products of a query with the keys of the first len(p) positions.
func (dot AttentionDot) refScores(l KVLayout, q []float32, k unsafe.Pointer, p []float32) {
	if dot == AttendDPBUSD {
		refIntegerScores(l, q, k, p)
		return
	}
	minimum, _ := dot.dot().Least()
	q = dot.refRound(minimum, q)
	for pos := range p {
		p[pos] = dot.refSum(l.HeadDim, func(d int) (float32, float32) { return q[d], l.getK(k, pos, d) })
	}
}

// refValues computes the sums of the values of the first len(p) positions, weighted by p.
func (dot AttentionDot) refValues(l KVLayout, p []float32, v unsafe.Pointer, block []float32) {
	if dot == AttendDPBUSD {
		refIntegerValues(l, p, v, block)
		return
	}
	_, minimum := dot.dot().Least()
	rounded := dot.refRound(minimum, p)
	for d := range block {
		block[d] = dot.refSum(len(p), func(pos int) (float32, float32) { return rounded[pos], l.getV(v, pos, d) })
	}
}
