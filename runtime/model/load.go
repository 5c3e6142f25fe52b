package model

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"sandwich/microkernel/qtype"
	"sandwich/runtime/gguf"
)

// ErrUnsupported is wrapped by every refusal of a model that is valid but that this program cannot run.
var ErrUnsupported = errors.New("not supported")

// architecture says in what a family differs from plain llama.
type architecture struct {
	neox    bool // rotation pairs (i, i+d/2)
	qkvBias bool
	qkNorm  bool
	experts bool // the feed-forward is a mixture of experts
}

var architectures = map[string]architecture{
	"llama": {},
	"qwen2": {neox: true, qkvBias: true},
	"qwen3": {neox: true, qkNorm: true},
	moeArch: {neox: true, qkNorm: true, experts: true},
}

// Load reads the architecture of a GGUF file and writes it out as ops. Errors name the tensor, key, type or
// architecture at fault; those that wrap ErrUnsupported are valid files that this program does not run.
// The model keeps pointing into f, which must stay open until exec has packed the weights; vectors
// are copied.
func Load(f *gguf.File) (m *Model, err error) {
	err = f.Guard(func() (err error) {
		m, err = load(f)
		return err
	})
	return m, err
}

func load(f *gguf.File) (*Model, error) {
	arch, err := archOf(f.Architecture())
	if err != nil {
		return nil, err
	}
	b := &builder{file: f, arch: arch}
	m := &Model{Arch: f.Architecture()}
	m.Name, _ = f.String("general.name")
	b.m = m
	b.readDims()
	b.readEmbedding()
	b.readRope()
	if b.err == nil {
		b.build()
	}
	if b.err != nil {
		return nil, b.err
	}
	return m, nil
}

// builder keeps the first error, so that the layers read like the model's definition.
type builder struct {
	file *gguf.File // nil: ops are written out without tensors
	arch architecture
	m    *Model
	err  error
}

func (b *builder) fail(format string, args ...any) {
	if b.err == nil {
		b.err = fmt.Errorf(format, args...)
	}
}

func (b *builder) key(suffix string) string { return b.m.Arch + "." + suffix }

// size reads a required positive count and refuses the absurd.
func (b *builder) size(suffix string, most uint64) int {
	v, ok := b.file.Uint(b.key(suffix))
	if !ok {
		b.fail("the file has no %s: it is not a complete %s model", b.key(suffix), b.m.Arch)
		return 1
	}
	if v == 0 || v > most {
		b.fail("%s is %d, outside 1..%d", b.key(suffix), v, most)
		return 1
	}
	return int(v)
}

func (b *builder) sizeOr(suffix string, most uint64, otherwise int) int {
	if _, ok := b.file.Uint(b.key(suffix)); !ok {
		return otherwise
	}
	return b.size(suffix, most)
}

func (b *builder) readDims() {
	d := &b.m.Dims
	d.Hidden = b.size("embedding_length", 1<<17)
	d.Layers = b.size("block_count", 1<<10)
	d.Heads = b.size("attention.head_count", 1<<12)
	d.KVHeads = b.sizeOr("attention.head_count_kv", 1<<12, d.Heads)
	d.HeadDim = b.sizeOr("attention.key_length", 1<<12, max(1, d.Hidden/d.Heads))
	d.FFN = b.size("feed_forward_length", 1<<20)
	d.Context = b.size("context_length", 1<<26)
	if v := b.sizeOr("attention.value_length", 1<<12, d.HeadDim); v != d.HeadDim {
		b.fail("value heads of %d beside key heads of %d are %w", v, d.HeadDim, ErrUnsupported)
	}
	if d.Heads%d.KVHeads != 0 {
		b.fail("%d query heads cannot share %d KV heads evenly", d.Heads, d.KVHeads)
	}
	if d.HeadDim%16 != 0 {
		b.fail("a head dimension of %d is %w: it must be a multiple of 16", d.HeadDim, ErrUnsupported)
	}
	if b.arch.experts {
		b.readExperts()
	}
	eps, ok := b.file.Float(b.key("attention.layer_norm_rms_epsilon"))
	if !ok || !(eps > 0 && eps < 1) {
		b.fail("%s is missing or outside (0, 1)", b.key("attention.layer_norm_rms_epsilon"))
	}
	b.m.Eps = float32(eps)
}

func (b *builder) readExperts() {
	e := &b.m.Experts
	e.Count = b.size("expert_count", maxExperts)
	e.Used = b.size("expert_used_count", maxExperts)
	e.FFN = b.size("expert_feed_forward_length", 1<<20)
	if e.Used > e.Count {
		b.fail("%s is %d, more than the %d experts there are", b.key("expert_used_count"), e.Used, e.Count)
	}
}

// readEmbedding finds the token embedding, whose rows are the vocabulary.
func (b *builder) readEmbedding() {
	b.m.Embed = b.matrix("token_embd.weight", -1, b.m.Dims.Hidden)
	if b.m.Embed != nil {
		b.m.Dims.Vocab = b.m.Embed.Dims[1]
	}
}

func (b *builder) readRope() {
	d, r := b.m.Dims, &b.m.Rope
	r.Neox, r.Base, r.Scale = b.arch.neox, 10000, 1
	if v, ok := b.file.Float(b.key("rope.freq_base")); ok {
		r.Base = v
	}
	if !(r.Base > 0) || math.IsInf(r.Base, 0) {
		b.fail("%s is %v, not a positive number", b.key("rope.freq_base"), r.Base)
	}
	r.Dim = b.sizeOr("rope.dimension_count", 1<<12, d.HeadDim)
	if r.Dim != d.HeadDim {
		b.fail("rotating %d of %d head dimensions is %w", r.Dim, d.HeadDim, ErrUnsupported)
	}
	kind, _ := b.file.String(b.key("rope.scaling.type"))
	switch kind {
	case "", "none":
	case "linear":
		factor, _ := b.file.Float(b.key("rope.scaling.factor"))
		if !(factor > 0) {
			b.fail("%s is %v, not a positive number", b.key("rope.scaling.factor"), factor)
		}
		r.Scale = 1 / factor
	case "llama3":
		r.Factors = b.llama3Factors()
	default:
		b.fail("RoPE scaling %q is %w", kind, ErrUnsupported)
	}
	if _, ok := b.file.Tensor("rope_freqs.weight"); ok {
		r.Factors = b.vector("rope_freqs.weight", r.Dim/2).Data
	}
	for i, f := range r.Factors {
		if !(f > 0) || math.IsInf(float64(f), 0) {
			b.fail("rope_freqs.weight[%d] is %v, not a positive number", i, f)
		}
	}
}

// llama3Factors computes the frequency divisors of the Llama 3 rule where the file gives its parameters instead of
// the finished tensor.
func (b *builder) llama3Factors() []float32 {
	get := func(name string, otherwise float64) float64 {
		if v, ok := b.file.Float(b.key("rope.scaling." + name)); ok && v > 0 {
			return v
		}
		return otherwise
	}
	rule := Llama3Rope{Factor: get("factor", 8), Low: get("low_freq_factor", 1), High: get("high_freq_factor", 4),
		Original: b.sizeOr("rope.scaling.original_context_length", 1<<26, 8192)}
	return rule.Factors(b.m.Rope.Base, b.m.Rope.Dim)
}

// matrix returns a tensor [n, k], or a stack of such matrices; n < 0 takes any number of rows.
func (b *builder) matrix(name string, n, k int, stack ...int) *gguf.Tensor {
	if b.file == nil {
		return nil
	}
	t, ok := b.file.Tensor(name)
	if !ok {
		b.fail("the file has no tensor %s: it is not a complete %s model", name, b.m.Arch)
		return nil
	}
	want := append([]int{k, n}, stack...)
	if n < 0 && len(t.Dims) == 2 {
		want[1] = t.Dims[1]
	}
	if !slices.Equal(t.Dims, want) {
		shape := fmt.Sprint(want)
		if n < 0 {
			shape = fmt.Sprintf("[%d, vocabulary]", k)
		}
		b.fail("tensor %s has shape %v, the model's dimensions ask for %s", name, t.Dims, shape)
		return nil
	}
	if t.Type.Desc() == nil {
		b.fail("tensor %s has type %s, which is %w as a matrix: use %s", name, t.Type, ErrUnsupported, typeList())
		return nil
	}
	return t
}

func typeList() string {
	var names []string
	for _, t := range qtype.All() {
		names = append(names, t.String())
	}
	return strings.Join(names, ", ")
}

// has says whether the file has a tensor that a model may lack.
func (b *builder) has(name string) bool {
	if b.file == nil {
		return false
	}
	_, ok := b.file.Tensor(name)
	return ok
}

func (b *builder) vector(name string, n int) *Vector {
	v := &Vector{Name: name}
	if b.file == nil {
		return v
	}
	t, ok := b.file.Tensor(name)
	if !ok {
		b.fail("the file has no tensor %s: it is not a complete %s model", name, b.m.Arch)
		return v
	}
	if len(t.Dims) != 1 || t.Dims[0] != n {
		b.fail("tensor %s has shape %v, the model's dimensions ask for [%d]", name, t.Dims, n)
		return v
	}
	v.Data = make([]float32, n)
	if err := gguf.Dequantize(v.Data, t.Type, t.Data); err != nil {
		b.fail("tensor %s: %w", name, err)
	}
	for i, x := range v.Data {
		if math.IsNaN(float64(x)) || math.IsInf(float64(x), 0) {
			b.fail("tensor %s holds %v at %d: the file is damaged, copy or download it again", name, x, i)
			break
		}
	}
	return v
}
