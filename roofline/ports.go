package roofline

import "sandwich/microkernel"

// PortRates is how many instructions one core makes in a second; calibrate.Ports measures them.
type PortRates struct {
	// Alone is that of each class by itself; 0 where it is not known.
	Alone [microkernel.InstructionClasses]float64
	// Together, the same both ways round, is that of two classes at a time where they get into each
	// other's way; 0 where they do not, or where it is not known.
	Together [microkernel.InstructionClasses][microkernel.InstructionClasses]float64
}

// Seconds is the least time in which one core makes so many instructions, and what needs it: a
// class, two classes that share ports ("dot+shuffle"), or all of vector arithmetic ("vector"), of
// which no more are made than of the fastest two classes. What the figures of single classes and
// pairs do not show is left out (how many instructions a core takes in, ports that three classes
// share), as are classes without a rate, so that the roof is rather too high than too low.
func (r *PortRates) Seconds(c microkernel.InstructionCounts) (seconds float64, busiest string) {
	least := func(n, rate float64, name func() string) {
		if t := n / rate; rate > 0 && t > seconds {
			seconds, busiest = t, name()
		}
	}
	all := 0.0
	for i := range microkernel.InstructionClasses {
		if i == microkernel.OtherInstruction || !(r.Alone[i] > 0) || c[i] == 0 {
			continue
		}
		least(c[i], r.Alone[i], i.String)
		for j := range i {
			if c[j] > 0 {
				least(c[i]+c[j], r.Together[i][j], func() string { return j.String() + "+" + i.String() })
			}
		}
		if i.Arithmetic() {
			all += c[i]
		}
	}
	least(all, r.vectors(), func() string { return "vector" })
	return seconds, busiest
}

// vectors is how much of vector arithmetic the fastest two classes are, or the fastest alone.
func (r *PortRates) vectors() (most float64) {
	for i := range microkernel.InstructionClasses {
		if !i.Arithmetic() || !(r.Alone[i] > 0) {
			continue
		}
		most = max(most, r.Alone[i])
		for j := range i {
			switch {
			case !j.Arithmetic() || !(r.Alone[j] > 0):
			case r.Together[i][j] > 0:
				most = max(most, r.Together[i][j])
			default:
				most = max(most, r.Alone[i]+r.Alone[j])
			}
		}
	}
	return most
}
