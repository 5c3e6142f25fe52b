package kernels

import (
	"cmp"

	"sandwich/microkernel"
	"sandwich/profiles"
	"sandwich/roofline"
	"sandwich/runtime/gguf"
)

// ProductCeilings are the ceilings of products on a machine.
type ProductCeilings struct {
	Host    *profiles.Profile
	machine *roofline.Machine
	isa     string
	streams map[int]float64 // B/s of the best product of one row with cold weights in this run, by threads
	// Ports has the port throughput of one core by class of instructions; zero if not measured.
	Ports roofline.PortRates
}

// NewProductCeilings returns the ceilings of kernels of an instruction set; "" is the widest.
func NewProductCeilings(host *profiles.Profile, isa string) ProductCeilings {
	if isa == "" {
		isa = host.Features().Best().String()
	}
	return ProductCeilings{Host: host, machine: roofline.NewMachine(host), isa: isa}
}

// weightBytes returns the size of the weights of a product in a model file, or 0 if the type is
// unknown. Figures from a file are of float32 libraries.
func (r *ProductRow) weightBytes() float64 {
	t, err := gguf.ParseType(cmp.Or(r.Type, "f32"))
	if err != nil {
		return 0
	}
	return float64(t.RowBytes(r.K)) * float64(r.N)
}

// Fill sets the figures derived from all products of a run: the read rate of cold weights, and the
// ceilings.
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
		if use := PortsOf(&g.Ports, rows[i].under, rows[i].M); use.Seconds > 0 {
			rows[i].PortCeiling, rows[i].Busiest = float64(rows[i].Threads)/use.Seconds/1e9, use.Busiest
		}
	}
}

// Peak returns the multiply-add peak in FLOP/s, or 0 if unknown.
func (g ProductCeilings) Peak(compute string, threads int) float64 {
	if c, err := microkernel.ParseCompute(compute); err == nil {
		compute = c.Ceiling()
	}
	return g.machine.Peak(g.machine.First(threads), roofline.Path{ISA: g.isa, Type: compute}).Value
}

// memory returns the bandwidth in B/s: the calibrated one, or that of a product of this run if it
// is higher; 0 if unknown.
func (g ProductCeilings) memory(threads int) float64 {
	return max(g.machine.Bandwidth(g.machine.First(threads), roofline.Local).Value, g.streams[threads])
}

// of returns the FLOP/s that the multiply-add peak and, for cold weights, the memory bandwidth
// allow a product; 0 if a ceiling is unknown. Hot weights have no memory ceiling, because they may
// be in any cache.
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

// PerRow returns the FLOP/s that one row of M allows while weights come from memory.
func (g ProductCeilings) PerRow(r *ProductRow) float64 {
	bytes := r.weightBytes()
	if bytes == 0 {
		return 0
	}
	return g.memory(r.Threads) * 2 * float64(r.K) * float64(r.N) / bytes
}

// overOneRow sets the time of each product relative to that of one row.
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
