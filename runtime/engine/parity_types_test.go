package engine

import (
	"math"
	"testing"

	"sandwich/plans/heuristic"
	"sandwich/runtime/pool"
)

// int8Types is the row of the second reference set for weight types of four bits and less under
// activations of eight.
var int8Types = tolerance{2.5, 0.4, math.Inf(1), 0.85, 1.2, 0}

// TestParityTypes runs one model of each weight type of the second reference set, all of whose
// matrices are of the type, exactly and on the default path.
func TestParityTypes(t *testing.T) {
	skipUnderRace(t)
	for _, name := range []string{"iq4_xs", "mxfp4", "nvfp4", "tq1_0", "tq2_0", "q1_0", "q2_0", "iq3_s", "iq3_xxs",
		"iq2_s", "iq2_xs", "iq2_xxs", "iq1_m", "iq1_s"} {
		t.Run(name, func(t *testing.T) {
			ref, file := openReference(t, "parity2", "llama-"+name)
			for _, arm := range []struct {
				name string
				o    heuristic.Options
				tol  tolerance
			}{
				{"exact", heuristic.Options{Compute: "f32", KV: "f32"}, exactTolerance},
				{"avx2", heuristic.Options{Compute: "f32", KV: "f32", ISA: "avx2"}, exactTolerance},
				{"default", heuristic.Options{}, int8Types},
				{"int8", heuristic.Options{Compute: "int8"}, int8Types},
			} {
				t.Run(arm.name, func(t *testing.T) {
					r := openTestRunner(t, file, arm.o, 64)
					defer r.Close()
					r.Lead(func(l *pool.Leader) { checkParity(t, ref, NewSequence(r, l), arm.tol) })
				})
			}
		})
	}
}
