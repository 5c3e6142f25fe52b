package heuristic

import (
	"testing"

	"sandwich/microkernel"
)

// portRates are so many instructions of each class in the time of two multiply-adds, of which
// nothing holds another class up.
func portRates(t *testing.T, alone map[string]float64) (r Rates) {
	t.Helper()
	for name, rate := range alone {
		c, ok := microkernel.ParseInstructionClass(name)
		if !ok {
			t.Fatal(name)
		}
		r.Ports.Alone[c] = rate
	}
	return r
}

// TestTilesByPorts checks that tiles follow measured port throughputs. Slow loads favor wide tiles,
// since a narrow tile loads activations for few columns; slow unpacking favors tiles of many rows.
func TestTilesByPorts(t *testing.T) {
	narrow, wide := "avx512/int8/q6_k/13x16/ku32/load/vnni", "avx512/int8/q6_k/4x48/ku32/load/vnni"
	cost := func(text string, loads, logic float64) float64 {
		s, err := microkernel.ParseSpec(text)
		if err != nil {
			t.Fatal(err)
		}
		r := portRates(t, map[string]float64{"multiply": 2, "dot": 2, "logic": logic, "shift": 2, "shuffle": 2,
			"convert": 2, "load": loads, "load-word": loads})
		return r.tileCycles(s, s.MR) / float64(s.MR)
	}
	dear, cheap := cost(narrow, 1, 4)/cost(wide, 1, 4), cost(narrow, 20, 4)/cost(wide, 20, 4)
	if dear < 1.2 || cheap > dear/1.1 {
		t.Errorf("a narrow tile takes %.2f of a wide one's time where loads are dear, %.2f where they are cheap", dear,
			cheap)
	}
	if slow := cost(narrow, 20, 0.4) / cost(wide, 20, 0.4); slow > cheap/1.1 {
		t.Errorf("it takes %.2f where unpacking is slow, %.2f else", slow, cheap)
	}
}

// TestPortCyclesByHand compares the cycles of a tile with a count made by hand. Without rates, and
// for float32, there are none.
func TestPortCyclesByHand(t *testing.T) {
	parse := func(text string) microkernel.Spec {
		s, err := microkernel.ParseSpec(text)
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	s := parse("avx512/int8/q8_0/6x32/ku32/load/vnni")
	r := portRates(t, map[string]float64{"multiply": 2, "dot": 2, "load": 2, "load-word": 100})
	// 96 dot products on two ports, for two panels; fewer of half the rows
	if got, ok := r.portCycles(s, 6); !ok || got < 24 || got > 24.1 {
		t.Errorf("%g cycles, want 24", got)
	}
	if got, ok := r.portCycles(s.WithSpread(), 3); !ok || got < 12 || got > 12.5 {
		t.Errorf("%g cycles for half the rows, want 12", got)
	}
	if _, ok := (Rates{}).portCycles(s, 6); ok {
		t.Error("cycles without rates")
	}
	if _, ok := r.portCycles(parse("avx512/f32/f32/14x32/ku4/load"), 14); ok {
		t.Error("cycles of a tile of floats")
	}
	if got := (Rates{}).tileCycles(s, 6); got < 24 {
		t.Errorf("estimated: %g cycles, want 24 and more", got)
	}
}
