package llm

import (
	"errors"
	"maps"
	"testing"

	"sandwich/runtime/energy"
)

// TestSetEnergy checks the joules per token of a row, and those of a device if the processor's
// counter is not readable.
func TestSetEnergy(t *testing.T) {
	used := energy.Reading{{Name: "package-0", Domain: energy.Package, Joules: 30},
		{Name: "package-0/core", Domain: energy.Core, Joules: 20}, {Name: "cuda:0", Domain: energy.Device, Joules: 10}}
	var r Row
	r.setEnergy(used, 20)
	want := map[string]float64{"package-0": 1.5, "package-0/core": 1, "cuda:0": 0.5}
	if r.JoulesPerToken != 2 || r.JoulesOf != "package-0, cuda:0" || r.NoEnergy != "" || !maps.Equal(r.BySource, want) {
		t.Errorf("%+v", r)
	}
	used[0].Err, used[1].Err = errors.New("no permission"), errors.New("no permission")
	r = Row{}
	r.setEnergy(used, 20)
	want = map[string]float64{"cuda:0": 0.5}
	if r.JoulesPerToken != 0 || r.NoEnergy != "package-0: no permission" || !maps.Equal(r.BySource, want) {
		t.Errorf("%+v", r)
	}
}
