package ranking

import (
	"context"
	"fmt"
	"runtime"
	"runtime/metrics"
	"time"

	"sandwich/profiles"
	"sandwich/topotree"
	"sandwich/topotree/hwloc"
)

// GrowthRow is the cost of ranking all service configurations on a machine of some size. Its JSON
// is stable.
type GrowthRow struct {
	PUs            int     `json:"pus"`
	Nodes          int     `json:"nodes"`
	Trees          int     `json:"trees"`
	Truncated      bool    `json:"truncated"` // more trees exist than were walked
	Sections       int     `json:"sections"`
	Configurations int     `json:"configurations"`
	DistinctCosts  int     `json:"distinct_costs"`
	Simulated      int     `json:"simulated"`
	Seconds        float64 `json:"seconds"`
	Bytes          uint64  `json:"heap_bytes"` // maximum observed
}

// GrowthMachine is the machine whose size Growth varies: the first built-in one of the paper's
// figure 3a, with as many packages as the PUs require and two nodes of 24 or 32 PUs each.
const GrowthMachine = "kunpeng920"

// Growth ranks the configurations of machines of the given sizes, in PUs, and calls visit with each
// row when it is complete. It ignores the profile of o.
func Growth(ctx context.Context, o Options, sizes []int, visit func(GrowthRow)) error {
	for _, n := range sizes {
		host, err := machineOf(n)
		if err != nil {
			return err
		}
		o.Profile = host
		runtime.GC()
		peak, stop := watchHeap()
		began := time.Now()
		r, err := Simulate(ctx, o)
		took := time.Since(began)
		stop()
		if err != nil {
			return fmt.Errorf("%d PUs: %w", n, err)
		}
		visit(GrowthRow{PUs: n, Nodes: len(NodeIDs(host)), Trees: r.Trees, Truncated: r.Truncated, Sections: r.Sections,
			Configurations: r.Configs, DistinctCosts: r.Costs, Simulated: len(r.Ranked), Seconds: took.Seconds(),
			Bytes: *peak})
	}
	return nil
}

// smallNode and largeNode are the sizes of the NUMA nodes of a machine of Growth, in PUs. A package
// has two nodes.
const (
	smallNode = 24
	largeNode = 32
)

// CheckSize returns an error if Growth does not accept a machine of pus PUs. The error names the
// accepted sizes.
func CheckSize(pus int) error {
	if pus <= 0 || pus%(2*smallNode) != 0 && pus%(2*largeNode) != 0 || pus > topotree.MaxPUs {
		return fmt.Errorf("give multiples of %d or %d, up to %d", 2*smallNode, 2*largeNode, topotree.MaxPUs)
	}
	return nil
}

// machineOf returns GrowthMachine with the given number of PUs.
func machineOf(pus int) (*profiles.Profile, error) {
	if err := CheckSize(pus); err != nil {
		return nil, fmt.Errorf("%d PUs: %w", pus, err)
	}
	each := smallNode
	if pus%(2*each) != 0 {
		each = largeNode
	}
	p, err := profiles.Builtin(GrowthMachine)
	if err != nil {
		return nil, err
	}
	p.Machine, err = hwloc.ReadSynthetic(fmt.Sprintf(
		"pack:%d numa:2(memory=32GiB) l3:1(size=24MiB) l2:%d(size=512KiB) core:1 pu:1", pus/(2*each), each))
	p.Matrices, p.Sets = nil, nil // they belong to the original machine's nodes
	return p, err
}

// watchHeap records the maximum heap size until it is stopped.
func watchHeap() (peak *uint64, stop func()) {
	const live = "/memory/classes/heap/objects:bytes"
	peak = new(uint64)
	done, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		sample := []metrics.Sample{{Name: live}}
		for tick := time.NewTicker(5 * time.Millisecond); ; {
			metrics.Read(sample)
			*peak = max(*peak, sample[0].Value.Uint64())
			select {
			case <-tick.C:
			case <-done:
				tick.Stop()
				return
			}
		}
	}()
	return peak, func() { close(done); <-ended }
}
