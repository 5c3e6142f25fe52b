package main

import (
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"sandwich/cmd/sandwich/internal/show"
	"sandwich/profiles/doctor"
)

func newDoctor() *cobra.Command {
	var root string
	c := &cobra.Command{
		Use:   "doctor",
		Short: "Say what on this host costs speed, and the remedy for each",
		Long: `Look at what decides the speed of a model on this host in addition to its hardware: huge pages, CPU governor and boost,
CPU quota, cpusets and affinity, automatic NUMA balancing, memory per node, and what else runs here. Each
finding comes with its remedy. It changes nothing and measures nothing.`,
		Example: "  sandwich doctor\n  sandwich doctor --format json",
		Args:    exactArgs(0, ""),
	}
	c.Flags().StringVar(&root, "root", "", "folder with the sys/ and proc/ of a saved Linux machine")
	format := formatFlag(c, "table", "json")
	c.RunE = func(c *cobra.Command, _ []string) error {
		source := machineFlags{root: root}
		p, err := source.read()
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
		fmt.Fprintln(w, "\nnothing here costs speed that a setting could give back")
	case 1:
		fmt.Fprintln(w, "\n1 finding costs speed")
	default:
		fmt.Fprintf(w, "\n%d findings cost speed\n", costs)
	}
	return nil
}
