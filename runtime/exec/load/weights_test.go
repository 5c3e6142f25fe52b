package load

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"unsafe"

	"sandwich/microkernel"
	"sandwich/plans"
	"sandwich/runtime/exec/gemm"
	"sandwich/runtime/exec/tp"
	"sandwich/runtime/gguf"
	"sandwich/runtime/model"
	"sandwich/runtime/pool"
)

// looseModel returns weights of sizes that fill neither panels nor vectors, and a plan with their
// compute paths.
func looseModel(t *testing.T) (*model.Model, *plans.Plan) {
	t.Helper()
	rng := rand.New(rand.NewPCG(3, 3))
	m, plan := &model.Model{}, &plans.Plan{}
	for i, c := range []struct {
		typ  gguf.Type
		n, k int
	}{{gguf.F32, 1, 1}, {gguf.F32, 17, 33}, {gguf.F16, 15, 7}, {gguf.BF16, 33, 5}, {gguf.BF16, 16, 64}, {gguf.Q8_0, 31,
		32}, {gguf.Q4_0, 200, 96}} {
		values := make([]float32, c.n*c.k)
		for i := range values {
			values[i] = float32(rng.NormFloat64())
		}
		raw := make([]byte, c.n*c.typ.RowBytes(c.k))
		if err := gguf.Quantize(raw, c.typ, values); err != nil {
			t.Fatal(err)
		}
		m.Weights = append(m.Weights, model.Weight{Role: "q", N: c.n, K: c.k, Of: [2]int{c.n, c.k},
			Tensor: &gguf.Tensor{Name: fmt.Sprintf("w%d", i), Type: c.typ, Dims: []int{c.k, c.n}, Data: raw}})
		plan.Weights = append(plan.Weights, plans.WeightPlan{WeightKey: plans.WeightKey{N: c.n, K: c.k,
			Type: c.typ.String()}, Compute: microkernel.ComputeF32})
	}
	return m, plan
}

func divide(t *testing.T, m *model.Model, plan *plans.Plan) *tp.Shards {
	t.Helper()
	shards, err := tp.Divide(m, plan)
	if err != nil {
		t.Fatal(err)
	}
	return shards
}

// testPool returns a pool of workers.
func testPool(t *testing.T, workers int) *pool.Pool {
	t.Helper()
	p, err := pool.New(make([]int, workers), pool.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Close)
	return p
}

// TestWeightsPackEveryTensor compares the matrices that several workers packed with one call for
// the entire matrix.
func TestWeightsPackEveryTensor(t *testing.T) {
	m, plan := looseModel(t)
	var last, calls int64
	w, err := Load(t.Context(), divide(t, m, plan), plan, testPool(t, 1), Options{Progress: func(done, total int64) {
		calls++
		if done <= last || done > total || total != PackedBytes(divide(t, m, plan)) {
			t.Errorf("progress %d of %d after %d", done, total, last)
		}
		last = done
	}})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Free()
	if last != PackedBytes(divide(t, m, plan)) || calls == 0 {
		t.Errorf("progress ended at %d of %d", last, PackedBytes(divide(t, m, plan)))
	}
	three, err := Load(t.Context(), divide(t, m, plan), plan, testPool(t, 3), Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer three.Free()
	for i := range m.Weights {
		tensor, p := m.Weights[i].Tensor, w.At(0, i)
		want := make([]byte, p.Layout.Bytes())
		if err := microkernel.Pack(want, p.Layout, 0, p.Layout.N, tensor.Data, 0); err != nil {
			t.Fatal(err)
		}
		for _, got := range []*gemm.Packed{p, three.At(0, i)} {
			if !bytes.Equal(unsafe.Slice((*byte)(got.Data), got.Layout.Bytes()), want) {
				t.Errorf("%s (%s) was packed incorrectly", tensor.Name, tensor.Type)
			}
			if uintptr(got.Data)%64 != 0 {
				t.Errorf("%s does not begin at a cache line", tensor.Name)
			}
		}
	}
}

// TestWeightsRefuse checks that a value that is not finite, and a plan for another model, are
// refused with the name of the tensor.
func TestWeightsRefuse(t *testing.T) {
	m, plan := looseModel(t)
	load := func(workers int) (*Weights, error) {
		return Load(t.Context(), divide(t, m, plan), plan, testPool(t, workers), Options{})
	}
	for i := range 7 {
		m, plan = looseModel(t)
		tensor := m.Weights[i].Tensor
		last := tensor.Data[len(tensor.Data)-tensor.Type.RowBytes(m.Weights[i].K):]
		switch tensor.Type {
		case gguf.F32:
			binary.LittleEndian.PutUint32(last, math.Float32bits(float32(math.NaN())))
		case gguf.BF16:
			binary.LittleEndian.PutUint16(last, 0xFF80)
		default:
			binary.LittleEndian.PutUint16(last, 0x7C00)
		}
		if w, err := load(2); err == nil || !strings.Contains(err.Error(), tensor.Name+" ") {
			w.Free()
			t.Errorf("%s with an infinite value: %v", tensor.Name, err)
		}
	}
	m, plan = looseModel(t)
	m.Embed = &gguf.Tensor{Name: "embedding", Type: gguf.F32, Dims: []int{3, 1000}, Data: make([]byte, 12000)}
	if w, err := load(2); err != nil {
		t.Errorf("a good embedding: %v", err)
	} else {
		w.Free()
	}
	binary.LittleEndian.PutUint32(m.Embed.Data[11996:], 0x7FC00000)
	if w, err := load(2); err == nil || !strings.Contains(err.Error(), "embedding ") {
		w.Free()
		t.Errorf("an embedding with a NaN: %v", err)
	}
	m, plan = looseModel(t)
	plan.Weights = plan.Weights[:3]
	if _, err := load(1); err == nil || !strings.Contains(err.Error(), "33x5:bf16") {
		t.Errorf("a plan that lacks a weight: %v", err)
	}
}
