package measure

import (
	"sandwich/microkernel"
	"sandwich/plans"
	"sandwich/roofline"
)

// portUse is what the main loops of a kernel make of the ports of one core, each in seconds per
// FLOP of a product. What is done once for all row tiles is left out: widening, and turning weights
// into bytes for a matrix unit.
type portUse struct {
	seconds float64                                 // at the least; 0 where nothing is known
	busy    [microkernel.InstructionClasses]float64 // that each class would take alone
	busiest string
}

// portsOf is that of a product of m rows under a schedule.
func portsOf(ports *roofline.PortRates, s plans.Schedule, m int) (u portUse) {
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
			return portUse{}
		}
		least, busiest := ports.Seconds(counts)
		u.seconds += float64(t.n) * least / flop
		u.busiest = busiest
		for c, n := range counts {
			if rate := ports.Alone[c]; rate > 0 {
				u.busy[c] += float64(t.n) * n / rate / flop
			}
		}
	}
	return u
}
