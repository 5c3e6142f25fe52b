// Package footprint estimates the memory that serving under a plan takes, without loading the
// model.
package footprint

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

// Default sizes of serve, which plan verify and plan export assume.
const (
	DefaultParallel = 8
	DefaultContext  = 4096
	DefaultQueue    = 64
)

// Row holds the memory that serving needs for one rank. Its JSON form is stable.
type Row struct {
	Rank        int   `json:"rank"`
	Node        *int  `json:"numa_node"` // null if the rank is bound to no node
	Weights     int64 `json:"weights_bytes"`
	KV          int64 `json:"kv_bytes"`
	Activations int64 `json:"activation_bytes"`
	Total       int64 `json:"total_bytes"`
	Free        int64 `json:"free_bytes"` // free now on the node; -1 if unknown or for another machine
}

// Serving estimates the memory that serving under a plan takes, by rank, without loading the
// model. If here is true, it also looks up the free memory of this machine.
func Serving(p *plans.Plan, context, parallel int, here bool) ([]Row, error) {
	return Sized(p, session.Sizes{Context: context, Parallel: parallel}, here)
}

// Sized is like Serving for the sizes of a server.
func Sized(p *plans.Plan, sizes session.Sizes, here bool) ([]Row, error) {
	need, parallel := kvcache.BlocksFor(sizes.Context), sizes.Parallel
	o := exec.Options{Plan: p, Blocks: need * parallel, LogitRows: sched.DecodeRows(parallel, p.BatchMax),
		Sequences: sched.Residents(parallel), StateBytes: sizes.StateBytes}
	o.DraftRows = o.LogitRows - 1
	switch {
	case sizes.Blocks > 0:
		o.Blocks, o.Context = sizes.Blocks, sizes.Context
	case here:
		o.Least = need // serve uses fewer blocks if memory is short
	}
	list, err := exec.ForecastMemory(o)
	if err != nil {
		return nil, err
	}
	var out []Row
	for _, f := range list {
		r := Row{Rank: f.Rank, Weights: f.Weights, KV: f.KV, Activations: int64(sched.Sets) * f.Activations,
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

// Context returns the default limit of tokens per request under a plan.
func Context(p *plans.Plan) int {
	if p.Model.Context > 0 {
		return min(DefaultContext, p.Model.Context)
	}
	return DefaultContext
}

// Total returns the total over all ranks in bytes.
func Total(rows []Row) (sum int64) {
	for _, r := range rows {
		sum += r.Total
	}
	return sum
}

// Print prints a table with one rank per row.
func Print(w io.Writer, rows []Row) error {
	var table [][]string
	add := func(name string, r Row) {
		free := "-"
		if r.Free >= 0 {
			free = mem.FormatBytes(r.Free)
		}
		table = append(table, []string{name, mem.FormatBytes(r.Weights), mem.FormatBytes(r.KV),
			mem.FormatBytes(r.Activations), mem.FormatBytes(r.Total), free})
	}
	sum := Row{Free: -1}
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
	return show.Table(w, []string{"memory", "weights", "KV cache", "activations", "total", "free"}, table,
		1, 2, 3, 4, 5)
}

// Text describes the memory of serving under a plan in one line.
func Text(p *plans.Plan) string {
	rows, err := Serving(p, Context(p), DefaultParallel, false)
	if err != nil {
		return "unknown: " + err.Error()
	}
	return fmt.Sprintf("%s to serve %d requests of up to %d tokens", mem.FormatBytes(Total(rows)),
		DefaultParallel,
		Context(p))
}
