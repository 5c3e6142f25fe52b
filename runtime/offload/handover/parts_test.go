package handover

import (
	"slices"
	"testing"

	"sandwich/runtime/model"
)

// mixture returns ops of a layer with a shared part, whose output the sum of the experts is added
// to, and of a dense layer.
func mixture() *model.Model {
	op := func(k model.Kind, outs ...model.Buf) model.Op { return model.Op{Kind: k, Outs: outs} }
	combine := op(model.OpCombine, model.BufY)
	combine.Accumulate, combine.Gate = true, &model.Vector{}
	return &model.Model{Ops: []model.Op{op(model.OpEmbed), op(model.OpMatMul, model.BufY),
		op(model.OpMatMul, model.BufRouter), op(model.OpRoute), op(model.OpDispatch),
		op(model.OpExperts, model.BufGate), op(model.OpExperts, model.BufExpert), combine, op(model.OpAddNorm),
		op(model.OpMatMul, model.BufGate), op(model.OpMatMul, model.BufY), op(model.OpAddNorm)}}
}

func TestExperts(t *testing.T) {
	m := mixture()
	list := Experts(m)
	in := []model.Buf{model.BufRouter, model.BufH, model.BufY}
	if len(list) != 1 || list[0].From != 3 || list[0].To != 8 || !slices.Equal(list[0].In, in) ||
		!slices.Equal(list[0].Out, []model.Buf{model.BufY}) {
		t.Fatalf("parts %+v, want ops 3 to 8 which read %v and write Y", list, in)
	}
	for op := range len(m.Ops) + 1 {
		next, before := list.Next(op), list.Before(op)
		if list.Has(op) != (op >= 3 && op < 8) || (next != nil) != (op < 8) || (before != nil) != (op == 8) {
			t.Errorf("op %d: Has %v, Next %v, Before %v", op, list.Has(op), next, before)
		}
	}
	for buf := range model.NumBufs {
		if list.handOver(buf) != slices.Contains(in, buf) {
			t.Errorf("handOver(%d) is %v", buf, list.handOver(buf))
		}
	}
	m.Ops[1].W, m.Ops[5].W, m.Ops[9].W = []int{0}, []int{1, 2}, []int{3}
	for w := range 4 {
		if list.Multiply(m, w) != (w == 1 || w == 2) {
			t.Errorf("Multiply(%d) is %v", w, list.Multiply(m, w))
		}
	}
	for buf, want := range map[model.Buf]bool{model.BufY: true, model.BufH: true, model.BufGate: true,
		model.BufRouter: true, model.BufExpert: false, model.BufQ: false} {
		if list.OnDevice(m, buf) != want {
			t.Errorf("OnDevice(%d) is %v", buf, !want)
		}
	}
	m.Ops = m.Ops[8:]
	if list := Experts(m); list != nil || list.Has(0) || list.Next(0) != nil || list.Before(0) != nil {
		t.Errorf("parts of a dense model: %v", list)
	}
}

// TestSeparateParts checks that ops of the device between the routing and the products divide them.
func TestSeparateParts(t *testing.T) {
	m := mixture()
	m.Ops = slices.Insert(m.Ops, 4, model.Op{Kind: model.OpMatMul, Outs: []model.Buf{model.BufY}})
	list := Experts(m)
	if len(list) != 2 || list[0].To != 4 || list[0].Out != nil || list[1].From != 5 || list.Has(4) ||
		list.Next(4) != &list[1] || list.Before(4) != &list[0] {
		t.Errorf("parts %+v", list)
	}
}
