package model

import (
	"fmt"
	"math"
	"strconv"

	"sandwich/plans"
	"sandwich/runtime/gguf"
)

// source is a set of metadata: a GGUF file, or the values of a plan.
type source interface {
	String(key string) (string, bool)
	Uint(key string) (uint64, bool)
	Float(key string) (float64, bool)
	Bool(key string) (b, ok bool)
	Ints(key string) ([]int32, bool)
	// Tensors reports which layers have a tensor with a name.
	Tensors(name string, layers int) []bool
}

// fileSource is a GGUF file. It records which keys were requested and whether their type matched,
// so that unread can report values of a wrong type.
type fileSource struct {
	*gguf.File
	wanted map[string]bool // requested keys; true if a request matched the type
}

func (f *fileSource) note(key string, ok bool) { f.wanted[key] = f.wanted[key] || ok }

func (f *fileSource) Uint(key string) (uint64, bool) {
	v, ok := f.File.Uint(key)
	f.note(key, ok)
	return v, ok
}

func (f *fileSource) Float(key string) (float64, bool) {
	v, ok := f.File.Float(key)
	f.note(key, ok)
	return v, ok
}

func (f *fileSource) Bool(key string) (b, ok bool) {
	b, ok = f.File.Bool(key)
	f.note(key, ok)
	return b, ok
}

func (f *fileSource) Ints(key string) ([]int32, bool) {
	v, ok := f.File.Ints(key)
	f.note(key, ok)
	return v, ok
}

// unread returns errors for keys that were requested and whose values have a wrong type.
func (f *fileSource) unread() (wrong []error) {
	for _, key := range f.Keys() {
		if read, wanted := f.wanted[key]; wanted && !read {
			wrong = append(wrong, fmt.Errorf("invalid value %.60s for %s; the file is damaged", f.Text(key), key))
		}
	}
	return wrong
}

func (f *fileSource) Tensors(name string, layers int) []bool {
	out := make([]bool, layers)
	for i := range out {
		_, out[i] = f.Tensor(fmt.Sprintf("blk.%d.%s", i, name))
	}
	return out
}

// writtenSource holds the numbers that Write writes for a configuration, and the names of the
// tensors of its synthetic file.
type writtenSource struct {
	numbers
	tensors map[string]bool
}

func (w writtenSource) Tensors(name string, layers int) []bool {
	out := make([]bool, layers)
	for i := range out {
		out[i] = w.tensors[fmt.Sprintf("blk.%d.%s", i, name)]
	}
	return out
}

// numbers holds keys with their values: one value is a number, several are a list.
type numbers map[string][]float64

// tensorKey is the prefix of keys that hold, per layer, whether a tensor is present: 1 or 0.
const tensorKey = "tensor blk.*."

func (n numbers) String(string) (string, bool) { return "", false }

func (n numbers) Uint(key string) (uint64, bool) {
	v, ok := n.Float(key)
	return uint64(v), ok && v >= 0 && v == math.Trunc(v) && v < 1<<53
}

func (n numbers) Float(key string) (float64, bool) {
	if len(n[key]) != 1 {
		return 0, false
	}
	return n[key][0], true
}

func (n numbers) Bool(string) (b, ok bool) { return false, false }

func (n numbers) Ints(key string) ([]int32, bool) {
	list := n[key]
	if len(list) < 2 {
		return nil, false
	}
	out := make([]int32, len(list))
	for i, v := range list {
		out[i] = int32(v)
	}
	return out, true
}

func (n numbers) Tensors(name string, layers int) []bool {
	out := make([]bool, layers)
	for i, v := range n[tensorKey+name] {
		if i < layers {
			out[i] = v != 0
		}
	}
	return out
}

// The methods of keyWriter; only numbers are stored.
func (n numbers) SetBool(string, bool)             {}
func (n numbers) SetString(string, string)         {}
func (n numbers) SetUint32(key string, v uint32)   { n[key] = []float64{float64(v)} }
func (n numbers) SetFloat32(key string, v float32) { n[key] = []float64{shortest(v)} }
func (n numbers) SetInts(key string, values []int32) {
	n[key] = nil
	for _, v := range values {
		n[key] = append(n[key], float64(v))
	}
}

// shortest returns the number with the fewest digits that rounds to v.
func shortest(v float32) float64 {
	x, _ := strconv.ParseFloat(strconv.FormatFloat(float64(v), 'g', -1, 32), 64)
	return x
}

// recorder records the numbers that were requested from a source.
type recorder struct {
	source
	asked numbers
}

func (r recorder) Uint(key string) (uint64, bool) {
	v, ok := r.source.Uint(key)
	if ok {
		r.asked[key] = []float64{float64(v)}
	}
	return v, ok
}

func (r recorder) Float(key string) (float64, bool) {
	v, ok := r.source.Float(key)
	if ok {
		r.asked[key] = []float64{v}
	}
	return v, ok
}

func (r recorder) Ints(key string) ([]int32, bool) {
	v, ok := r.source.Ints(key)
	if ok {
		r.asked.SetInts(key, v)
	}
	return v, ok
}

func (r recorder) Tensors(name string, layers int) []bool {
	out := r.source.Tensors(name, layers)
	r.asked.SetInts(tensorKey+name, flags(out))
	return out
}

// flags returns 1 for true and 0 for false.
func flags(list []bool) (out []int32) {
	for _, b := range list {
		v := int32(0)
		if b {
			v = 1
		}
		out = append(out, v)
	}
	return out
}

// sizeKeys returns the keys that have fields in a plan's shape.
func sizeKeys(c Config) numbers {
	n := numbers{}
	key := func(s string) string { return c.Arch + "." + s }
	if e := c.Experts; e.Count > 0 {
		n.SetUint32(key("expert_count"), uint32(e.Count))
		n.SetUint32(key("expert_used_count"), uint32(e.Used))
		n.SetUint32(key("expert_feed_forward_length"), uint32(e.FFN))
	}
	return n
}

// recordValues returns the numbers that read requests of a configuration in addition to the common
// sizes: those that Write writes, and which layers have the tensors. readValues needs them to read
// the same configuration.
func recordValues(c Config, layerNorm bool, tensors map[string]bool, read func(*Metadata, *Config)) map[string][]float64 {
	w := writtenSource{numbers{}, tensors}
	writeMetadata(w, c, 0, layerNorm)
	r := recorder{w, numbers{}}
	m, again := &Metadata{source: r, arch: c.Arch, from: "the model"}, c
	m.layers(&again)
	read(m, &again)
	for key := range sizeKeys(c) {
		delete(r.asked, key)
	}
	if len(r.asked) == 0 {
		return nil
	}
	return r.asked
}

// readValues adds the values that recordValues returned to a configuration with the sizes of a
// plan. It returns the first error.
func readValues(c *Config, values map[string][]float64, read func(*Metadata, *Config)) error {
	n := sizeKeys(*c)
	for key, v := range values {
		n[key] = v
	}
	m := &Metadata{source: n, arch: c.Arch, from: fromPlan}
	m.layers(c)
	read(m, c)
	if len(m.errs) > 0 {
		return m.errs[0]
	}
	return c.checkLayers()
}

// familyValues returns the numbers that the family of a configuration reads in addition to the
// common sizes. Outline needs them to write the same ops.
func familyValues(c Config) map[string][]float64 {
	a, err := archOf(c.Arch)
	if err != nil || a.Read == nil {
		return nil
	}
	m, err := c.Model()
	if err != nil {
		return nil
	}
	tensors := map[string]bool{}
	for _, s := range c.tensors() {
		tensors[s.name] = true
	}
	return recordValues(c, hasLayerNorm(m), tensors, a.Read)
}

// Outline returns the model of a plan's shape without weights, for estimates without a file. It
// does not check the sizes. It fails for an unknown architecture, and for a shape without the
// values that its family needs.
func Outline(s plans.ModelShape) (*Model, error) {
	c := Config{Arch: s.Arch, Name: s.Name, Tied: s.Tied,
		Dims: Dims{Hidden: s.Hidden, Layers: s.Layers, Heads: s.Heads, KVHeads: s.KVHeads, HeadDim: s.HeadDim,
			FFN: s.FFN, Vocab: s.Vocab, Context: s.Context},
		Experts: Experts{Count: s.Experts, Used: s.ExpertsUsed, FFN: s.ExpertFFN}}
	a, err := archOf(c.Arch)
	if err != nil {
		return nil, err
	}
	if a.Read != nil {
		if err := readValues(&c, s.Values, a.Read); err != nil {
			return nil, err
		}
	}
	c.readHead(s)
	return c.Model()
}
