package load

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"sandwich/cmd/sandwich/internal/cli/exit"
	"sandwich/cmd/sandwich/internal/cli/machine"
	"sandwich/cmd/sandwich/internal/show"
	"sandwich/runtime/phase"
	"sandwich/runtime/session"
	"sandwich/tuner"
	"sandwich/tuner/measure/load"
	"sandwich/tuner/replay"
)

// addDevices gives the flags of machines that need not be here.
func (f *loadFlags) addDevices(fs *pflag.FlagSet) {
	fs.StringVar(&f.machine, "machine", "", "simulate devices of this host.yaml or built-in machine")
	fs.StringArrayVar(&f.lanes, "lanes", nil, "with --machine: the device of both phases, or one for prefills and one "+
		"for decode batches, such as npu,gpu; again for another setting")
	fs.StringVar(&f.typ, "type", "q8_0", "with --machine: tensor type of the matrices, where the model is a preset")
}

// checkDevices rejects flags that do not apply to a simulated machine with devices.
func (f *loadFlags) checkDevices() error {
	switch {
	case f.machine == "" && len(f.lanes) > 0:
		return errors.New("--lanes names devices of a --machine: give one, such as core-ultra-125h")
	case f.machine == "":
		return nil
	case len(f.lanes) == 0:
		return errors.New("--machine needs --lanes: gpu for one device, or npu,gpu for prefills on the first and " +
			"decode batches on the second")
	case f.url != "" || f.goodput > 0 || f.sweep != "" || f.svg != "" || len(f.goals) > 0:
		return errors.New("--machine simulates arrivals on devices: leave --url, --goodput, --sweep, --svg and " +
			"--goal out")
	}
	for _, l := range f.lanes {
		if n := strings.Count(l, ",") + 1; n > phase.Count {
			return fmt.Errorf("--lanes %s: give a device, or two with a comma between", show.Clip(l, 40))
		}
	}
	return nil
}

// devices runs the arrivals on devices of a machine, on the virtual clock alone.
func (f *loadFlags) devices(t replay.Trace) (runs []*load.Run, err error) {
	host, err := machine.Named(f.machine)
	if err != nil {
		return nil, err
	}
	subject, err := session.OpenSubject(f.session.Model, f.typ)
	if err != nil {
		return nil, exit.Usage(err)
	}
	defer subject.Close()
	ops, err := subject.Ops()
	if err != nil {
		return nil, exit.Usage(err)
	}
	o := tuner.SimulateOptions{Shape: subject.Shape, Model: ops, KV: f.session.Kv, ISA: f.session.Isa}
	for i, lanes := range f.lanes {
		list := strings.Split(lanes, ",")
		d, assumed, err := tuner.OnDevices(host, o, list[0], list[len(list)-1])
		if err != nil {
			return nil, exit.Usage(err)
		}
		if i == 0 {
			show.Notice("simulated, nothing of it was measured; it rests on assumed figures: " +
				strings.Join(assumed, "; "))
		}
		for _, policy := range slices.Compact(f.policies) {
			sizes := f.sizes
			sizes.Policy = policy
			report, err := d.Serve(t, sizes.Sched())
			if err != nil {
				return nil, err
			}
			runs = append(runs, &load.Run{Report: report, Policy: policy + " on " + lanes, Simulated: true,
				Model: subject.Name, CPU: host.Host.CPUModel})
		}
	}
	return runs, nil
}
