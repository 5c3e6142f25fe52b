package load

import (
	"fmt"
	"strconv"

	"github.com/spf13/cobra"

	"sandwich/cmd/sandwich/internal/cli/exit"
	"sandwich/cmd/sandwich/internal/cli/flags"
)

// formerFlags holds the hidden flags of bench load that are subcommands now.
type formerFlags struct {
	simulate     bool
	sweep        string
	goodput      int
	goals, lanes []string
	seeds        int
	machine, typ string
}

// addMoved adds the subcommands of bench load, and the hidden flags that selected them in earlier
// versions. The result returns the subcommand that such a flag selects; nil if none was given.
func addMoved(c *cobra.Command) func() func() error {
	simulate, sweep, goodput, goal, devices := newSimulate(), newSweep(), newGoodput(), newGoal(), newDevices()
	c.AddCommand(simulate, sweep, goodput, goal, devices, newLanes(), newAblation(), newHalts())
	var f formerFlags
	fs := c.Flags()
	fs.BoolVar(&f.simulate, "simulate", false, "")
	fs.StringVar(&f.sweep, "sweep", "", "")
	fs.IntVar(&f.goodput, "goodput", 0, "")
	fs.StringSliceVar(&f.goals, "goal", nil, "")
	fs.IntVar(&f.seeds, "seeds", 1, "")
	fs.StringVar(&f.machine, "machine", "", "")
	fs.StringArrayVar(&f.lanes, "lanes", nil, "")
	fs.StringVar(&f.typ, "type", "q8_0", "")
	for _, name := range []string{"simulate", "sweep", "goodput", "goal", "seeds", "machine", "lanes", "type"} {
		fs.Lookup(name).Hidden = true
	}
	return func() func() error {
		as := func(sub *cobra.Command, flag, implied string, args ...string) func() error {
			return func() error { return flags.RunMoved(c, sub, flag, implied, args...) }
		}
		switch {
		case len(f.goals) > 0:
			return as(goal, "goal", "", f.goals...)
		case f.machine != "":
			return as(devices, "machine", "", f.machine)
		case f.sweep != "":
			return as(sweep, "sweep", "simulate", f.sweep)
		case f.goodput != 0:
			return as(goodput, "goodput", "", strconv.Itoa(f.goodput))
		case f.simulate:
			return as(simulate, "simulate", "")
		}
		for _, of := range []struct{ flag, verb string }{{"seeds", "goal"}, {"lanes", "devices"}, {"type", "devices"}} {
			if fs.Changed(of.flag) {
				return func() error {
					return exit.Usage(fmt.Errorf("--%s needs the verb %s; see '%s %s --help'", of.flag, of.verb,
						c.CommandPath(), of.verb))
				}
			}
		}
		return nil
	}
}
