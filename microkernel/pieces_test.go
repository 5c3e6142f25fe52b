package microkernel

import (
	"testing"

	"sandwich/microkernel/internal/jit"
)

// TestBuildPieces checks that BuildPieces builds one tile or one kernel at a time, without a lock
// between two pieces, and that BuildAll has nothing left to build.
func TestBuildPieces(t *testing.T) {
	specs := hammerSpecs(Host().ISAs())
	if len(specs) == 0 {
		t.Skipf("no kernels on this CPU (%s)", Host())
	}
	built.Lock()
	tiles := len(missingTiles(specs))
	built.Unlock()
	want := len(specs)
	if tiles > 0 && !jit.Race {
		want += tiles + 1 // and one piece that loads them
	}
	pieces := 0
	err := BuildPieces(specs, func(piece func() bool) {
		for more := true; more; pieces++ {
			if _, err := Build(specs[pieces%len(specs)]); err != nil { // it needs the lock
				t.Error(err)
			}
			more = piece()
		}
	})
	if err != nil || pieces != want {
		t.Errorf("%d specs with %d tiles took %d pieces (%v), want %d", len(specs), tiles, pieces, err, want)
	}
	if _, err := BuildAll(specs); err != nil {
		t.Error(err)
	}
	built.Lock()
	defer built.Unlock()
	if n := len(missingTiles(specs)); n != 0 && !jit.Race {
		t.Errorf("%d tiles are not built", n)
	}
	bad := []Spec{{ISA: Go}}
	if err := BuildPieces(bad, func(func() bool) { t.Error("a spec that is not valid is built") }); err == nil {
		t.Error("a spec that is not valid is accepted")
	}
}
