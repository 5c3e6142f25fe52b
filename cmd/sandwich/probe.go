package main

import (
	"io"

	"github.com/spf13/cobra"

	"sandwich/profiles"
	"sandwich/topotree"
)

func newProbe() *cobra.Command {
	var source machineFlags
	var out, matrix string
	var measure measureFlag
	c := &cobra.Command{
		Use:   "probe",
		Short: "Find out what a machine is: its tree, its allowed PUs and its measured ceilings",
		Long: `Find out what a machine is: packages, memory nodes, caches, cores and PUs, which PUs this process may
use, and how fast they compute and read memory (--measure). With -o the answer is written as
a host profile, which tune and plan verify take.

Without one of --root, --hwloc, --synthetic, --profile and --machine it looks at this machine.`,
		Example: `  sandwich probe
  sandwich probe -o host.yaml
  sandwich probe --format json | jq .summary
  sandwich probe --synthetic "pack:2 numa:2 l3:4 core:4 pu:2"
  sandwich probe --profile host.yaml --matrix pu-latency --format svg > latency.svg
  sandwich probe --hwloc server.xml --format svg > server.svg`,
		Args: exactArgs(0, ""),
	}
	source.add(c)
	measure.add(c)
	c.Flags().StringVarP(&out, "output", "o", "", "write the host profile to this file")
	c.Flags().StringVar(&matrix, "matrix", "", "with --format svg draw this matrix of a full probe, such as "+profiles.LatencyMatrix)
	format := formatFlag(c, "tree", "table", "json", "yaml", "svg")
	c.RunE = func(c *cobra.Command, _ []string) error {
		if err := checkFormat(*format, "tree", "table", "json", "yaml", "svg"); err != nil {
			return err
		}
		p, err := source.read()
		if err != nil {
			return err
		}
		interrupted := measure.apply(c.Context(), p, source.live())
		if interrupted != nil && c.Context().Err() == nil {
			return interrupted
		}
		if out != "" {
			if err := p.Save(out); err != nil {
				return usageError(err)
			}
			notice("wrote " + out)
		}
		if out == "" || c.Flags().Changed("format") {
			if err := printProfile(c.OutOrStdout(), p, *format, matrix); err != nil {
				return err
			}
		}
		return interrupted // by Ctrl-C: what was measured until then is kept
	}
	return c
}

func printProfile(w io.Writer, p *profiles.Profile, format, matrix string) error {
	switch format {
	case "json":
		return printJSON(w, probeReport{Report: p.Machine.Report(), Host: p.Host, Fingerprint: p.Fingerprint(),
			Usable: topotree.NewCPUSet(p.UsablePUs()...), Ceilings: p.Ceilings, Matrices: p.Matrices,
			PUSets: p.Sets, Latent: p.Latent})
	case "yaml":
		text, err := profiles.EncodeYAML(p)
		if err != nil {
			return err
		}
		_, err = w.Write(text)
		return err
	case "svg":
		return writeProfileSVG(w, p, matrix)
	case "table":
		return printMachineTables(w, p)
	}
	return printMachineTree(w, p)
}

// probeReport is the stable JSON of probe: the machine as topotree reports it, then what the profile adds.
type probeReport struct {
	topotree.Report
	Host        profiles.Identity    `json:"host"`
	Fingerprint string               `json:"fingerprint"`
	Usable      topotree.CPUSet      `json:"usable"` // what a plan would use: allowed, cut to the quota
	Ceilings    []profiles.Ceiling   `json:"ceilings,omitempty"`
	Matrices    []profiles.Matrix    `json:"matrices,omitempty"`
	PUSets      []profiles.SetFigure `json:"pu_sets,omitempty"` // saturation curves, barriers
	Latent      []profiles.Latent    `json:"latent,omitempty"`  // structure that the matrices show
}
