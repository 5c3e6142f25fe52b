package offload

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"unsafe"

	"sandwich/microkernel"
	"sandwich/microkernel/devgen"
	"sandwich/microkernel/devgen/kernels"
	"sandwich/runtime/kvcache"
)

// sample is a launch of a tile with inputs.
type sample struct {
	groups  [3]int
	buffers [][]byte // by binding
	push    []uint32
}

// Sizes of samples: rows of a batch, heads, positions before the rows.
const (
	sampleRows  = 3
	sampleWidth = 256
	sampleN     = 48
	sampleHeads = 2
	samplePos   = kvcache.BlockTokens - 1
)

// sampleOf returns a sample of the kernel of a description.
func sampleOf(d description, k *devgen.Kernel) (*sample, error) {
	c := contents{rng: rand.New(rand.NewPCG(1, 46)), buffers: map[string][]byte{}, push: pushes{}}
	var groups [3]int
	switch d := d.(type) {
	case kernels.GEMM:
		groups = d.Grid(c.product(d), sampleN)
	case kernels.RowGEMM:
		groups = d.Grid(c.product(kernels.GEMM(d)), sampleN)
	case kernels.TensorGEMM:
		groups = d.Grid(c.product(kernels.GEMM(d)), sampleN)
	case kernels.Norm:
		groups = c.norm(d)
	case kernels.Rotate:
		groups = c.rotate(d)
	case kernels.Attention:
		groups = c.attention(d)
	case kernels.GatherKV:
		groups = c.gatherKV(d)
	case kernels.AttentionPart:
		groups = c.attentionPart(d)
	case kernels.AttentionMerge:
		groups = c.attentionMerge(d)
	case addRows, gatherRows:
		groups = c.rows()
	default:
		return nil, fmt.Errorf("kernel %s: no sample for its self-test", k.Name)
	}
	s := &sample{groups: groups}
	for _, b := range k.Bindings {
		data, ok := c.buffers[b.Name]
		if !ok {
			return nil, fmt.Errorf("kernel %s: no sample of %s", k.Name, b.Name)
		}
		s.buffers = append(s.buffers, data)
	}
	for _, name := range k.Push {
		x, ok := c.push[name]
		if !ok {
			return nil, fmt.Errorf("kernel %s: no sample of %s", k.Name, name)
		}
		s.push = append(s.push, word(x))
	}
	return s, nil
}

// contents collects the buffers and push words of a sample by name.
type contents struct {
	rng     *rand.Rand
	buffers map[string][]byte
	push    pushes
}

// floats adds a buffer of n numbers between -1 and 1.
func (c *contents) floats(name string, n int) {
	var data []byte
	for range n {
		data = binary.LittleEndian.AppendUint32(data, math.Float32bits(2*c.rng.Float32()-1))
	}
	c.buffers[name] = data
}

// halves adds a buffer of n bytes that are finite numbers when they are read as float16, bfloat16
// or float32, for packed weights, quantized rows and blocks of the KV cache.
func (c *contents) halves(name string, n int) {
	data := make([]byte, (n+3)/4*4)
	for i := range data {
		data[i] = byte(c.rng.Uint32())
		if i%2 == 1 {
			data[i] = data[i]&0x80 | byte(0x2C+c.rng.UintN(16))
		}
	}
	c.buffers[name] = data
}

// activations adds rows of k activations in the form that a path reads, of stride words each. Those
// of path int8-k are large and positive, so that sums with weights of one sign exceed 2^24.
func (c *contents) activations(name string, path microkernel.Compute, rows, k, stride int) {
	switch path {
	case microkernel.ComputeF32:
		c.floats(name, rows*stride)
	case microkernel.ComputeInt8K:
		data, x := make([]byte, 4*rows*stride), make([]float32, k)
		for row := range rows {
			for i := range x {
				x[i] = 0.75 + c.rng.Float32()/4
			}
			microkernel.RefVec().QuantizeRow(path, &x[0], k, unsafe.Pointer(&data[4*row*stride]))
		}
		c.buffers[name] = data
	default:
		c.halves(name, 4*rows*stride)
	}
}

// words adds a buffer of words.
func (c *contents) words(name string, list ...uint32) {
	var data []byte
	for _, w := range list {
		data = binary.LittleEndian.AppendUint32(data, w)
	}
	c.buffers[name] = data
}

// product adds a product whose tile is not full and returns its rows.
func (c *contents) product(g kernels.GEMM) (m int) {
	m = max(1, g.Rows-1)
	layout := microkernel.Layout{Type: g.Weight, N: sampleN, K: sampleWidth}
	stride := g.Path.ActRowBytes(sampleWidth) / 4
	c.activations("a", g.Path, m, sampleWidth, stride)
	c.halves("w", layout.Bytes())
	c.halves("up", layout.Bytes())
	c.floats("bias", sampleN)
	c.floats("c", m*sampleN)
	c.push = pushes{"m": m, "n": sampleN, "k": sampleWidth, "a_stride": stride, "w_stride": layout.PanelStride() / 4,
		"c_stride": sampleN}
	return m
}

func (c *contents) norm(k kernels.Norm) [3]int {
	stride := k.Path.ActRowBytes(sampleWidth) / 4
	c.floats("x", sampleRows*sampleWidth)
	c.floats("y", sampleRows*sampleWidth)
	c.floats("weight", sampleWidth)
	c.floats("out", sampleRows*sampleWidth)
	c.halves("quantized", 4*sampleRows*stride)
	c.push = pushes{"n": sampleWidth, "x_stride": sampleWidth, "y_stride": sampleWidth, "out_stride": sampleWidth,
		"quantized_stride": stride, "eps": float32(1e-5)}
	return k.Grid(sampleWidth, sampleRows)
}

func (c *contents) rotate(k kernels.Rotate) [3]int {
	head := kvcache.BlockTokens * k.HeadDim // words of keys and values
	c.floats("q", sampleRows*sampleHeads*k.HeadDim)
	for _, name := range []string{"k", "v"} {
		c.floats(name, sampleRows*k.HeadDim)
	}
	c.floats("angles", max(4, sampleRows*k.Rotated))
	c.floats("q_norm", k.HeadDim)
	c.floats("k_norm", k.HeadDim)
	c.halves("kv", 4*head)
	c.words("segments", 0, sampleRows, 5, 0)
	c.push = pushes{"q_stride": sampleHeads * k.HeadDim, "k_stride": k.HeadDim, "v_stride": k.HeadDim,
		"angle_stride": k.Rotated, "q_heads": sampleHeads, "kv_heads": 1, "head_words": head, "block_words": head,
		"eps": float32(1e-5)}
	return k.Grid(sampleHeads, 1, 1)
}

func (c *contents) attention(k kernels.Attention) [3]int {
	head := kvcache.BlockTokens * k.HeadDim
	c.floats("q", sampleRows*sampleHeads*k.HeadDim)
	c.floats("out", sampleRows*sampleHeads*k.HeadDim)
	c.halves("kv", 2*4*head)
	c.words("tables", 1, 0)
	c.words("sequences", 0, sampleRows, samplePos, 0)
	c.floats("sinks", sampleHeads)
	c.push = pushes{"q_stride": sampleHeads * k.HeadDim, "out_stride": sampleHeads * k.HeadDim, "group": sampleHeads,
		"head_words": head, "block_words": head, "scale": float32(0.3), "window": kvcache.BlockTokens / 2,
		"factor": float32(0.02), "cap": float32(30)}
	return k.Grid(sampleRows, sampleHeads, 1, 1)
}

func (c *contents) gatherKV(k kernels.GatherKV) [3]int {
	head := kvcache.BlockTokens * k.HeadDim
	c.halves("kv", 2*2*sampleHeads*4*head)
	c.words("segments", 0, sampleRows, 5, 0)
	c.floats("out", 2*sampleRows*sampleHeads*k.Words())
	c.push = pushes{"rows": sampleRows, "kv_heads": sampleHeads, "head_words": head, "block_words": sampleHeads * head,
		"layer_words": sampleHeads * head}
	return k.Grid(2, sampleHeads, 1)
}

// attentionPart adds two blocks of one token with as many query heads as the kernel has rows.
func (c *contents) attentionPart(k kernels.AttentionPart) [3]int {
	const blocks = 2
	c.attention(kernels.Attention{HeadDim: k.HeadDim, Rows: 1})
	c.floats("q", k.Rows*k.HeadDim)
	c.floats("parts", blocks*k.Rows*kernels.PartWords(k.HeadDim))
	c.words("sequences", 0, 1, samplePos+sampleRows, 0)
	c.push["q_stride"], c.push["group"] = k.Rows*k.HeadDim, k.Rows
	c.push["kv_heads"], c.push["blocks"] = 1, blocks
	return k.Grid(blocks, 1, 1)
}

// attentionMerge adds the parts of one token of two blocks.
func (c *contents) attentionMerge(k kernels.AttentionMerge) [3]int {
	const blocks = 2
	c.floats("parts", blocks*k.Rows*kernels.PartWords(k.HeadDim))
	c.floats("out", k.Rows*k.HeadDim)
	c.floats("sinks", k.Rows)
	c.words("sequences", 0, 1, samplePos+sampleRows, 0)
	c.push = pushes{"out_stride": k.Rows * k.HeadDim, "group": k.Rows, "kv_heads": 1, "blocks": blocks,
		"window": kvcache.BlockTokens / 2}
	return k.Grid(1, 1)
}

func (c *contents) rows() [3]int {
	c.floats("dst", sampleRows*sampleWidth)
	c.floats("src", sampleRows*sampleWidth)
	c.words("index", 2, 0, 1)
	c.push = pushes{"n": sampleWidth, "dst_stride": sampleWidth, "src_stride": sampleWidth, "scale": float32(0.7)}
	return kernels.RowGrid(sampleWidth, sampleRows)
}
