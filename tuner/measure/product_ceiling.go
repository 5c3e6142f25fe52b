package measure

import (
	"cmp"

	"sandwich/microkernel"
	"sandwich/profiles"
	"sandwich/roofline"
	"sandwich/runtime/gguf"
)

// ProductCeilings are what a machine allows.
type ProductCeilings struct {
	Host    *profiles.Profile
	machine *roofline.Machine
	isa     string
	streams map[int]float64 // bytes a second of the best product of one row with cold weights in this run, by threads
	// Ports is what one core makes of each class of instructions, for ceilings of ports; zero where
	// nobody measured it.
	Ports roofline.PortRates
}

// NewProductCeilings are those of kernels of an instruction set; "" is the widest.
func NewProductCeilings(host *profiles.Profile, isa string) ProductCeilings {
	if isa == "" {
		isa = host.Features().Best().String()
	}
	return ProductCeilings{Host: host, machine: roofline.NewMachine(host), isa: isa}
}

// weightBytes is the length of the weights of a product in a model file; 0 where the type is not
// known. Figures from a file are those of float32 libraries.
func (r *ProductRow) weightBytes() float64 {
	t, err := gguf.ParseType(cmp.Or(r.Type, "f32"))
	if err != nil {
		return 0
	}
	return float64(t.RowBytes(r.K)) * float64(r.N)
}

// Fill sets what follows from the figures of all products of a run: how fast cold weights were
// read, and what the ceilings allow.
func (g *ProductCeilings) Fill(rows []ProductRow) {
	g.streams = map[int]float64{}
	for i := range rows {
		r := &rows[i]
		if r.Weights != Cold {
			continue
		}
		rate := r.weightBytes() * r.GFLOPS * 1e9 / r.flop()
		r.Rate = rate / 1e9
		if r.M == 1 {
			g.streams[r.Threads] = max(g.streams[r.Threads], rate)
		}
	}
	for i := range rows {
		rows[i].Ceiling = g.of(&rows[i]) / 1e9
		if use := portsOf(&g.Ports, rows[i].under, rows[i].M); use.seconds > 0 {
			rows[i].PortCeiling, rows[i].Busiest = float64(rows[i].Threads)/use.seconds/1e9, use.busiest
		}
	}
}

// Peak is the multiply-add peak in FLOP/s, 0 where it is not known.
func (g ProductCeilings) Peak(compute string, threads int) float64 {
	if c, err := microkernel.ParseCompute(compute); err == nil {
		compute = c.Ceiling()
	}
	return g.machine.Peak(g.machine.First(threads), roofline.Path{ISA: g.isa, Type: compute}).Value
}

// memory is the bandwidth in bytes a second: the calibrated one, or what a product of this run
// reached if that is more; 0 where it is not known.
func (g ProductCeilings) memory(threads int) float64 {
	return max(g.machine.Bandwidth(g.machine.First(threads), roofline.Local).Value, g.streams[threads])
}

// of is what the multiply-add peak and, for cold weights, the memory bandwidth allow a product, in
// FLOP/s; 0 where a ceiling is not known. Hot weights may lie in any cache, whose bandwidth is no
// bound that can be named.
func (g ProductCeilings) of(r *ProductRow) float64 {
	peak, bytes := g.Peak(cmp.Or(r.Compute, "f32"), r.Threads), r.weightBytes()
	switch {
	case peak == 0 || g.memory(r.Threads) == 0:
		return 0
	case r.Weights != Cold || bytes == 0:
		return peak
	}
	return min(peak, g.memory(r.Threads)*r.flop()/bytes)
}

// PerRow is the FLOP/s that one row of M allows while weights stream from memory.
func (g ProductCeilings) PerRow(r *ProductRow) float64 {
	bytes := r.weightBytes()
	if bytes == 0 {
		return 0
	}
	return g.memory(r.Threads) * 2 * float64(r.K) * float64(r.N) / bytes
}

// overOneRow sets how the time of each product compares with that of one row.
func overOneRow(rows []ProductRow) {
	type product struct {
		peer, typ, compute, weights string
		threads, n, k               int
	}
	of := func(r *ProductRow) product { return product{r.Peer, r.Type, r.Compute, r.Weights, r.Threads, r.N, r.K} }
	one := map[product]float64{}
	for i := range rows {
		if r := &rows[i]; r.M == 1 {
			one[of(r)] = r.GFLOPS
		}
	}
	for i := range rows {
		if r := &rows[i]; r.M > 1 {
			r.OneRow = one[of(r)] * float64(r.M) / r.GFLOPS
		}
	}
}
