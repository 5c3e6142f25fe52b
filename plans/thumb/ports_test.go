package thumb

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

// TestTilesByPorts: tiles follow the rates of instructions. The dearer loads are beside dot
// products, the more a narrow tile loses, which loads activations for few columns; and the
// slower unpacking is, the more a tile of few rows loses, which unpacks for few rows.
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

// TestPortCyclesByHand: the cycles of a tile whose instructions were counted by hand, and none
// without rates or for a matrix unit.
func TestPortCyclesByHand(t *testing.T) {
	s, err := microkernel.ParseSpec("avx512/f32/f32/14x32/ku4/load")
	if err != nil {
		t.Fatal(err)
	}
	r := portRates(t, map[string]float64{"multiply": 2, "load": 2, "load-word": 100})
	// 32 k of a panel: 14 rows make 448 multiply-adds on two ports, the 32 vectors of W 16 cycles
	if got, ok := r.portCycles(s, 14); !ok || got < 224 || got > 225 {
		t.Errorf("%g cycles, want 224", got)
	}
	if got, ok := r.portCycles(s.WithSpread(), 7); !ok || got < 112 || got > 113 {
		t.Errorf("%g cycles for half the rows, want 112", got)
	}
	if _, ok := (Rates{}).portCycles(s, 14); ok {
		t.Error("cycles without rates")
	}
	if got := (Rates{}).tileCycles(s, 14); got < 224 {
		t.Errorf("reckoned: %g cycles, want 224 and more", got)
	}
}
