package plan

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"sandwich/cmd/sandwich/internal/cli/machine"
	"sandwich/cmd/sandwich/internal/deviceforecast"
	"sandwich/plans/bundle"
	"sandwich/plans/selection"
	"sandwich/profiles"
	"sandwich/profiles/devrates"
	"sandwich/roofline"
	"sandwich/runtime/model"
	"sandwich/runtime/model/cost"
	"sandwich/runtime/model/modelshape"
	"sandwich/runtime/offload"
	"sandwich/runtime/offload/execgraph"
	"sandwich/runtime/phase"
)

// graphForward describes the forwards of execution graphs.
type graphForward struct {
	rows      int // maximum rows of the prefill
	sequences int // of the decode batch
	context   int // positions before the rows
}

// maxGraphRows bounds the rows of a graph, and its positions.
const maxGraphRows = 1 << 20

func (g *graphForward) check() error {
	for _, n := range []struct {
		flag  string
		value int
	}{{"rows", g.rows}, {"sequences", g.sequences}} {
		if n.value < 1 || n.value > maxGraphRows {
			return fmt.Errorf("--%s %d is out of range; give a number from 1 to %d", n.flag, n.value, maxGraphRows)
		}
	}
	if g.context < 0 || g.context > maxGraphRows {
		return fmt.Errorf("--context %d is out of range; give a number of positions from 0 to %d", g.context,
			maxGraphRows)
	}
	return nil
}

// graphs returns the execution graphs of the phases of a plan, and notes on missing predictions.
func (g *graphForward) graphs(b *bundle.Bundle) (graphs []*execgraph.Graph, notes []string, err error) {
	ops, err := modelshape.Outline(b.Plan.Model)
	if err != nil {
		return nil, nil, err
	}
	id, placed, _ := b.Plan.Device()
	id, forecast, err := deviceForecast(id, b, ops)
	if err != nil {
		notes = append(notes, fmt.Sprintf("Times on %s are unknown: %v.", id, err))
	}
	side, sideErr := deviceforecast.CoresSide(&b.Host, ops, &selection.Choice{Plan: &b.Plan, Bundle: b})
	if sideErr != nil {
		notes = append(notes, fmt.Sprintf("Times on the cores are those of the ceilings: %v.", sideErr))
	}
	for _, of := range phase.All {
		if of == phase.Decode && b.Plan.Model.Pooled() {
			break
		}
		o := g.options(b, ops, of)
		var total time.Duration // 0: by the ceilings
		if sideErr == nil {
			total = side[of].Of(o.Rows)
		}
		if o.Cores, err = execgraph.OnCores(g.placer(b, ops), of, o.Rows, total); err != nil {
			return nil, nil, err
		}
		if forecast != nil || len(placed) > 0 {
			o.Device = execgraph.OnDevice(id, forecast, o)
		}
		target := func(p phase.Phase) string {
			if slices.Contains(placed, p) {
				return id
			}
			return execgraph.Cores
		}
		o.Bound, o.Other = target(of), target(phase.All[1-of])
		graph, err := execgraph.New(o)
		if err != nil {
			return nil, nil, err
		}
		graphs = append(graphs, graph)
	}
	return graphs, notes, nil
}

// deviceForecast returns the forecast of a plan on its device, or for the id "" on the first device
// of its host, with the id of the device. Without a device the forecast is nil.
func deviceForecast(id string, b *bundle.Bundle, ops *model.Model) (string, *offload.Forecast, error) {
	rates := ratesOf(id, &b.Host)
	switch {
	case rates == nil && id == "":
		return "", nil, nil
	case rates == nil:
		return id, nil, errors.New("neither host.yaml nor this host has its measured rates; 'sandwich doctor " +
			"devices' measures them")
	}
	if err := b.Plan.DeviceKernels(); err != nil {
		return rates.ID, nil, err
	}
	f, err := offload.NewForecast(rates, ops, &b.Plan)
	return rates.ID, f, err
}

func (g *graphForward) options(b *bundle.Bundle, ops *model.Model, of phase.Phase) execgraph.Options {
	o := execgraph.Options{Model: ops, Phase: of, Rows: min(g.rows, max(1, b.Plan.Chunk)), Heads: 1, Context: g.context,
		KV: b.Plan.KV}
	if of == phase.Decode {
		o.Rows, o.Heads = g.sequences, g.sequences
	}
	return o
}

func (g *graphForward) placer(b *bundle.Bundle, ops *model.Model) *cost.Placer {
	return &cost.Placer{Model: ops, Plan: &b.Plan, Machine: roofline.NewMachine(&b.Host), Context: g.context}
}

// ratesOf returns the rates of the device of a plan, or of the first device of its host for "".
// Rates that were measured on this host take the place of those that host.yaml lacks. It returns
// nil if there are none.
func ratesOf(id string, host *profiles.Profile) *devrates.Device {
	for i := range host.Devices {
		if d := &host.Devices[i]; (id == "" || d.ID == id) && len(d.Classes) > 0 {
			return d
		}
	}
	if id == "" {
		return nil
	}
	stored := machine.DeviceRates().Stored(id)
	made := host.Device(id)
	if stored != nil && made != nil && (made.Name != stored.Name || made.Driver != stored.Driver) {
		return nil // another device
	}
	return stored
}
