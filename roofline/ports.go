package roofline

import (
	"sandwich/microkernel"
	"sandwich/profiles"
)

// PortRates is how many instructions one core makes in a second, as calibrate measured it.
type PortRates struct {
	// Alone is that of each class by itself; 0 where it is not known.
	Alone [microkernel.InstructionClasses]float64
	// Together, the same both ways round, is that of two classes at a time where they get into each
	// other's way; 0 where they do not, or where it is not known.
	Together [microkernel.InstructionClasses][microkernel.InstructionClasses]float64
}

// Ports are those of an instruction set, zero where nobody measured them.
func (m *Machine) Ports(isa microkernel.ISA) PortRates { return PortsOf(m.profile.Ceilings, isa) }

// PortsOf reads the rates of an instruction set, each by its best sample: what else runs slows a
// core down and never speeds it up.
func PortsOf(ceilings []profiles.Ceiling, isa microkernel.ISA) (r PortRates) {
	each := func(take func(mix []microkernel.InstructionClass, rate float64)) {
		for i := range ceilings {
			c := &ceilings[i]
			if rate := max(c.Median, c.Max); c.ISA == isa.String() && c.Device == "" && c.Measured() && rate > 0 {
				take(c.PortMix(), rate)
			}
		}
	}
	each(func(mix []microkernel.InstructionClass, rate float64) {
		if len(mix) == 1 {
			r.Alone[mix[0]] = rate
		}
	})
	each(func(mix []microkernel.InstructionClass, rate float64) {
		if len(mix) > 1 {
			r.mixed(mix, rate)
		}
	})
	return r
}

// unhindered is the share of its rate alone from which a class counts as not held up by another.
const unhindered = 0.95

// mixed notes at which rate the instructions of a mix of two classes were made, the second of which
// is its last: nothing where one of them is made about as fast as alone.
func (r *PortRates) mixed(mix []microkernel.InstructionClass, rate float64) {
	first, second := mix[0], mix[len(mix)-1]
	each := rate / float64(len(mix))
	if each*float64(len(mix)-1) >= unhindered*r.Alone[first] || each >= unhindered*r.Alone[second] {
		return
	}
	r.Together[first][second], r.Together[second][first] = rate, rate
}

// Known says that there are rates to go by.
func (r *PortRates) Known() bool { return r.Alone[microkernel.MultiplyInstruction] > 0 }

// Cycles is how long so many instructions take their busiest port, in cycles of two multiply-adds:
// those of vector arithmetic, and loads.
func (r *PortRates) Cycles(c microkernel.InstructionCounts) (arithmetic, loads float64) {
	var rest microkernel.InstructionCounts
	for i := range microkernel.InstructionClasses {
		if !i.Arithmetic() {
			rest[i], c[i] = c[i], 0
		}
	}
	cycles := r.Alone[microkernel.MultiplyInstruction] / 2
	arithmetic, _ = r.Seconds(c)
	loads, _ = r.Seconds(rest)
	return arithmetic * cycles, loads * cycles
}

// Seconds is the least time in which one core makes so many instructions, and what needs it: a
// class, two classes that share ports ("dot+shuffle"), or all of vector arithmetic ("vector"), of
// which no more are made than of the fastest two classes. What the figures of single classes and
// pairs do not show is left out (how many instructions a core takes in, ports that three classes
// share), as are classes without a rate, so that the ceiling is rather too high than too low.
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
