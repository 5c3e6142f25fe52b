// Package machine has the verbs probe, tree and doctor, and the flags by which other verbs select
// a machine.
package machine

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"sandwich/cmd/sandwich/internal/cli/exit"
	"sandwich/cmd/sandwich/internal/cli/flags"
	"sandwich/cmd/sandwich/internal/describe"
	"sandwich/cmd/sandwich/internal/nodelabel"
	"sandwich/cmd/sandwich/internal/outfile"
	"sandwich/cmd/sandwich/internal/show"
	"sandwich/internal/message"
	"sandwich/profiles"
	"sandwich/topotree"
	"sandwich/topotree/draw"
)

// NewProbe returns the verb probe.
func NewProbe() *cobra.Command {
	var source Flags
	var out, matrix string
	var measure MeasureFlag
	c := &cobra.Command{
		Use:   "probe",
		Short: "Describe a machine: its tree, its allowed PUs and its measured ceilings",
		Long: `Describe a machine: packages, NUMA nodes, caches, cores and PUs, the PUs that this process may use, and with --measure
their compute rates and memory bandwidth. -o writes the result as a host profile for tune, tree and plan verify.

--measure full also detects structure that the system does not report, by measuring the cache-line latency between PUs,
the interference of two busy PUs, the bandwidth between nodes, and the saturation of memory. --matrix prints one of the
matrices as a heat map, in the terminal or as SVG: ` + strings.Join(profiles.MatrixNames(), ", ") + `.
Ctrl-C stops the measurement and prints the results so far. Only PUs that this process may use are measured.

--format label prints what a node can say of itself, so that jobs select the kind of host that a plan was made for: labels
of Kubernetes and features of Slurm, or one of them with label=kubernetes and label=slurm.

The default is this machine; --root, --hwloc, --synthetic, --profile and --machine select another one.`,
		Example: `  sandwich probe
  sandwich probe -o host.yaml
  sandwich probe --format json | jq .summary
  sandwich probe --synthetic "pack:2 numa:2 l3:4 core:4 pu:2"
  sandwich probe --hwloc server.xml --format svg > server.svg
  sandwich probe --measure full -o host.yaml
  kubectl label node "$NODE" $(sandwich probe --format label=kubernetes)
  sandwich probe --profile host.yaml --matrix pu-latency --format svg > latency.svg`,
		Args: flags.ExactArgs(0, ""),
	}
	source.Add(c)
	measure.add(c)
	c.Flags().StringVarP(&out, "output", "o", "", "write the host profile to this file")
	c.Flags().StringVar(&matrix, "matrix", "", "print only this measured matrix")
	format := flags.Format(c, "tree", "table", "json", "yaml", "svg", "label", "label=kubernetes", "label=slurm")
	c.RunE = func(c *cobra.Command, _ []string) error {
		p, err := source.Read()
		if err != nil {
			return err
		}
		stopped := measure.Apply(c.Context(), p, source.live())
		if stopped != nil && !interrupted(c.Context(), stopped) {
			return stopped
		}
		if stopped != nil {
			show.Notice("stopped; the results are partial")
		}
		if out != "" {
			if err := outfile.Write(c.Context(), out, p.Encode); err != nil {
				return exit.Usage(err)
			}
			show.Notice("wrote " + out)
			if !c.Flags().Changed("format") && matrix == "" {
				return stopped
			}
		}
		if matrix != "" {
			err = printMatrix(c.OutOrStdout(), p, matrix, *format)
		} else {
			err = printProfile(c.OutOrStdout(), p, *format)
		}
		return errors.Join(stopped, err)
	}
	return c
}

// interrupted reports whether Ctrl-C caused an error.
func interrupted(ctx context.Context, err error) bool {
	return errors.Is(err, context.Canceled) && ctx.Err() != nil
}

func printMatrix(w io.Writer, p *profiles.Profile, name, format string) error {
	if m := p.Matrix(name); m != nil {
		return describe.Matrix(w, m, format)
	}
	var have []string
	for _, other := range p.Matrices {
		have = append(have, other.Name)
	}
	return exit.Usage(fmt.Errorf("--matrix %s is not in the profile, which has: %s; measure matrices with --measure "+
		"full", name,
		message.OrNone(strings.Join(have, ", "))))
}

func printProfile(w io.Writer, p *profiles.Profile, format string) error {
	switch format {
	case "json":
		return show.JSON(w, probeReport{Report: p.Machine.Report(), Host: p.Host, Fingerprint: p.Fingerprint(),
			Usable: p.UsablePUs(), Probe: p.Probe, Ceilings: p.Ceilings,
			PUSets: p.Sets, Latent: p.Latent, Matrices: p.Matrices})
	case "yaml":
		text, err := profiles.EncodeYAML(p)
		if err != nil {
			return err
		}
		_, err = w.Write(text)
		return err
	case "svg":
		return draw.SVG(w, p.Machine.Tree, draw.Options{Title: p.Host.CPUModel, Domains: p.HiddenSets()})
	case "table":
		return describe.Tables(w, p)
	case "label":
		return printLabels(w, p)
	case "label=kubernetes":
		return printLines(w, nodelabel.Kubernetes(p))
	case "label=slurm":
		return printLines(w, []string{strings.Join(nodelabel.Slurm(p), ",")})
	}
	return describe.Print(w, p)
}

// printLabels prints the labels of a host for people.
func printLabels(w io.Writer, p *profiles.Profile) error {
	return printLines(w, slices.Concat([]string{"Kubernetes labels:"}, indented(nodelabel.Kubernetes(p)),
		[]string{"Slurm features:"}, indented(nodelabel.Slurm(p))))
}

func indented(lines []string) []string {
	out := make([]string, len(lines))
	for i, line := range lines {
		out[i] = "  " + line
	}
	return out
}

func printLines(w io.Writer, lines []string) error {
	_, err := io.WriteString(w, strings.Join(lines, "\n")+"\n")
	return err
}

// probeReport is the JSON output of probe: the report of the machine and the figures of the
// profile. Its form is stable.
type probeReport struct {
	topotree.Report
	Host        profiles.Identity    `json:"host"`
	Fingerprint string               `json:"fingerprint"`
	Usable      topotree.CPUSet      `json:"usable"`          // PUs that a plan may use: allowed, limited by the quota
	Probe       *profiles.Probe      `json:"probe,omitempty"` // how the figures were measured; partial after an interrupt
	Ceilings    []profiles.Ceiling   `json:"ceilings,omitempty"`
	PUSets      []profiles.SetFigure `json:"pu_sets,omitempty"` // saturation curves, barriers
	Latent      []profiles.Latent    `json:"latent,omitempty"`  // structure detected in the matrices
	Matrices    []profiles.Matrix    `json:"matrices,omitempty"`
}
