package machine

import (
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"sandwich/cmd/sandwich/internal/cli/flags"
	"sandwich/cmd/sandwich/internal/show"
	"sandwich/profiles/doctor"
)

// NewDoctor returns the verb doctor.
func NewDoctor() *cobra.Command {
	var root string
	c := &cobra.Command{
		Use:   "doctor",
		Short: "List host settings that reduce speed, with remedies",
		Long: `Check the settings of this host that affect the speed of a model: huge pages, CPU governor and boost, CPU quota, cpusets
and affinity, automatic NUMA balancing, free memory per node, and other running processes. Each finding has a remedy.
Energy counters are listed, with the reason where one is not readable; those of NVIDIA devices by doctor devices.
Nothing is changed or measured.`,
		Example: "  sandwich doctor\n  sandwich doctor --format json",
		Args:    flags.ExactArgs(0, ""),
	}
	c.Flags().StringVar(&root, "root", "", "folder with the sys/ and proc/ of a saved Linux machine")
	format := flags.Format(c, "table", "json")
	c.RunE = func(c *cobra.Command, _ []string) error {
		source := Flags{root: root}
		p, err := source.Read()
		if err != nil {
			return err
		}
		dir := root
		if dir == "" {
			dir = "/"
		}
		findings := doctor.Diagnose(doctor.Host{Profile: p, Root: os.DirFS(dir), Live: source.live()})
		if *format == "json" {
			return show.JSON(c.OutOrStdout(), map[string]any{"findings": findings})
		}
		return printFindings(c.OutOrStdout(), findings)
	}
	c.AddCommand(newDoctorDevices())
	return c
}

func printFindings(w io.Writer, findings []doctor.Finding) error {
	costs := 0
	for _, f := range findings {
		if f.Level == doctor.Costs {
			costs++
		}
		fmt.Fprintf(w, "%-5s  %-15s  %s\n", f.Level, f.Check, show.Hanging(f.Found, 24))
		if f.Remedy != "" {
			fmt.Fprintf(w, "%-5s  %-15s  -> %s\n", "", "", show.Hanging(f.Remedy, 27))
		}
	}
	switch costs {
	case 0:
		fmt.Fprintln(w, "\nno setting of this host reduces speed")
	case 1:
		fmt.Fprintln(w, "\n1 finding reduces speed")
	default:
		fmt.Fprintf(w, "\n%d findings reduce speed\n", costs)
	}
	return nil
}
