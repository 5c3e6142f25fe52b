// Package planreport formats plan bundles: a summary, the kernels, how the plan was found, and
// verdicts.
package planreport

import (
	"fmt"
	"io"
	"strconv"
	"strings"

	"sandwich/cmd/sandwich/internal/show"
	"sandwich/internal/message"
	"sandwich/plans"
	"sandwich/plans/bundle"
	"sandwich/plans/summary"
	"sandwich/profiles"
)

// ranksText lists the PUs and the NUMA node of each rank.
func ranksText(ranks []plans.Rank) string {
	var out []string
	for _, r := range ranks {
		text := "PUs " + r.PUs.String()
		if r.NUMANode >= 0 {
			text += " on node " + strconv.Itoa(r.NUMANode)
		}
		out = append(out, text)
	}
	return strings.Join(out, "; ")
}

// classesText lists the kinds of workers with their instruction sets and PUs; "" if there is one
// kind.
func classesText(p *plans.Plan) string {
	if len(p.Classes) == 0 {
		return ""
	}
	own := p.OfClass("", p.PUs())
	var out []string
	for _, c := range p.Classes {
		out = append(out, c.String())
	}
	first := plans.Class{Name: plans.MainClass, ISA: p.ISAOf(""), PUs: own}
	return strings.Join(append([]string{first.String()}, out...), "; ")
}

// Print writes a summary of a plan. memory describes the memory that serving takes.
func Print(w io.Writer, b *bundle.Bundle, memory string) {
	s := Summarize(b)
	exact := "batch-invariant logits with equal bits on every machine"
	if s.Rounding != "" {
		exact = s.Rounding
	}
	fmt.Fprintf(w, "%s: %s, %s\n", s.Name, s.State, exact)
	decode, tables := fmt.Sprintf("%s, up to %d rows", summary.DescribePUs(b, s.Service.DecodePUs),
		s.BatchMax), len(s.Decode)
	if s.Pooled {
		decode, tables = "none: the model generates no text", 0
	}
	rows := [][]string{
		{"model", fmt.Sprintf("%s, %s cache", s.Model, s.KV)},
		{"host", fmt.Sprintf("%s, needs %s", s.CPU, message.OrNone(strings.Join(s.ISA, " ")))},
		{"prefill", fmt.Sprintf("%s, up to %d rows, chunks of %d tokens", summary.DescribePUs(b, s.Service.PrefillPUs),
			s.SeqMax,
			s.Chunk)},
		{"decode", decode},
		{"ranks", ranksText(s.Service.Ranks)},
		{"memory", memory},
		{"kernels", fmt.Sprintf("%s in %s (--kernels lists them)",
			message.Plural(len(b.Plan.Kernels()), "micro-kernel"), message.Plural(len(s.Prefill)+tables, "table"))},
		{"content", s.Content},
	}
	if s.Unit != "" {
		rows = append(rows, []string{"matrix unit", s.Unit})
	}
	if text := b.Plan.PlacementText(); text != "" {
		rows = append(rows, []string{"devices", text})
	}
	if text := classesText(&b.Plan); text != "" {
		rows = append(rows, []string{"classes", text})
	}
	if e := s.Evidence; e != nil && e.Created != "" {
		rows = append(rows, []string{"made", madeText(e)})
	}
	rows = append(rows, speculationRows(s.Speculation, &b.Plan.Model)...)
	show.Fields(w, rows)
}

func madeText(e *summary.Evidence) string {
	if e.Strategy == "" {
		return e.Created + " by a heuristic"
	}
	text := fmt.Sprintf("%s by %s: %d kernel trials in %s of %s (strategy %s, effort %s, seed %d), A/A noise %.1f %%, "+
		"%d candidates rejected", e.Created, show.OrUnknown(e.Build), e.Trials, profiles.FormatSeconds(e.Spent),
		profiles.FormatSeconds(e.Budget),
		e.Strategy, e.Effort, e.Seed, 100*e.Noise, e.Rejected)
	return show.Join("; early stop ", text, e.EarlyStop)
}

// Schedules writes the kernel tables: each weight with the properties that its kernels share, then
// one row per rule.
func Schedules(w io.Writer, s summary.Summary) error {
	var rows [][]string
	add := func(phase string, tables []summary.Table) {
		for _, t := range tables {
			family := kernelFamily(t.Rules)
			title := phase + " " + t.Weight
			if t.Class != "" {
				title += ", class " + t.Class
			}
			rows = append(rows, []string{title, strings.TrimSuffix(family, "/"), "", "", ""})
			for _, r := range t.Rules {
				var packing []string
				if r.Pack {
					packing = append(packing, "packed")
				}
				if r.Widen {
					packing = append(packing, "widened")
				}
				kernel := strings.TrimPrefix(r.Kernel, family)
				rows = append(rows, []string{"  M " + r.M, kernel, r.Slice, r.Ways, strings.Join(packing, ", ")})
			}
		}
	}
	add("prefill", s.Prefill)
	if !s.Pooled {
		add("decode", s.Decode)
	}
	fmt.Fprintln(w)
	return show.Table(w, []string{"weight NxK, rows M", "kernel", "slice", "ways", ""}, rows)
}

// kernelFamily returns the instruction set, arithmetic and weight type that all kernels of a table
// share, followed by a slash; "" if they differ.
func kernelFamily(rules []summary.Rule) string {
	family := ""
	for i, r := range rules {
		parts := strings.SplitAfterN(r.Kernel, "/", 4)
		own := strings.Join(parts[:min(3, len(parts)-1)], "")
		if i > 0 && own != family {
			return ""
		}
		family = own
	}
	return family
}
