package roofline

import (
	"sandwich/microkernel"
	"sandwich/profiles"
)

// PortRates holds measured instructions per second of one core.
type PortRates struct {
	// Alone is the rate of each class by itself; 0 if unknown.
	Alone [microkernel.InstructionClasses]float64
	// Together is the total rate of two classes that share ports, in both orders of the indexes; 0
	// if they do not share ports or it is unknown.
	Together [microkernel.InstructionClasses][microkernel.InstructionClasses]float64
}

// Ports returns the port throughputs of an instruction set, zero if not measured.
func (m *Machine) Ports(isa microkernel.ISA) PortRates { return PortsOf(m.profile.Ceilings, isa) }

// PortsOf returns the port throughputs in a list of ceilings, each from its best sample, since
// other load only slows a core down.
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

// unhindered is the fraction of its rate alone above which a class counts as not slowed by another
// one.
const unhindered = 0.95

// mixed sets Together from the rate of a mix of two classes, unless one of them runs about as fast
// as alone. The last instruction of the mix is the second class.
func (r *PortRates) mixed(mix []microkernel.InstructionClass, rate float64) {
	first, second := mix[0], mix[len(mix)-1]
	each := rate / float64(len(mix))
	if each*float64(len(mix)-1) >= unhindered*r.Alone[first] || each >= unhindered*r.Alone[second] {
		return
	}
	r.Together[first][second], r.Together[second][first] = rate, rate
}

// Known reports whether there are rates.
func (r *PortRates) Known() bool { return r.Alone[microkernel.MultiplyInstruction] > 0 }

// Cycles returns the cycles of the busiest ports for some instructions: of vector arithmetic, and
// of loads. A cycle is the time of two multiply-adds.
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

// Seconds returns the minimum time of some instructions on one core, and the resource that limits
// it: a class, two classes that share ports ("dot+shuffle"), or all vector arithmetic ("vector"),
// which is limited to the rate of the fastest two classes. It ignores limits that single classes
// and pairs do not show, such as the issue width, and classes without a rate, so it is a lower
// bound.
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

// vectors returns the total rate of the fastest two classes of vector arithmetic, or of the fastest
// one.
func (r *PortRates) vectors() (largest float64) {
	for i := range microkernel.InstructionClasses {
		if !i.Arithmetic() || !(r.Alone[i] > 0) {
			continue
		}
		largest = max(largest, r.Alone[i])
		for j := range i {
			switch {
			case !j.Arithmetic() || !(r.Alone[j] > 0):
			case r.Together[i][j] > 0:
				largest = max(largest, r.Together[i][j])
			default:
				largest = max(largest, r.Alone[i]+r.Alone[j])
			}
		}
	}
	return largest
}
