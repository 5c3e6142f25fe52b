package calibrate

import (
	"slices"
	"testing"

	"sandwich/microkernel"
)

// TestPortPairs checks that pairs of instruction classes are mixed in proportion to their rates,
// and arithmetic with arithmetic only.
func TestPortPairs(t *testing.T) {
	class := func(name string) microkernel.InstructionClass {
		c, ok := microkernel.ParseInstructionClass(name)
		if !ok {
			t.Fatal(name)
		}
		return c
	}
	multiply, dot, load, word := class("multiply"), class("dot"), class("load"), class("load-word")
	var rates [microkernel.InstructionClasses]float64
	rates[multiply], rates[dot], rates[load], rates[word] = 2, 0.9, 2, 13
	mixes := portPairs(&rates)
	want := [][]microkernel.InstructionClass{{multiply, multiply, dot}, {word, word, word, word, load}}
	if len(mixes) != 2 || !slices.Equal(mixes[0], want[0]) || !slices.Equal(mixes[1], want[1]) {
		t.Errorf("the mixes are %v, want %v", mixes, want)
	}
}
