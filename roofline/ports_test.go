package roofline

import (
	"math"
	"testing"

	"sandwich/microkernel"
	"sandwich/profiles"
)

func TestPortSeconds(t *testing.T) {
	classes := map[string]microkernel.InstructionClass{}
	for c := range microkernel.InstructionClasses {
		classes[c.String()] = c
	}
	var rates PortRates
	for name, r := range map[string]float64{"multiply": 2, "shuffle": 1, "load": 2, "load-word": 3, "store": 1,
		"tile": 1, "dot": 1, "convert": 1} {
		rates.Alone[classes[name]] = r
	}
	for a, b := range map[string]string{"multiply": "shuffle", "load": "load-word"} {
		i, j := classes[a], classes[b]
		of := max(rates.Alone[i], rates.Alone[j])
		rates.Together[i][j], rates.Together[j][i] = of, of
	}
	for _, c := range []struct {
		counts  map[string]float64
		seconds float64
		busiest string
	}{
		{map[string]float64{"multiply": 10, "other": 1000}, 5, "multiply"},
		{map[string]float64{"multiply": 10, "shuffle": 4}, 7, "multiply+shuffle"}, // one of two ports shuffles
		{map[string]float64{"multiply": 1, "shuffle": 4}, 4, "shuffle"},
		{map[string]float64{"multiply": 10, "dot": 4}, 5, "multiply"}, // ports of its own
		{map[string]float64{"multiply": 10, "dot": 4, "shuffle": 4}, 7, "multiply+shuffle"},
		{map[string]float64{"multiply": 10, "dot": 5, "convert": 5}, 20.0 / 3, "vector"},
		{map[string]float64{"load": 8, "load-word": 3}, 4, "load"},
		{map[string]float64{"load": 8, "load-word": 10}, 6, "load+load-word"},
		{map[string]float64{"store": 9, "multiply": 4, "load": 4}, 9, "store"},
		{map[string]float64{"tile": 16, "logic": 100}, 16, "tile"}, // of logic no rate is known
		{nil, 0, ""},
	} {
		var counts microkernel.InstructionCounts
		for name, n := range c.counts {
			counts[classes[name]] = n
		}
		if s, busiest := rates.Seconds(counts); math.Abs(s-c.seconds) > 1e-12 || busiest != c.busiest {
			t.Errorf("%v: %g s for %s, want %g for %s", c.counts, s, busiest, c.seconds, c.busiest)
		}
	}
	rates = PortRates{}
	rates.Alone[classes["multiply"]] = math.Inf(1)
	var many microkernel.InstructionCounts
	many[classes["multiply"]] = 10
	if s, _ := rates.Seconds(many); s != 0 {
		t.Errorf("at an infinite rate: %g", s)
	}
}

// TestPortsOf checks that rates are read by class, and those of a pair only if both classes use the
// same ports.
func TestPortsOf(t *testing.T) {
	ceiling := func(typ string, rate float64) profiles.Ceiling {
		return profiles.Ceiling{Kind: profiles.Compute, ISA: "avx512", Type: typ, PUs: 1,
			Figure: profiles.Figure{Median: rate / 2, Max: rate, N: 5}}
	}
	var ceilings []profiles.Ceiling
	for typ, rate := range map[string]float64{"ports-multiply": 2, "ports-dot": 1, "ports-convert": 1, "ports-load": 2,
		"f32": 9, "ports-nothing": 7, "ports-multiply+nothing": 7,
		"ports-multiply+multiply+dot":     2,   // of ports that both have
		"ports-multiply+multiply+convert": 2.9, // of two more
	} {
		ceilings = append(ceilings, ceiling(typ, rate))
	}
	foreign := ceiling("ports-shift", 3)
	foreign.ISA = "avx2"
	r := PortsOf(append(ceilings, foreign), microkernel.AVX512)
	class := func(name string) microkernel.InstructionClass {
		c, ok := microkernel.ParseInstructionClass(name)
		if !ok {
			t.Fatal(name)
		}
		return c
	}
	multiply, dot := class("multiply"), class("dot")
	if !r.Known() || r.Alone[multiply] != 2 || r.Alone[class("shift")] != 0 || r.Together[multiply][dot] != 2 ||
		r.Together[dot][multiply] != 2 || r.Together[class("convert")][multiply] != 0 {
		t.Errorf("the rates are %+v", r)
	}
	var counts microkernel.InstructionCounts
	counts[multiply], counts[dot], counts[class("load")] = 3, 3, 5
	if arithmetic, loads := r.Cycles(counts); arithmetic != 3 || loads != 2.5 {
		t.Errorf("%g cycles of arithmetic and %g of loads, want 3 and 2.5", arithmetic, loads)
	}
	if none := PortsOf(nil, microkernel.AVX512); none.Known() {
		t.Error("without ceilings there are rates")
	}
}
