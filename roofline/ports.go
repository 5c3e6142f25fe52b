package roofline

import (
	"slices"

	"sandwich/microkernel"
)

// PortRates is how many instructions of each class one core makes in a second; 0 where that is not
// known.
type PortRates [microkernel.InstructionClasses]float64

// Seconds is the least time in which one core makes so many instructions, and the class that needs
// it. Vector arithmetic shares its ports, and so do loads: of two classes that share them, the one
// with the lower rate is taken to have part of the other's, so that no order of instructions is
// faster. How many instructions a core takes in is left out, as are classes without a rate.
func (r PortRates) Seconds(c microkernel.InstructionCounts) (seconds float64, busiest microkernel.InstructionClass) {
	var arithmetic, loads, alone []microkernel.InstructionClass
	for i := range microkernel.InstructionClasses {
		switch i {
		case microkernel.OtherInstruction:
		case microkernel.LoadInstruction, microkernel.WordInstruction:
			loads = append(loads, i)
		case microkernel.StoreInstruction, microkernel.TileInstruction:
			alone = append(alone, i)
		default:
			arithmetic = append(arithmetic, i)
		}
	}
	groups := [][]microkernel.InstructionClass{arithmetic, loads}
	for _, i := range alone {
		groups = append(groups, []microkernel.InstructionClass{i})
	}
	for _, g := range groups {
		g = slices.DeleteFunc(g, func(i microkernel.InstructionClass) bool { return !(r[i] > 0) || c[i] == 0 })
		slices.SortStableFunc(g, func(a, b microkernel.InstructionClass) int {
			if r[a] < r[b] {
				return -1
			}
			return 1
		})
		sum := 0.0
		for _, i := range g { // those so far have no ports but those of the fastest of them
			sum += c[i]
			if t := sum / r[i]; t > seconds {
				seconds, busiest = t, i
			}
		}
	}
	return seconds, busiest
}
