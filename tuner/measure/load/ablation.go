package load

import (
	"context"
	"errors"
	"time"

	"sandwich/runtime/device/sim"
	"sandwich/runtime/engine"
	"sandwich/runtime/phase"
	"sandwich/tuner/replay"
)

// Ablation measures what each part of the dispatch to a device contributes: it runs the arrivals on
// an engine with a simulated device with all parts, and with each part switched off in the engine.
type Ablation struct {
	Lanes                 // Speeds is not used
	Speed   float64       // arithmetic of the device, as a multiple of the cores'
	Static  float64       // factor of the arithmetic of products whose shape is a constant of the kernel
	Compile time.Duration // of a kernel
	Traffic bool          // the device reads memory as it would
}

// The parts that can be switched off.
const (
	partSplit          = "elastic split"
	partDisaggregation = "disaggregation" // the device runs both phases; prompts are not split
	partPreemption     = "preemption"
	partPiggybacking   = "piggybacking"
	partBandwidth      = "bandwidth-aware dispatch"
	partCompilation    = "background compilation"
)

// parts lists what is measured: all parts, and all but one.
var parts = []string{"", partSplit, partDisaggregation, partPreemption, partPiggybacking, partBandwidth,
	partCompilation}

// AblationRow is the result without one part, over all runs. Its JSON is stable. Times are in
// seconds.
type AblationRow struct {
	Without string  `json:"without"` // the part that is switched off, "" for none
	P50     float64 `json:"reactive_ttft_p50"`
	P95     float64 `json:"reactive_ttft_p95"`
	TPOT    float64 `json:"reactive_tpot_mean"`
	// Proactive is LaneRow.Proactive.
	Proactive float64 `json:"proactive_tokens_per_second"`
	Reactive  int     `json:"reactive_requests"`
	Halts     int64   `json:"halts"`
	Quanta    int64   `json:"quanta"`
	Divided   int64   `json:"divided_prefills"`
	Static    int64   `json:"static_launches"`
	Runs      int     `json:"runs"`
	Model     string  `json:"model"`
	CPU       string  `json:"cpu"`
}

// Measure runs the arrivals on the cores, whose speed the device multiplies, and then without each
// part.
func (a *Ablation) Measure(ctx context.Context) (rows []AblationRow, err error) {
	cores, err := a.arrangement(ctx, lanesCores, engine.DeviceOptions{}, nil)
	if err != nil {
		return nil, err
	}
	r, err := coresRoofline(cores)
	if err != nil {
		return nil, err
	}
	r.FLOPs, r.Bandwidth, r.Static = r.FLOPs*a.Speed, r.Bandwidth*a.Bandwidth, a.Static
	for _, part := range parts {
		row, err := a.without(ctx, part, r)
		if err != nil {
			return nil, err
		}
		rows = append(rows, row)
	}
	return rows, nil
}

// without runs the arrivals with a part switched off.
func (a *Ablation) without(ctx context.Context, part string, r sim.Roofline) (row AblationRow, err error) {
	c := sim.Config{Mode: sim.Timed, Unified: true, Launch: a.Launch, CopyBytesPerS: a.Copy, Compile: a.Compile,
		KernelDuration: r.KernelDuration}
	if a.Traffic {
		c.KernelBytes = r.KernelBytes
	}
	dev := sim.New(c)
	var lost error
	on := engine.DeviceOptions{Device: dev, Name: "simulated device", Phases: []phase.Phase{phase.Prefill},
		Divide: part != partSplit, Static: part != partCompilation, IgnoreTraffic: part == partBandwidth,
		Lost: func(err error) { lost = err }}
	if part == partDisaggregation {
		on.Phases = phase.All[:]
	}
	name := "all parts"
	if part != "" {
		name = "without " + part
	}
	one, err := a.arrangement(ctx, name, on, func(s *engine.Service) {
		s.NoPreemption, s.NoPiggyback = part == partPreemption, part == partPiggybacking
	})
	if err := errors.Join(err, dev.Close(), lost); err != nil {
		return row, err
	}
	reactive := one.reactive()
	row = AblationRow{Without: part, P50: reactive.Quantile(0.5, (*replay.Outcome).TTFT).Seconds(),
		P95:  reactive.Quantile(0.95, (*replay.Outcome).TTFT).Seconds(),
		TPOT: reactive.Mean((*replay.Outcome).TPOT).Seconds(), Proactive: one.proactive(),
		Reactive: len(reactive.Outcomes), Divided: one.after.Divided, Static: one.after.Variants.Launches,
		Runs: len(one.runs)}
	row.Halts, row.Quanta = one.stops()
	return row, nil
}
