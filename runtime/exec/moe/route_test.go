package moe

import (
	"cmp"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"unsafe"

	"sandwich/microkernel"
	"sandwich/runtime/model"
)

// TestRoutes compares the choice of experts with a sort, ties and values that are no numbers
// included, and checks that the grouped pairs are each row's experts, every pair once, by expert
// and then in the order of the rows.
func TestRoutes(t *testing.T) {
	rng := rand.New(rand.NewPCG(8, 8))
	for range 300 {
		e := model.Experts{Count: 1 + rng.IntN(20)}
		e.Used = 1 + rng.IntN(e.Count)
		rows := 1 + rng.IntN(30)
		capacity := rows + rng.IntN(3)
		memory := make([]byte, Bytes(e, capacity))
		r := New(e, capacity, unsafe.Pointer(&memory[0]))
		for row := range rows {
			logits := make([]float32, e.Count)
			for i := range logits {
				logits[i] = float32(rng.IntN(6)) // ties
			}
			r.choose(row, logits, nil)
			order := make([]int32, e.Count)
			for i := range order {
				order[i] = int32(i)
			}
			slices.SortStableFunc(order, func(a, b int32) int { return cmp.Compare(logits[b], logits[a]) })
			if got := r.choice[row*e.Used:][:e.Used]; !slices.Equal(got, order[:e.Used]) {
				t.Fatalf("experts %v of %v, want %v", got, logits, order[:e.Used])
			}
			for i, w := range r.weight[row*e.Used:][:e.Used] {
				if w != logits[order[i]] {
					t.Fatalf("expert %d has logit %v, want %v", order[i], w, logits[order[i]])
				}
			}
		}
		r.group(rows)
		at := 0
		for expert := range e.Count {
			first, n := r.rowsOf(expert)
			if first != at {
				t.Fatalf("expert %d begins at %d, the one before ended at %d", expert, first, at)
			}
			for ; at < first+n; at++ {
				row := int(r.source[at])
				mine := slices.Index(r.choice[row*e.Used:][:e.Used], int32(expert))
				if mine < 0 || r.place[row*e.Used+mine] != int32(at) || at > first && r.source[at-1] >= r.source[at] {
					t.Fatalf("pair %d of expert %d is row %d, which chose %v", at, expert, row,
						r.choice[row*e.Used:][:e.Used])
				}
			}
		}
		if at != rows*e.Used {
			t.Fatalf("%d pairs of %d rows with %d experts each", at, rows, e.Used)
		}
	}
}

// TestRouteOfNoNumbers checks that a row of NaN is routed to existing, distinct experts.
func TestRouteOfNoNumbers(t *testing.T) {
	e := model.Experts{Count: 5, Used: 3}
	memory := make([]byte, Bytes(e, 1))
	r := New(e, 1, unsafe.Pointer(&memory[0]))
	nan := float32(math.NaN())
	for _, logits := range [][]float32{{nan, nan, nan, nan, nan}, {1, nan, 2, nan, 3}, {float32(math.Inf(-1)), nan,
		nan, nan, 0}} {
		r.choose(0, logits, nil)
		got := slices.Sorted(slices.Values(r.choice))
		if got[0] < 0 || got[2] >= 5 || len(slices.Compact(got)) != 3 {
			t.Errorf("%v goes to experts %v", logits, r.choice)
		}
	}
}

// TestCloseGroups checks that the best two scores of each group decide, that equal groups are taken
// in order, and that scores in chosen groups do not change.
func TestCloseGroups(t *testing.T) {
	closed := float32(math.Inf(-1))
	for _, c := range []struct {
		scores       []float32
		groups, used int
		want         []float32
	}{
		{[]float32{9, 0, 0, 5, 5, 0, 1, 1, 1, 4, 4, 4}, 4, 2, []float32{9, 0, 0, 5, 5, 0, closed, closed, closed,
			closed,
			closed, closed}},
		{[]float32{1, 2, 2, 1, 3, 0}, 3, 1, []float32{1, 2, closed, closed, closed, closed}},
		{[]float32{1, 4, 2, 3}, 4, 2, []float32{closed, 4, closed, 3}},
		{[]float32{1, 2}, 2, 2, []float32{1, 2}},
	} {
		excludeGroups(c.scores, nil, c.groups, c.used)
		if !slices.Equal(c.scores, c.want) {
			t.Errorf("%d of %d groups: %v, want %v", c.used, c.groups, c.scores, c.want)
		}
	}
}

// TestWeights checks that a bias affects the choice of experts and groups but not the weights, even
// if the scores are negligible relative to it, that weights with a tiny sum are not scaled to 1, as
// in llama.cpp, and that groups are limited with any scores.
func TestWeights(t *testing.T) {
	vec, err := microkernel.NewVec(microkernel.Go)
	if err != nil {
		t.Fatal(err)
	}
	e := model.Experts{Count: 4, Used: 2}
	for _, c := range []struct {
		logits, bias []float32
		groups       int
		choice       []int32
		weight       []float32
	}{
		{[]float32{20, 0, 1, 0}, []float32{0, 3, 2, -5}, 0, []int32{1, 2}, []float32{0x1p14 * 2.0611536e-9,
			0x1p14 * 5.6027964e-9}},
		{[]float32{0, 0, 0, 0}, []float32{0.5, 0, 0, 0.75}, 2, []int32{3, 2}, []float32{0.5, 0.5}},
		{[]float32{1, 1, 0, 0}, []float32{0, 0, 9, 9}, 2, []int32{2, 3}, []float32{0.5, 0.5}},
		{[]float32{3, 0, 2, 2}, nil, 2, []int32{0, 1}, []float32{0.95257413, 0.047425873}},
	} {
		memory := make([]byte, Bytes(e, 1))
		r := New(e, 1, unsafe.Pointer(&memory[0]))
		by := &model.Router{Norm: true, Scale: 1, Groups: c.groups, GroupsUsed: 1}
		if c.bias != nil {
			by.Bias = &model.Vector{Data: c.bias}
		}
		r.weigh(vec, 0, c.logits, by)
		for i, w := range r.weight {
			if math.Abs(float64(w/c.weight[i]-1)) > 1e-5 {
				t.Errorf("weights %v, want %v", r.weight, c.weight)
			}
		}
		if !slices.Equal(r.choice, c.choice) {
			t.Errorf("experts %v, want %v", r.choice, c.choice)
		}
	}
}
