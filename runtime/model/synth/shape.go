package synth

import (
	"sandwich/plans"
	"sandwich/runtime/gguf"
	"sandwich/runtime/model"
	"sandwich/runtime/model/arch"
	"sandwich/runtime/model/modelshape"
	"sandwich/runtime/model/tensors"
)

// Shape returns the shape of the file that Write writes for the configuration and a file type.
func Shape(c model.Config, t FileType) (plans.ModelShape, error) {
	if err := arch.Check(c); err != nil {
		return plans.ModelShape{}, err
	}
	return modelshape.Make(c, func(s tensors.Spec) (gguf.Type, error) { return t.of(s, c), nil })
}
