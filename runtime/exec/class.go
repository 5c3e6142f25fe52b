package exec

import (
	"sandwich/microkernel"
	"sandwich/plans"
)

// class is a kind of worker (plans.Class) with the code that it runs.
type class struct {
	name    string // as the plan's tables name it; "" is the main one
	kernels *Kernels
}

// newClasses builds the code of the main class and of those that a plan (or nil) has beside it.
func newClasses(main *Kernels, plan *plans.Plan) ([]class, error) {
	list := []class{{kernels: main}}
	if plan == nil {
		return list, nil
	}
	for _, c := range plan.Classes {
		k, err := main.beside(c.ISA)
		if err != nil {
			return nil, err
		}
		list = append(list, class{c.Name, k})
	}
	return list, nil
}

// classOf is the class of the worker on each of some PUs, as a position in w.classes.
func (w *Workers) classOf(pus []int, plan *plans.Plan) []int {
	out := make([]int, len(pus))
	for i, pu := range pus {
		for j := range w.classes[1:] {
			if plan.ClassOf(pu) == w.classes[1+j].name {
				out[i] = 1 + j
			}
		}
	}
	return out
}

// vecsOf is the code of the classes' work beside products.
func vecsOf(classes []class) (vecs []*microkernel.Vec) {
	for _, c := range classes {
		vecs = append(vecs, c.kernels.Vec)
	}
	return vecs
}

// isasOf are the instruction sets of the classes' work beside products.
func isasOf(classes []class) (isas []microkernel.ISA) {
	for _, c := range classes {
		isas = append(isas, c.kernels.Vec.ISA())
	}
	return isas
}
