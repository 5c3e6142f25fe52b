package handover

import (
	"slices"

	"sandwich/runtime/model"
)

// Part is the consecutive ops [From, To) that the cores compute in a forward on a device.
type Part struct {
	From, To int
	In       []model.Buf // activations that the part reads and the device has written
	Out      []model.Buf // activations that the part writes and the device reads
	Rotates  bool        // the part needs the angles that the first op of a forward computes
}

// Parts lists the parts of a forward in ascending order. None overlap or follow each other
// directly.
type Parts []Part

// Experts returns the parts with the routing and the products of experts, nil for a dense model.
func Experts(m *model.Model) (list Parts) {
	for i := range m.Ops {
		if !m.Ops[i].Kind.OfExperts() {
			continue
		}
		if n := len(list); n == 0 || list[n-1].To != i {
			list = append(list, Part{From: i})
		}
		p := &list[len(list)-1]
		p.To = i + 1
		p.add(&m.Ops[i])
	}
	return list
}

// Layers returns the part with all layers from `first` on up to the head, nil if there is none. The
// device computes the layers before and the head.
func Layers(m *model.Model, first int) Parts {
	begin := slices.IndexFunc(m.Ops, func(op model.Op) bool { return op.Kind == model.OpMatMul && op.Layer == first })
	end := slices.IndexFunc(m.Ops, func(op model.Op) bool { return op.Kind == model.OpGather })
	if begin < 0 || end <= begin {
		return nil
	}
	return Parts{{From: begin, To: end, In: []model.Buf{model.BufX, model.BufH},
		Out: []model.Buf{model.BufH}, Rotates: true}}
}

// add notes the activations of the next op of the part. Those of single experts stay on the cores.
func (p *Part) add(op *model.Op) {
	switch op.Kind {
	case model.OpRoute:
		p.reads(model.BufRouter)
	case model.OpDispatch:
		p.reads(model.BufH)
	case model.OpCombine:
		if op.Accumulate {
			p.reads(op.Outs[0])
		}
		if op.Gate != nil {
			p.reads(model.BufH)
		}
		p.Out = append(p.Out, op.Outs[0])
	}
}

func (p *Part) reads(b model.Buf) {
	if !slices.Contains(p.In, b) && !slices.Contains(p.Out, b) {
		p.In = append(p.In, b)
	}
}

// Has reports whether the cores compute an op.
func (l Parts) Has(op int) bool {
	p := l.Next(op)
	return p != nil && p.From <= op
}

// Next returns the part that contains an op, else the first part after it, else nil.
func (l Parts) Next(op int) *Part {
	i, _ := slices.BinarySearchFunc(l, op, func(p Part, op int) int { return p.To - 1 - op })
	if i == len(l) {
		return nil
	}
	return &l[i]
}

// Before returns the part that ends where an op begins, or nil.
func (l Parts) Before(op int) *Part {
	if p := l.Next(op - 1); op > 0 && p != nil && p.To == op {
		return p
	}
	return nil
}

// Multiply reports whether the cores multiply by a weight of the model.
func (l Parts) Multiply(m *model.Model, weight int) bool {
	for i := range l {
		for op := l[i].From; op < l[i].To; op++ {
			if slices.Contains(m.Ops[op].W, weight) {
				return true
			}
		}
	}
	return false
}

// OnDevice reports whether the ops outside of the parts read or write an activation.
func (l Parts) OnDevice(m *model.Model, buf model.Buf) bool {
	switch buf {
	case model.BufX, model.BufH, model.BufY:
		return true
	}
	for i := range m.Ops {
		op := &m.Ops[i]
		if !l.Has(i) && (slices.Contains(op.Outs, buf) || op.Kind == model.OpAttention && buf == model.BufAtt) {
			return true
		}
	}
	return false
}
