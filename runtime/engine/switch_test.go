package engine

import (
	"crypto/sha256"
	"reflect"
	"slices"
	"testing"
	"unsafe"

	"sandwich/runtime/engine/forward"
	"sandwich/runtime/kvcache"
	"sandwich/runtime/mem"
	"sandwich/runtime/pool"
	"sandwich/topotree"
)

// switchingRunner decodes on the first PU of the plan and prefills on all of them.
func switchingRunner(t testing.TB) *forward.Runner {
	t.Helper()
	o := tinyOptions(t)
	if o.Plan.Prefill.PUs.Count() < 2 {
		t.Skip("needs two PUs; allow this process another one")
	}
	o.Plan.Decode.PUs = topotree.NewCPUSet(o.Plan.Decode.PUs.First())
	o.Blocks, o.LogitRows = 4, 1
	r, err := forward.Open(t.Context(), o.Options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(r.Close)
	return r
}

// oneOfEach returns a prefill chunk and a decode step after it.
func oneOfEach() (prefill, decode kvcache.Batch) {
	tables := kvcache.Tables{{0, 1, 2, 3}}
	prefill = kvcache.Batch{Prefill: true, Tokens: tinyPrompt(1, 32), LogitRows: []int32{31},
		Spans: []kvcache.Span{{Rows: 32, Tables: tables}}}
	decode = kvcache.Batch{Tokens: []int32{300}, LogitRows: []int32{0}, Spans: []kvcache.Span{{Rows: 1, Pos: 32,
		Tables: tables}}}
	return prefill, decode
}

// TestSwitchMovesNothing checks that many switches move no weight, by address, bytes and pages, and
// do not change the logits of either phase.
func TestSwitchMovesNothing(t *testing.T) {
	r := switchingRunner(t)
	type state struct {
		at    []unsafe.Pointer
		sum   [32]byte
		pages any
	}
	look := func() (s state) {
		for i := range r.Model.Weights {
			p := r.Assembly().Weights.At(0, i)
			s.at = append(s.at, p.Data)
			sum := sha256.Sum256(unsafe.Slice((*byte)(p.Data), p.Layout.Bytes()))
			for k := range s.sum {
				s.sum[k] += sum[k]
			}
		}
		pages, err := r.Assembly().Weights.Residency(0)
		if err != nil {
			t.Fatal(err)
		}
		s.pages = pages
		return s
	}
	before := look()
	whole := func() mem.Survey {
		s, err := mem.SurveyOf(0, r.Assembly().Weights.Memory(0), r.Assembly().KV.Memory(0),
			r.Assembly().Buffers.Memory(0))
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	beforeAll := whole()
	prefill, decode := oneOfEach()
	var want [2][]float32
	r.Lead(func(l *pool.Leader) {
		for round := range 50 {
			for i, b := range []*kvcache.Batch{&prefill, &decode} {
				if _, err := r.Forward(l, b, 0, nil); err != nil {
					t.Error(err)
					return
				}
				if n := len(r.Pool().Stats().Active); n != 2-i {
					t.Errorf("%d workers are active in phase %d", n, i)
				}
				if round == 0 {
					want[i] = slices.Clone(r.Logits(0))
				}
				same(t, "after switches", [][]float32{want[i]}, [][]float32{r.Logits(0)})
			}
		}
	})
	if after := look(); !reflect.DeepEqual(before, after) {
		t.Errorf("weights before %v, after %v", before, after)
	}
	if n := whole().Moved(beforeAll); n != 0 {
		t.Errorf("%d bytes of weights, KV cache and activations are at another address or node", n)
	}
	places, err := r.Placement()
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range places {
		if p.Moved != 0 || p.Remote != 0 || p.Misplaced || p.Bytes == 0 {
			t.Errorf("%+v", p)
		}
	}
	if n := r.Pool().Stats().Switches; n < 99 {
		t.Errorf("%d switches were counted in 100 changes of phase", n)
	}
}
