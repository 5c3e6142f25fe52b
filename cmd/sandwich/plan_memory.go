package main

import (
	"fmt"
	"io"

	"sandwich/cmd/sandwich/internal/show"
	"sandwich/plans"
	"sandwich/runtime/exec"
	"sandwich/runtime/kvcache"
	"sandwich/runtime/mem"
	"sandwich/runtime/sched"
	"sandwich/runtime/session"
)

// The sizes that serve has where no flag says otherwise, and that plan verify assumes.
const (
	defaultParallel = 8
	defaultContext  = 4096
)

// memoryRow holds the memory that serving needs for one rank. Its JSON form is stable.
type memoryRow struct {
	Rank        int   `json:"rank"`
	Node        *int  `json:"numa_node"` // null: bound to none
	Weights     int64 `json:"weights_bytes"`
	KV          int64 `json:"kv_bytes"`
	Activations int64 `json:"activation_bytes"`
	Total       int64 `json:"total_bytes"`
	Free        int64 `json:"free_bytes"` // on the node now; -1: not known, or another machine
}

// servingMemory returns the memory that serving under a plan needs, before anything is loaded. If
// here is true, it looks up the free memory of this machine.
func servingMemory(p *plans.Plan, context, parallel int, here bool) ([]memoryRow, error) {
	return memoryOf(p, session.Sizes{Context: context, Parallel: parallel}, here)
}

// memoryOf is servingMemory with the sizes of a server.
func memoryOf(p *plans.Plan, sizes session.Sizes, here bool) ([]memoryRow, error) {
	need, parallel := kvcache.BlocksFor(sizes.Context), sizes.Parallel
	o := exec.Options{Plan: p, Blocks: need * parallel, LogitRows: parallel + 1, Sequences: sched.Residents(parallel),
		StateBytes: sizes.StateBytes}
	if here {
		o.Least = need // of a smaller memory serve takes less
	}
	list, err := exec.ForecastMemory(o)
	if err != nil {
		return nil, err
	}
	var out []memoryRow
	for _, f := range list {
		r := memoryRow{Rank: f.Rank, Weights: f.Weights, KV: f.KV, Activations: int64(sched.Sets) * f.Activations,
			Total: f.Total(sched.Sets), Free: -1}
		if f.Node != mem.AnyNode {
			r.Node = &f.Node
		}
		switch {
		case here && r.Node != nil:
			r.Free = mem.AvailableOn(f.Node)
		case here:
			r.Free = mem.Available()
		}
		out = append(out, r)
	}
	return out, nil
}

// servedContext returns the default limit of the tokens of a request.
func servedContext(p *plans.Plan) int {
	if p.Model.Context > 0 {
		return min(defaultContext, p.Model.Context)
	}
	return defaultContext
}

// totalMemory sums the ranks up.
func totalMemory(rows []memoryRow) (sum int64) {
	for _, r := range rows {
		sum += r.Total
	}
	return sum
}

// printMemory shows the table, a rank a row.
func printMemory(w io.Writer, rows []memoryRow) error {
	var table [][]string
	add := func(name string, r memoryRow) {
		free := "-"
		if r.Free >= 0 {
			free = mem.FormatBytes(r.Free)
		}
		table = append(table, []string{name, mem.FormatBytes(r.Weights), mem.FormatBytes(r.KV),
			mem.FormatBytes(r.Activations), mem.FormatBytes(r.Total), free})
	}
	sum := memoryRow{Free: -1}
	for _, r := range rows {
		name := fmt.Sprintf("rank %d, any node", r.Rank)
		if r.Node != nil {
			name = fmt.Sprintf("rank %d, node %d", r.Rank, *r.Node)
		}
		add(name, r)
		sum.Weights, sum.KV = sum.Weights+r.Weights, sum.KV+r.KV
		sum.Activations, sum.Total = sum.Activations+r.Activations, sum.Total+r.Total
	}
	if len(rows) > 1 {
		add("all", sum)
	}
	return show.Table(w, []string{"memory", "weights", "KV cache", "activations", "together", "free there"}, table,
		1, 2, 3, 4, 5)
}

// memoryText formats the memory of serving a plan on one line.
func memoryText(p *plans.Plan) string {
	rows, err := servingMemory(p, servedContext(p), defaultParallel, false)
	if err != nil {
		return "not known: " + err.Error()
	}
	return fmt.Sprintf("%s to serve %d requests of up to %d tokens", mem.FormatBytes(totalMemory(rows)),
		defaultParallel,
		servedContext(p))
}
