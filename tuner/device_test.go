package tuner

import (
	"errors"
	"strings"
	"testing"
	"time"

	"sandwich/microkernel/devgen"
	"sandwich/plans"
	"sandwich/runtime/device/sim"
	"sandwich/tuner/arms"
	"sandwich/tuner/finals"
)

// TestTuneDevice checks that a device which takes no time runs both phases of the plan and is
// recorded as the winner, and that one which refuses a kernel is rejected by the reason.
func TestTuneDevice(t *testing.T) {
	for _, c := range []struct {
		name   string
		config sim.Config
		placed int
		reason string
	}{
		{"fast", sim.Config{Mode: sim.Timed}, 2, ""},
		{"refuses", sim.Config{Mode: sim.Timed, Refuse: func(*devgen.Kernel) error { return errors.New("no") }}, 0,
			"refuses the kernel"},
	} {
		dev := sim.New(c.config)
		o := tiny(t)
		o.Run.Budget = time.Second
		o.Race.Device = finals.Device{ID: "sim:0", Device: dev}
		b, err := Tune(t.Context(), o)
		if err != nil {
			t.Fatal(err)
		}
		dev.Close()
		reasons := ""
		for _, r := range b.Evidence.Rejected {
			reasons += r.Candidate + ": " + r.Reason + "\n"
		}
		if strings.Contains(reasons, arms.ErrUndecided.Error()) {
			t.Skip("this machine is too busy to compare finalists in a second")
		}
		id, phases, optional := b.Plan.Device()
		if len(phases) != c.placed || c.placed > 0 && (id != "sim:0" || !optional) ||
			!strings.Contains(reasons, c.reason) {
			t.Errorf("%s: placement %+v; rejected:\n%s", c.name, b.Plan.Placement, reasons)
		}
		for _, p := range phases {
			places, _ := b.Evidence.Places(p.String())
			if len(places) == 0 || places[0].Arm != plans.DeviceArm("sim:0") || len(places[0].Tests[0].Samples) == 0 {
				t.Errorf("%s: the winner of %s is %+v", c.name, p, places)
			}
		}
		if table, ok := b.Plan.Prefill.Table(b.Plan.Weights[0].WeightKey); !ok || len(table.Rules) == 0 {
			t.Errorf("%s: the cores have no table for the phases of the device", c.name)
		}
	}
}
