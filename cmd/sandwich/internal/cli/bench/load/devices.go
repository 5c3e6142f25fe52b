package load

import (
	"cmp"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"sandwich/cmd/sandwich/internal/cli/exit"
	"sandwich/cmd/sandwich/internal/cli/flags"
	"sandwich/cmd/sandwich/internal/cli/machine"
	"sandwich/cmd/sandwich/internal/show"
	"sandwich/runtime/phase"
	"sandwich/runtime/session"
	"sandwich/tuner/measure/load"
	"sandwich/tuner/ranking"
	"sandwich/tuner/replay"
)

func newDevices() *cobra.Command {
	var f loadFlags
	c := &cobra.Command{
		Use:   "devices MACHINE --lanes DEVICE[,DEVICE]",
		Short: "Simulate the arrivals on devices of a machine",
		Long: `Simulate the arrivals on devices of a machine, a host.yaml or a built-in one: both phases on one device, or prefills on the
first and decode batches on the second. Each op takes the time at the ceiling of its device. Nothing is measured.

` + filesText,
		Example: "  sandwich bench load devices core-ultra-125h --model llama-3.2-3b --lanes gpu --lanes npu,gpu " +
			"--policy fcfs,sandwich",
		Args: flags.ExactArgs(1, "a host.yaml or a built-in machine"),
	}
	f.addEngine(c)
	f.addArrivals(c.Flags())
	f.addSLO(c.Flags())
	f.addFiles(c.Flags())
	c.Flags().StringArrayVar(&f.lanes, "lanes", nil, "device of both phases, or those of prefill and decode, such as "+
		"npu,gpu; may be repeated")
	c.Flags().StringVar(&f.typ, "type", "q8_0", "tensor type of the matrices of a preset")
	format := flags.Format(c, "table", "json", "csv")
	c.RunE = func(c *cobra.Command, args []string) error {
		f.machine = args[0]
		if err := cmp.Or(f.check(), f.checkLanes()); err != nil {
			return err
		}
		t, err := f.recorded(c.Context())
		if err != nil {
			return err
		}
		runs, err := f.devices(f.fit(t))
		if err != nil {
			return err
		}
		return printLoad(c.OutOrStdout(), *format, runs, f.slo)
	}
	return c
}

func (f *loadFlags) checkLanes() error {
	if len(f.lanes) == 0 {
		return exit.Usage(errors.New("--lanes is missing; give one device, such as gpu, or those of prefill and " +
			"decode, such as npu,gpu"))
	}
	for _, l := range f.lanes {
		if n := strings.Count(l, ",") + 1; n > phase.Count {
			return exit.Usage(fmt.Errorf("--lanes %s has %d devices; give one or two", show.Clip(l, 40), n))
		}
	}
	return nil
}

// devices simulates the arrivals on each setting of devices under each policy.
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
	o := ranking.Options{Shape: subject.Shape, Model: ops, KV: f.session.KV, ISA: f.session.ISA}
	for i, lanes := range f.lanes {
		list := strings.Split(lanes, ",")
		d, assumed, err := ranking.OnDevices(host, o, list[0], list[len(list)-1])
		if err != nil {
			return nil, exit.Usage(err)
		}
		if i == 0 {
			show.Notice("simulated; the figures of the machine are assumed: " +
				strings.Join(assumed, "; "))
		}
		for _, policy := range f.policies {
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
