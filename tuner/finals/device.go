package finals

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"sandwich/plans"
	"sandwich/plans/evidence"
	"sandwich/runtime/device"
	"sandwich/runtime/phase"
	"sandwich/tuner/arms"
	"sandwich/tuner/partition"
	"sandwich/tuner/race"
	"sandwich/tuner/ranking"
	"sandwich/tuner/run"
)

// Device is a device that may run phases.
type Device struct {
	ID     string
	Device device.Device
	Copies bool // it holds a copy of the weights in addition to that of the cores
}

// A phase is raced on a device if its forwards take at most hopefulDevice times as long as those of
// the default plan, in a first sample that takes at most probeLimit, a part of the budget, with the
// copy of the weights and the compilation of kernels.
const (
	hopefulDevice = 1.5
	probeLimit    = 0.1
)

// deviceArms returns the placements of phases on a device that are not clearly slower than the
// cores: both phases, and each of them alone if the plan for the device has other arithmetic than
// the default plan. They run before the arms of other partitions, which a small budget may not
// reach. A device that cannot run the model is rejected.
func deviceArms(ctx context.Context, r *arms.Race, d Device) (at int, list []*arms.Arm, err error) {
	on, err := r.Loader.OnDevice()
	if err != nil {
		r.Run.Reject("device "+d.ID, err.Error())
		return 0, nil, nil
	}
	both := placed(r, on, d, on.Served()...)
	var fast []phase.Phase
	for _, ph := range on.Served() {
		ok, err := hopeful(ctx, r, both, ph)
		if gone := (*race.Absent)(nil); errors.As(err, &gone) {
			r.Run.Reject(both.Name, gone.Why)
			return 0, nil, nil
		}
		if err != nil {
			return 0, nil, err
		}
		if ok {
			fast = append(fast, ph)
		}
	}
	if len(fast) == 0 {
		return 0, nil, nil
	}
	list = append(list, placed(r, on, d, fast...))
	if on != r.Home && len(fast) > 1 { // else each phase is judged separately
		list = append(list, placed(r, on, d, fast[0]), placed(r, on, d, fast[1]))
	}
	if at = slices.IndexFunc(r.Arms, func(a *arms.Arm) bool { return a.On != r.Home }); at < 0 {
		at = len(r.Arms)
	}
	return at, list, nil
}

// placed returns the arm of a partition's default plan with some phases on a device.
func placed(r *arms.Race, on *partition.Partition, d Device, phases ...phase.Phase) *arms.Arm {
	a := &arms.Arm{On: on, Device: d.Device}
	a.Name, a.Partition = deviceArm(d.ID, on, phases), arms.DevicePartition(d.ID)
	for _, ph := range on.Served() {
		def := on.Phase(ph)
		a.Phases[ph], a.Sets[ph] = def, ranking.ActiveSet{Name: "default", PUs: def.PUs}
	}
	for _, ph := range phases {
		a.OnDevice[ph] = true
	}
	return a
}

// deviceArm returns the name of an arm on a device.
func deviceArm(id string, on *partition.Partition, phases []phase.Phase) string {
	if len(phases) == len(on.Served()) {
		return plans.DeviceArm(id)
	}
	return phases[0].String() + " " + plans.DeviceArm(id)
}

// hopeful reports whether a device runs the tests of a phase nearly as fast as the default plan. If
// not, it records why.
func hopeful(ctx context.Context, r *arms.Race, a *arms.Arm, ph phase.Phase) (bool, error) {
	limit := time.Duration(probeLimit * float64(r.Run.Budget))
	took, cores := 0.0, 0.0
	for _, x := range r.Tests {
		if x.Phase != ph {
			continue
		}
		x.Times = 1
		seconds, err := r.Probe(ctx, a, x, limit)
		if errors.Is(err, run.ErrNoTime) {
			r.Run.Reject(ph.String()+", "+a.Name, fmt.Sprintf("the first %s took more than %s", x.Name(), limit))
			return false, nil
		}
		if err != nil {
			return false, err
		}
		took, cores = took+seconds, cores+x.Seconds
	}
	if took > hopefulDevice*cores {
		r.Run.Reject(ph.String()+", "+a.Name, evidence.SlowerReason(took/cores))
		return false, nil
	}
	return true, nil
}
