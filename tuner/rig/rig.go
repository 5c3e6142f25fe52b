// Package rig runs whole forwards of a model under any phase of any plan, with the assembly that
// serves, on the workers that time kernels. All races of configurations sample on it.
//
// An Arm says how one phase runs: on the workers, or on a device. A new kind of arm adds a field to
// Arm and a case to Rig.compile and Rig.sample.
package rig

import (
	"context"
	"errors"
	"time"

	"sandwich/plans"
	"sandwich/runtime/device"
	"sandwich/runtime/exec"
	"sandwich/runtime/gguf"
	"sandwich/runtime/kvcache"
	"sandwich/runtime/offload"
	"sandwich/runtime/pool"
	"sandwich/tuner/run"
)

// Rig is a loaded model with the arms that have been compiled for it. One goroutine uses it.
type Rig struct {
	model *exec.Assembly
	free  *exec.Workers // as many unpinned workers, for unpinned arms
	seed  uint64
	size  Size

	device   device.Device   // of onDevice
	onDevice *offload.Runner // the model on a device; nil: no arm uses one

	arms    map[string]*compiled      // by key
	batches map[string]*kvcache.Batch // by test
}

// Size bounds the forwards of a rig.
type Size struct {
	Batch int // sequences that decode together
	Depth int // positions of each sequence before the decoded one
	Long  int // positions before the rows of a step of one sequence; 0: no such steps
}

// blocks returns the number of KV blocks of these forwards and of prompts of one chunk.
func (s Size) blocks(chunk int) int {
	return max(kvcache.BlocksFor(chunk), s.Batch*kvcache.BlocksFor(s.Depth+1), kvcache.BlocksFor(s.Long+s.Batch))
}

// Options returns the options of an assembly for these forwards.
func (s Size) Options(plan *plans.Plan) exec.Options {
	o := exec.Options{Plan: plan, Blocks: s.blocks(plan.Chunk), LogitRows: s.Batch, Sequences: s.Batch}
	if plan.Model.Pooled() { // it may read a whole text at once, and gets none longer than this
		o.Context = plan.Chunk
	}
	return o
}

// Open loads the model. ctx ends the loading. The workers must not be led meanwhile.
func Open(ctx context.Context, w *exec.Workers, file *gguf.File, plan *plans.Plan, size Size, seed uint64,
) (*Rig, error) {
	o := size.Options(plan)
	o.File, o.Workers = file, w
	a, err := exec.Open(ctx, o)
	if err != nil {
		return nil, err
	}
	r := &Rig{model: a, size: size, seed: seed, arms: map[string]*compiled{}, batches: map[string]*kvcache.Batch{}}
	if r.free, err = w.Unbound(); err != nil {
		a.Close()
		return nil, err
	}
	return r, nil
}

// Close releases the model and all compiled arms.
func (r *Rig) Close() {
	for _, a := range r.arms {
		if a.executor != nil {
			a.executor.Close()
		}
	}
	if r.onDevice != nil {
		_ = r.onDevice.Close() // the driver's process ends with the device
	}
	r.free.Close()
	r.model.Close()
}

// Arm says how one phase runs. Arms with equal keys must be equal.
type Arm struct {
	Key      string
	Phase    *plans.Phase
	Unpinned bool // on workers that are not pinned to the PUs of the phase
	// Device runs the phase; nil: the workers. A rig uses one device.
	Device device.Device
}

// compiled is one compiled arm.
type compiled struct {
	executor *exec.Executor  // nil on a device that runs all ops
	device   *offload.Runner // nil on the workers
	workers  []int           // indices in the pool
	unpinned bool
}

// Sample returns the seconds of one forward of a test under an arm, the mean of x.Times forwards.
// At its first use the arm is compiled and runs once to warm up. The gate end stops a forward when
// the time for samples is over, and the error is run.ErrNoTime. All PUs of the arm must have a
// worker.
func (r *Rig) Sample(ctx context.Context, l *pool.Leader, arm Arm, x Test, end exec.Gate) (float64, error) {
	batch, a := r.batch(x), r.arms[arm.Key]
	if a == nil {
		var err error
		if a, err = r.compile(arm); err != nil {
			return 0, err
		}
		r.arms[arm.Key] = a
		if _, err = r.sample(ctx, l, a, batch, 1, end); err != nil {
			return 0, err
		}
	}
	return r.sample(ctx, l, a, batch, x.Times, end)
}

// compile builds the executor of an arm.
func (r *Rig) compile(arm Arm) (a *compiled, err error) {
	a = &compiled{unpinned: arm.Unpinned}
	if arm.Device != nil {
		if a.device, err = r.offload(arm.Device); err != nil || !r.expertsOnCores() {
			return a, err
		}
	}
	on := r.model.Workers
	if arm.Unpinned {
		on = r.free
	}
	if a.workers, err = on.On(arm.Phase.PUs.Slice()); err != nil {
		return nil, err
	}
	a.executor, err = r.model.Compile(arm.Phase, on)
	return a, err
}

// offload copies the model to a device when it is first used.
func (r *Rig) offload(d device.Device) (*offload.Runner, error) {
	if r.onDevice == nil {
		on, err := offload.Open(offload.Options{Device: d, Assembly: r.model, Rows: r.model.Rows(),
			LogitRows: r.size.Batch, Sets: 1, Context: r.model.Blocks * kvcache.BlockTokens,
			ExpertsOnCores: r.expertsOnCores()})
		if err != nil {
			return nil, err
		}
		r.device, r.onDevice = d, on
	}
	if r.device != d {
		return nil, errors.New("the model is on another device")
	}
	return r.onDevice, nil
}

// expertsOnCores reports whether arms on a device leave the experts of the model to the workers.
func (r *Rig) expertsOnCores() bool { return r.model.Model.Experts.Count > 0 }

// sample runs a batch times times and returns the seconds of one forward.
func (r *Rig) sample(ctx context.Context, l *pool.Leader, a *compiled, batch *kvcache.Batch, times int, end exec.Gate,
) (float64, error) {
	if err := context.Cause(ctx); err != nil {
		return 0, err
	}
	if end.Passed(0) {
		return 0, run.ErrNoTime
	}
	if a.device != nil && a.executor == nil {
		return r.sampleOnDevice(ctx, a, batch, times, end, nil)
	}
	var team exec.Team = l
	if a.unpinned {
		team = r.free.Pool
	} else if _, err := l.SetActive(a.workers); err != nil {
		return 0, err
	}
	if a.device != nil {
		return r.sampleOnDevice(ctx, a, batch, times, end, &offload.Cores{Buffers: r.model.Buffers,
			Run: func(b *kvcache.Batch, from int, gate exec.Gate) (int, error) {
				return a.executor.Run(team, b, from, gate)
			}})
	}
	began := time.Now()
	for range times {
		next, err := a.executor.Run(team, batch, 0, end)
		if err != nil {
			return 0, err
		}
		if next < a.executor.Steps() {
			return 0, run.ErrNoTime
		}
	}
	return time.Since(began).Seconds() / float64(times), nil
}

// sampleOnDevice is sample for an arm on the device. cores computes the experts.
func (r *Rig) sampleOnDevice(ctx context.Context, a *compiled, batch *kvcache.Batch, times int, end exec.Gate,
	cores *offload.Cores) (float64, error) {
	began := time.Now()
	for range times {
		next, err := a.device.Forward(ctx, 0, batch, 0, 0, end, cores)
		if err != nil {
			return 0, err
		}
		if next < len(r.model.Model.Ops) {
			return 0, run.ErrNoTime
		}
	}
	return time.Since(began).Seconds() / float64(times), nil
}
