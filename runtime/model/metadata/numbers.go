package metadata

import (
	"fmt"
	"math"
	"strconv"
)

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

// numbers holds numbers and lists by key. The key of a list with one entry ends in oneEntry, which
// distinguishes the list from a number.
type numbers map[string][]float64

const oneEntry = "[]"

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
		list = n[key+oneEntry]
	}
	if len(list) == 0 {
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
	list, _ := n.Ints(tensorKey + name)
	for i, v := range list {
		if i < layers {
			out[i] = v != 0
		}
	}
	return out
}

// The methods of keyWriter; only numbers are stored.
func (n numbers) SetBool(string, bool) {}

func (n numbers) SetString(string, string) {}

func (n numbers) SetUint32(key string, v uint32) { n[key] = []float64{float64(v)} }

func (n numbers) SetFloat32(key string, v float32) { n[key] = []float64{shortest(v)} }

func (n numbers) SetInts(key string, values []int32) {
	if len(values) == 1 {
		key += oneEntry
	}
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
