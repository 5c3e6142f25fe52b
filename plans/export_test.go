package plans

import (
	"sandwich/microkernel"
)

// Forms of plan.yaml, for tests of the schema.
type (
	PlanDoc        = planDoc
	ClassDoc       = classDoc
	TableDoc       = tableDoc
	WeightPlanDoc  = weightPlanDoc
	WeightShapeDoc = weightShapeDoc
)

func (s ModelShape) FFNWidth() int { return s.ffnWidth() }

func TypeBlock(name string) int { return typeBlock(name) }

func (p *Plan) ComputeOf(k WeightKey, of []WeightKey) (microkernel.Compute, error) {
	return p.computeOf(tableShape{WeightKey: k, of: of})
}

func (p *Plan) CheckPlacement() error { return p.checkPlacement() }
