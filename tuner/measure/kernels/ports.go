package kernels

import (
	"sandwich/microkernel"
	"sandwich/plans"
	"sandwich/roofline"
)

// PortUse is the use of a core's ports by the main loops of a kernel, in seconds per FLOP of a
// product. It excludes work done once for all row tiles: widening, and converting weights to bytes
// for a matrix unit.
type PortUse struct {
	Seconds float64                                 // minimum; 0 if unknown
	Busy    [microkernel.InstructionClasses]float64 // time that each class alone would take
	Busiest string
}

// PortsOf returns the use of a product of m rows under a schedule.
func PortsOf(ports *roofline.PortRates, s plans.Schedule, m int) (u PortUse) {
	k := s.Kernel
	if k.MR == 0 || !k.ISA.Generates() {
		return u
	}
	if s.BM > 0 {
		m = min(m, s.BM)
	}
	tiles := (m + k.MR - 1) / k.MR
	flop := 2 * float64(m*k.NR*k.Iteration())
	for _, t := range []struct{ rows, n int }{{m / tiles, tiles - m%tiles}, {m/tiles + 1, m % tiles}} { // as kernels do
		if t.n == 0 {
			continue
		}
		tile := k
		tile.MR = t.rows
		counts, err := microkernel.Instructions(tile)
		if err != nil {
			return PortUse{}
		}
		minimum, busiest := ports.Seconds(counts)
		u.Seconds += float64(t.n) * minimum / flop
		u.Busiest = busiest
		for c, n := range counts {
			if rate := ports.Alone[c]; rate > 0 {
				u.Busy[c] += float64(t.n) * n / rate / flop
			}
		}
	}
	return u
}
