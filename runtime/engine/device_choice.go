package engine

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"sandwich/runtime/background"
	"sandwich/runtime/device"
	"sandwich/runtime/engine/forward"
	"sandwich/runtime/exec"
	"sandwich/runtime/kvcache"
	"sandwich/runtime/offload"
	"sandwich/runtime/phase"
	"sandwich/runtime/pool"
	"sandwich/runtime/sched"
)

// deviceTimeout is offload.Options.LeastTimeout. Tests raise it, because they run on busy machines.
var deviceTimeout time.Duration

// openDevice copies the model to the device and sets the phases that it runs. It returns nil if the
// cores run both. positions limits a sequence.
func (o *DeviceOptions) openDevice(ctx context.Context, r *forward.Runner, pieces background.Run, sets, logitRows,
	positions int) (*offload.Runner, error) {
	if o.Device == nil {
		return nil, nil
	}
	options := offload.Options{Device: o.Device, Assembly: r.Assembly(), Rows: r.Assembly().Rows(),
		LogitRows: logitRows, Sets: sets, Context: positions, Rounding: o.Rounding, Static: o.Static,
		ExpertsOnCores: o.ExpertsOnCores, Memory: o.Memory, LeastTimeout: deviceTimeout}
	on, refusal := offload.Open(options)
	if errors.Is(refusal, device.ErrMemory) {
		on = openLayers(&options)
	}
	if on == nil {
		return nil, o.refused(refusal)
	}
	if o.Phases == nil || o.Check || refusal != nil {
		if err := o.measure(ctx, r, on, pieces, positions); err != nil {
			closeDevice(on)
			return nil, o.refused(err)
		}
	}
	if len(o.Phases) == 0 {
		closeDevice(on)
		if refusal != nil {
			return nil, o.refused(fmt.Errorf("%w; its first %d of %d layers would not make the model faster", refusal,
				options.Layers, r.Model.Dims.Layers))
		}
		o.Device = nil
		return nil, nil
	}
	o.needsCores = on.NeedsCores()
	if refusal != nil && o.Note != nil {
		o.Note(fmt.Sprintf("it runs the first %d of %d layers: %v", options.Layers, r.Model.Dims.Layers, refusal))
	}
	if text := o.Memory.Note(on.Copied()); text != "" && o.Note != nil {
		o.Note(text)
	}
	return on, nil
}

// openLayers opens the device for as many of the first layers as its memory holds, and sets their
// number. It returns nil if that is none.
func openLayers(o *offload.Options) *offload.Runner {
	if o.ExpertsOnCores {
		return nil
	}
	for o.Layers = offload.Fit(*o); o.Layers > 0; o.Layers = o.Layers * 7 / 8 {
		if on, err := offload.Open(*o); err == nil {
			return on
		}
	}
	return nil
}

// measure sets the phases that the device runs to those of them, or of all, that it runs faster
// than the cores.
func (o *DeviceOptions) measure(ctx context.Context, r *forward.Runner, on *offload.Runner, pieces background.Run,
	positions int) error {
	t, err := o.times(ctx, r, on, pieces, positions)
	if err != nil {
		return err
	}
	faster := t.faster()
	if o.Phases != nil {
		faster = slices.DeleteFunc(faster, func(p phase.Phase) bool { return !slices.Contains(o.Phases, p) })
	}
	o.Phases = append([]phase.Phase{}, faster...)
	if o.Chose != nil {
		o.Chose(t, o.Phases)
	}
	return nil
}

// times measures forwards on both sides.
func (o *DeviceOptions) times(ctx context.Context, r *forward.Runner, on *offload.Runner, pieces background.Run,
	positions int) (DeviceTimes, error) {
	if o.measured != nil {
		return *o.measured, nil
	}
	return measureDevice(ctx, r, on, pieces, positions)
}

// refused returns the error of a device that cannot run the model, or nil if the cores take its
// place.
func (o *DeviceOptions) refused(err error) error {
	if !o.Optional {
		return err
	}
	if o.Refused != nil {
		o.Refused(err)
	}
	o.Device = nil
	return nil
}

// coresOf returns what computes the parts of a forward on a device that it leaves to the cores, on
// the activations in use.
func coresOf(r *forward.Runner, l *pool.Leader) *offload.Cores {
	return &offload.Cores{Buffers: r.Buffers(),
		Run: func(b *kvcache.Batch, from int, gate exec.Gate) (next int, err error) {
			return r.Forward(l, b, from, gate)
		}}
}

// closeDevice frees the memory on a device; nil: there is none.
func closeDevice(r *offload.Runner) {
	if r != nil {
		_ = r.Close() // the driver's process ends with the device
	}
}

// String returns the rates of both sides in tokens/s.
func (t DeviceTimes) String() string {
	rate := func(rows int, d time.Duration) float64 { return float64(rows) / max(d.Seconds(), 1e-9) }
	return fmt.Sprintf("prefill %.1f tokens/s on the device and %.1f on the cores, decode %.1f and %.1f",
		rate(t.Rows, t.Device[phase.Prefill]), rate(t.Rows, t.Cores[phase.Prefill]),
		rate(1, t.Device[phase.Decode]), rate(1, t.Cores[phase.Decode]))
}

// faster returns the phases that the device runs faster than the cores.
func (t DeviceTimes) faster() (list []phase.Phase) {
	for _, p := range phase.All {
		if t.Device[p] < t.Cores[p] {
			list = append(list, p)
		}
	}
	return list
}

// MeasuredRows is the largest number of rows of the prefill that is measured to choose phases.
const MeasuredRows = 256

// The least time of a few forwards counts, after one that is not counted: on a device it may
// compile kernels. measureLimit bounds the repetitions on slow machines.
const (
	measureLimit = 2 * time.Second
	measureReps  = 3
)

// measureDevice times a forward of each phase on the cores and on the device. A forward is a piece;
// nothing else may run meanwhile.
func measureDevice(ctx context.Context, r *forward.Runner, on *offload.Runner, pieces background.Run,
	positions int) (t DeviceTimes, err error) {
	t.Rows = max(1, min(MeasuredRows, r.Plan.Chunk, positions-2))
	tokens := measuredPrompt(r, t.Rows)
	r.Lead(func(l *pool.Leader) {
		s := NewSequence(r, l)
		defer s.Reset()
		piece := func(f func() error) (err error) {
			pieces.Once(func() {
				l.Take()
				defer l.Give()
				err = f()
			})
			return err
		}
		for _, p := range phase.All {
			if p == phase.Decode {
				if err = piece(func() error { return s.Feed(tokens, t.Rows, NoLogits, nil) }); err != nil {
					return
				}
				on.CoresWrite(&s.batch) // the device copies it in the first forward, which is not counted
			}
			batch := tokens
			if p == phase.Decode {
				batch = tokens[:1]
			}
			cores := func() error { return s.measured(ctx, batch, p, nil) }
			if t.Cores[p], err = fastest(time.Now, piece, cores, false); err != nil {
				return
			}
			device := func() error { return s.measured(ctx, batch, p, on) }
			if t.Device[p], err = fastest(time.Now, piece, device, true); err != nil {
				return
			}
		}
	})
	return t, err
}

// measuredPrompt returns a prompt of n different tokens, as far as the vocabulary has them.
func measuredPrompt(r *forward.Runner, n int) []int32 {
	const stride = 7919 // a prime
	tokens := make([]int32, n)
	for i := range tokens {
		tokens[i] = int32((i*stride + 1) % r.Model.Dims.Vocab)
	}
	return tokens
}

// fastest returns the shortest time of f, which piece calls, by a clock. The first time does not
// count, unless it reaches measureLimit and f does not compile.
func fastest(now func() time.Time, piece func(func() error) error, f func() error, compiles bool) (best time.Duration,
	err error) {
	var all time.Duration
	for i := range measureReps + 1 {
		var took time.Duration
		err := piece(func() error {
			began := now()
			defer func() { took = now().Sub(began) }()
			return f()
		})
		if err != nil {
			return 0, err
		}
		if i == 0 && (compiles || took < measureLimit) {
			continue // it warms caches up
		}
		if best == 0 || took < best {
			best = took
		}
		if all += took; all > measureLimit {
			break
		}
	}
	return best, nil
}

// measured runs a forward of the next tokens, on the device unless it is nil, without advancing.
func (s *Sequence) measured(ctx context.Context, tokens []int32, p phase.Phase, on *offload.Runner) error {
	if err := s.prepare(tokens, p, LastLogits); err != nil {
		return err
	}
	if on == nil {
		_, err := s.r.Forward(s.l, &s.batch, 0, nil)
		return err
	}
	on.CoresWrite(&s.batch)
	_, err := on.Forward(ctx, 0, &s.batch, 0, 0, nil, coresOf(s.r, s.l))
	return err
}

// Accelerator runs forwards of a Runner on a device, for measurements without an engine. It is not
// safe for concurrent use.
type Accelerator struct {
	r      *forward.Runner
	on     *offload.Runner // nil after a loss
	phases []phase.Phase
	device device.Device
	lost   func(error) // see OrCores
	err    error       // why the device is lost
}

// Accelerate copies the model to a device for sequences of at most so many positions and forwards
// with the logits of at most logitRows rows. It returns nil if the cores run both phases.
func Accelerate(ctx context.Context, r *forward.Runner, o DeviceOptions, logitRows, positions int) (*Accelerator,
	error) {
	on, err := o.openDevice(ctx, r, nil, 1, logitRows, positions)
	if err != nil || on == nil {
		return nil, err
	}
	return &Accelerator{r: r, on: on, phases: o.Phases, device: o.Device}, nil
}

// OrCores lets the cores run all forwards after the device is lost, from the one that failed on,
// and calls lost once. Without it, and on a device that is not exact, such a forward fails.
func (a *Accelerator) OrCores(lost func(error)) {
	if a != nil {
		a.lost = lost
	}
}

// Lost returns why the cores run the forwards of the device, or nil.
func (a *Accelerator) Lost() error {
	if a == nil {
		return nil
	}
	return a.err
}

// Runs reports whether the device runs a phase.
func (a *Accelerator) Runs(p phase.Phase) bool {
	return a != nil && a.on != nil && slices.Contains(a.phases, p)
}

// runs reports whether the device runs the forward of a batch.
func (a *Accelerator) runs(b *kvcache.Batch) bool {
	if b.Prefill {
		return a.Runs(phase.Prefill)
	}
	return a.Runs(phase.Decode)
}

// Forward runs a batch on the device or on the cores, as its phase says.
func (a *Accelerator) Forward(ctx context.Context, l *pool.Leader, b *kvcache.Batch) (onDevice bool, err error) {
	if a.runs(b) {
		_, err = a.on.Forward(ctx, 0, b, 0, 0, nil, coresOf(a.r, l))
		if err == nil || a.lost == nil || ctx.Err() != nil || !a.on.Exact() {
			return true, err
		}
		_ = a.device.Close() // its process ends with this one
		a.on, a.err = nil, err
		a.lost(err)
	}
	if a.on != nil {
		a.on.CoresWrite(b)
	}
	_, err = a.r.Forward(l, b, 0, nil)
	return false, err
}

// Close frees the memory on the device.
func (a *Accelerator) Close() {
	if a != nil {
		closeDevice(a.on)
	}
}

// lanes returns the lanes of the scheduler.
func (o *DeviceOptions) lanes() []sched.Lane {
	if o.Device == nil || o.needsCores {
		return []sched.Lane{sched.CoresLane()}
	}
	list := []sched.Lane{{Name: o.Name, Phases: o.Phases}}
	var rest []phase.Phase
	for _, p := range phase.All {
		if !list[0].Serves(p) {
			rest = append(rest, p)
		}
	}
	if len(rest) > 0 {
		list = append(list, sched.Lane{Name: "cores", Phases: rest, Cores: true})
	}
	return list
}
