package engine

import (
	"math"
	"slices"

	"sandwich/runtime/gguf"
	"sandwich/runtime/model"
)

// oracle runs the ops of a dense model over one sequence in float64, one formula an op.
type oracle struct {
	m    *model.Model
	x    [model.NumBufs][][]float64 // [T, width]
	kept map[int][2][][]float64     // by layer: its keys and values
}

func newOracle(m *model.Model) *oracle { return &oracle{m: m, kept: map[int][2][][]float64{}} }

// forward returns the logits behind the last token.
func (o *oracle) forward(tokens []int32) []float64 {
	for i := range o.m.Ops {
		o.op(&o.m.Ops[i], tokens)
	}
	return o.x[model.BufLogits][0]
}

func (o *oracle) op(op *model.Op, tokens []int32) {
	switch op.Kind {
	case model.OpEmbed:
		for _, token := range tokens {
			row := values(o.m.Embed, int(token))
			o.x[model.BufX] = append(o.x[model.BufX], o.placed(op, len(o.x[model.BufX]), scaled(row, op.Scale)))
		}
	case model.OpMatMul:
		o.matMul(op)
	case model.OpRotate:
		o.rotate(op, op.Rope, op.QNorm, o.x[model.BufQ])
		if op.AttnTemperature != nil {
			for pos, row := range o.x[model.BufQ] {
				o.x[model.BufQ][pos] = scaled(row, float32(op.AttnTemperature.At(pos)))
			}
		}
		o.keep(op)
	case model.OpRowNorm:
		for r, row := range o.x[op.In] {
			o.x[op.Outs[0]][r] = o.normed(row, op.Norm)
		}
	case model.OpPool:
		o.x[op.Outs[0]] = [][]float64{o.pooled(op)}
	case model.OpSoftmax:
		for _, row := range o.x[op.In] {
			sum := 0.0
			for i, x := range row {
				row[i] = math.Exp(x)
				sum += row[i]
			}
			for i := range row {
				row[i] /= sum
			}
		}
	case model.OpCap:
		for _, row := range o.x[op.In] {
			for i, x := range row {
				row[i] = float64(op.Cap) * math.Tanh(x/float64(op.Cap))
			}
		}
	case model.OpInputs:
		o.inputs(op, tokens)
	case model.OpGate:
		for r, row := range o.x[op.Outs[0]] {
			for i := range row {
				row[i] = activated(op.Act, row[i], o.x[op.In][r][op.Layer*op.N+i])
			}
		}
	case model.OpAttention:
		o.attention(op)
	case model.OpNorm, model.OpAddNorm:
		o.norm(op)
	case model.OpGather:
		h := o.x[model.BufH]
		o.x[model.BufY] = [][]float64{scaled(h[len(h)-1], op.Scale)}
	}
}

// values are row r of a matrix.
func values(t *gguf.Tensor, r int) []float64 {
	k := t.Dims[0]
	row, size := make([]float32, k), t.Type.RowBytes(k)
	if err := gguf.Dequantize(row, t.Type, t.Data[r*size:][:size]); err != nil {
		panic(err)
	}
	out := make([]float64, k)
	for i, v := range row {
		out[i] = float64(v)
	}
	return out
}

func scaled(x []float64, by float32) []float64 {
	out := make([]float64, len(x))
	for i, v := range x {
		out[i] = v * float64(by)
	}
	return out
}

// product is In * W^T + bias.
func (o *oracle) product(op *model.Op, i int) [][]float64 {
	w := &o.m.Weights[op.W[i]]
	out := make([][]float64, len(o.x[op.In]))
	for r := range out {
		out[r] = make([]float64, w.N)
	}
	for n := range w.N {
		row := values(w.Tensor, w.Row+n)
		for r, x := range o.x[op.In] {
			sum := 0.0
			for k := range x {
				sum += x[k] * row[k]
			}
			if op.Bias[i] != nil {
				sum += float64(op.Bias[i].Data[n])
			}
			out[r][n] = sum
		}
	}
	return out
}

func (o *oracle) matMul(op *model.Op) {
	if op.Act == model.NoActivation {
		for i, out := range op.Outs {
			o.x[out] = o.product(op, i)
		}
		return
	}
	gate := o.product(op, 0)
	if op.Act == model.GELU {
		for _, row := range gate {
			for i, x := range row {
				row[i] = activated(model.GeGLU, x, 1)
			}
		}
		o.x[op.Outs[0]] = gate
		return
	}
	up := o.product(op, 1)
	for r := range gate {
		for i, g := range gate[r] {
			gate[r][i] = activated(op.Act, g, up[r][i])
		}
	}
	o.x[op.Outs[0]] = gate
}

func activated(act model.Activation, x, y float64) float64 {
	switch act {
	case model.GeGLU:
		return x / 2 * (1 + math.Tanh(math.Sqrt(2/math.Pi)*(x+0.044715*x*x*x))) * y
	case model.ClampedSwiGLU:
		x, y = min(x, 7), max(-7, min(y, 7))
		return x / (1 + math.Exp(-1.702*x)) * (y + 1)
	}
	return x / (1 + math.Exp(-x)) * y
}

// keep makes the keys and values of a layer, unless it has none.
func (o *oracle) keep(op *model.Op) {
	if op.KVLayer != op.Layer {
		return
	}
	k, v := o.x[model.BufK], o.x[model.BufV]
	if op.KeysAsValues {
		v = nil
		for _, row := range k {
			v = append(v, slices.Clone(row))
		}
	}
	if op.VNorm != nil {
		o.rotate(op, nil, op.VNorm, v)
	}
	o.rotate(op, op.Rope, op.KNorm, k)
	o.kept[op.Layer] = [2][][]float64{k, v}
}

// inputs is OpInputs.
func (o *oracle) inputs(op *model.Op, tokens []int32) {
	n := op.Norm.N
	for r, row := range o.x[model.BufInputs] {
		table := values(op.Table.Tensor, int(tokens[r]))
		row = scaled(row, op.Scale)
		for at := 0; at < len(row); at += n {
			copy(row[at:], o.normed(row[at:][:n], op.Norm))
		}
		for i := range row {
			row[i] = (row[i] + table[i]*math.Sqrt(float64(n))) / math.Sqrt2
		}
		o.x[model.BufInputs][r] = row
	}
}

// rotate normalizes and turns the heads of rows.
func (o *oracle) rotate(op *model.Op, rope *model.Rope, norm *model.Vector, rows [][]float64) {
	dim := op.Heads.Dim
	for pos, row := range rows {
		for at := 0; at < len(row); at += dim {
			head := row[at:][:dim]
			if norm != nil {
				copy(head, o.normed(head, norm))
			}
			if rope == nil {
				continue
			}
			for i, f := range rope.Frequencies(o.m.Dims.Context) {
				a, b := &head[2*i], &head[2*i+1]
				if rope.Neox {
					a, b = &head[i], &head[i+rope.Dim/2]
				}
				sin, cos := math.Sincos(float64(pos) * f)
				sin, cos = sin*rope.Gain, cos*rope.Gain
				*a, *b = *a*cos-*b*sin, *a*sin+*b*cos
			}
		}
	}
}

func (o *oracle) attention(op *model.Op) {
	d := op.Heads
	q, k, v := o.x[model.BufQ], o.kept[op.KVLayer][0], o.kept[op.KVLayer][1]
	out, sees := make([][]float64, len(q)), seen(op.Attn)
	for pos := range q {
		out[pos] = make([]float64, d.Q*d.Dim)
		for h := range d.Q {
			kv, sum := h/(d.Q/d.KV)*d.Dim, 0.0
			att := out[pos][h*d.Dim:][:d.Dim]
			if op.Sinks != nil {
				sum = math.Exp(float64(op.Sinks.Data[h]))
			}
			for p := range q {
				if !sees(pos, p) {
					continue
				}
				score := 0.0
				for i := range d.Dim {
					score += q[pos][h*d.Dim+i] * k[p][kv+i]
				}
				score *= float64(op.Attn.Scale)
				if c := float64(op.Attn.Softcap); c > 0 {
					score = c * math.Tanh(score/c)
				}
				e := math.Exp(score)
				sum += e
				for i := range att {
					att[i] += e * v[p][kv+i]
				}
			}
			for i := range att {
				att[i] /= sum
			}
		}
	}
	o.x[model.BufAtt] = out
}

// seen tells whether a row at a position reads another one.
func seen(a model.Attn) func(pos, p int) bool {
	remembered := remembers(a)
	return func(pos, p int) bool {
		if a.Bidirectional {
			return a.Window == 0 || max(pos-p, p-pos) <= a.Window/2
		}
		return p <= pos && remembered(pos, p) && (a.Window == 0 || pos-p < a.Window)
	}
}

// placed adds the rows of token type and position to an embedding.
func (o *oracle) placed(op *model.Op, pos int, x []float64) []float64 {
	for i := range x {
		if op.Types != nil {
			x[i] += float64(op.Types.Data[i])
		}
		if op.PosEmbed != nil {
			x[i] += float64(op.PosEmbed.Data[pos*len(x)+i])
		}
	}
	return x
}

// pooled is one row of all.
func (o *oracle) pooled(op *model.Op) []float64 {
	rows := o.x[op.In]
	switch op.Pool {
	case model.FirstPooling:
		return append([]float64(nil), rows[0]...)
	case model.LastPooling:
		return append([]float64(nil), rows[len(rows)-1]...)
	}
	out := make([]float64, len(rows[0]))
	for _, row := range rows {
		for i, x := range row {
			out[i] += x / float64(len(rows))
		}
	}
	return out
}

// centered is LayerNorm.
func (o *oracle) centered(x []float64, op *model.Op) []float64 {
	mean, square := 0.0, 0.0
	for _, v := range x {
		mean += v / float64(len(x))
	}
	for _, v := range x {
		square += (v - mean) * (v - mean) / float64(len(x))
	}
	out := make([]float64, len(x))
	for i, v := range x {
		out[i] = (v-mean)/math.Sqrt(square+float64(o.m.Eps))*float64(op.Norm.Data[i]) + float64(op.Shift.Data[i])
	}
	return out
}

// norm is OpNorm and OpAddNorm.
func (o *oracle) norm(op *model.Op) {
	o.x[model.BufH] = nil
	for r, x := range o.x[model.BufX] {
		if op.Kind == model.OpAddNorm {
			y := o.x[model.BufY][r]
			if op.Post != nil {
				y = o.normed(y, op.Post)
			}
			for i, v := range scaled(y, op.Scale) {
				x[i] += v
			}
		}
		if op.Gain != nil {
			copy(x, scaled(x, op.Gain.Data[0]))
		}
		if op.Norm != nil {
			if op.Shift != nil {
				o.x[model.BufX][r] = o.centered(x, op)
				continue
			}
			o.x[model.BufH] = append(o.x[model.BufH], o.normed(x, op.Norm))
		}
	}
}

// normed is RMSNorm.
func (o *oracle) normed(x []float64, weight *model.Vector) []float64 {
	sum := 0.0
	for _, v := range x {
		sum += v * v
	}
	by := 1 / math.Sqrt(sum/float64(len(x))+float64(o.m.Eps))
	out := make([]float64, len(x))
	for i, v := range x {
		out[i] = v * by * float64(weight.Data[i])
	}
	return out
}
