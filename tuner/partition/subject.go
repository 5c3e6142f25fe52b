package partition

import (
	"fmt"

	"sandwich/plans"
	"sandwich/plans/heuristic"
	"sandwich/profiles"
	"sandwich/runtime/gguf"
	"sandwich/runtime/model"
	"sandwich/runtime/model/modelshape"
	"sandwich/runtime/model/synth"
)

// Subject is what a run tunes: a model on a machine, with the properties that the user requests of
// the plan. One of File and Config is required.
type Subject struct {
	Profile *profiles.Profile // of this machine
	File    *gguf.File        // the model; the finalists run its weights
	Config  *model.Config     // without a file: shapes to tune for, run with random weights
	Type    synth.FileType    // type of the weights of Config

	// Plan has the requested properties of the plan: threads, ranks, instruction set, arithmetic,
	// type of the cache and maximum rows. Several ranks change the bits.
	Plan heuristic.Options
}

// Shape returns the shape of the model.
func (s *Subject) Shape() (plans.ModelShape, error) {
	if s.File != nil {
		return modelshape.Of(s.File)
	}
	return synth.Shape(*s.Config, s.Type)
}

// CheckHost rejects a profile of another machine, because measurements of this machine would be
// recorded under the other one's name.
func (s *Subject) CheckHost() error {
	here, err := profiles.Live()
	if err != nil {
		return err
	}
	if here.Fingerprint() != s.Profile.Fingerprint() {
		return fmt.Errorf("%w: the profile describes %s with PUs %s, this is %s with PUs %s; make one here with "+
			"`sandwich probe -o host.yaml`",
			plans.ErrForeignHost, s.Profile.Host.CPUModel, s.Profile.Allowed(), here.Host.CPUModel, here.Allowed())
	}
	return nil
}
