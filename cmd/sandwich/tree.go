package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"sandwich/topotree"
)

// treeFlags are what tree does with a machine.
type treeFlags struct {
	source    machineFlags
	apply     []string
	enumerate bool
	sections  bool
	limit     int
	format    string
}

func newTree() *cobra.Command {
	var f treeFlags
	c := &cobra.Command{
		Use:   "tree",
		Short: "Show the TopoTree of a machine, transform it, list its sections, or enumerate the space of trees",
		Long: `Show the TopoTree of a machine (Sandwich section 5). --apply transforms it: group(n,t,d) puts n nodes, taken with
stride t, under new nodes at depth d; remove(n,d) drops the n right-most children at depth d of every parent,
remove(n,d,color) only under parents of that color; only(color) keeps the PUs of one color. The root is depth 0.

--sections lists the cuts of the tree into ranks; --enumerate walks every tree that transforms reach, each equivalence
class once.`,
		Example: `  sandwich tree --machine kunpeng920
  sandwich tree --machine kunpeng920 --apply "group(4,1,4)" --apply "remove(1,5)" --sections
  sandwich tree --machine kunpeng920 --enumerate --format json | jq .kept
  sandwich tree --profile host.yaml --format svg > host.svg`,
		Args: exactArgs(0, ""),
	}
	f.source.add(c)
	fs := c.Flags()
	fs.StringArrayVar(&f.apply, "apply", nil, "transform to apply, such as group(4,1,3); may be given several times")
	fs.BoolVar(&f.enumerate, "enumerate", false, "walk all trees that transforms make of it")
	fs.BoolVar(&f.sections, "sections", false, "list the cuts into ranks")
	fs.IntVar(&f.limit, "limit", 0, "stop --enumerate after this many trees; 0 is no limit")
	format := formatFlag(c, "text", "json", "svg")
	c.RunE = func(c *cobra.Command, _ []string) error {
		if err := checkFormat(*format, "text", "json", "svg"); err != nil {
			return err
		}
		f.format = *format
		return f.run(c.Context(), c.OutOrStdout())
	}
	return c
}

func (f *treeFlags) run(ctx context.Context, w io.Writer) error {
	switch {
	case f.enumerate && f.sections:
		return usageError(errors.New("give either --enumerate or --sections"))
	case f.format == "svg" && (f.enumerate || f.sections):
		return usageError(errors.New("--format svg draws one tree: leave --enumerate and --sections out"))
	case f.limit < 0:
		return usageError(fmt.Errorf("--limit %d: give 0 or more", f.limit))
	}
	tree, err := f.tree()
	if err != nil {
		return err
	}
	switch {
	case f.enumerate:
		return f.walk(ctx, w, tree)
	case f.sections:
		return printSections(w, tree, f.format)
	case f.format == "svg":
		return tree.WriteSVG(w, topotree.DrawOptions{})
	case f.format == "json":
		return printJSON(w, newTreeJSON(tree))
	}
	if err := tree.WriteText(w); err != nil {
		return err
	}
	_, err = fmt.Fprintf(w, "\ndepths: %s\n", depthsText(tree))
	return err
}

// depthsText numbers the levels for those who write transforms.
func depthsText(t *topotree.Tree) string {
	words := make([]string, t.Depth()+1)
	for d := range words {
		words[d] = fmt.Sprintf("%d %s", d, t.Level(d)[0].Kind)
	}
	return strings.Join(words, ", ")
}

// tree is the machine's tree of the PUs that a plan may use, with the transforms applied.
func (f *treeFlags) tree() (*topotree.Tree, error) {
	p, err := f.source.read()
	if err != nil {
		return nil, err
	}
	tree, err := p.Machine.Usable()
	if err != nil {
		return nil, usageError(err)
	}
	for _, text := range f.apply {
		x, err := topotree.ParseTransform(text)
		if err != nil {
			return nil, usageError(fmt.Errorf("--apply: %w", err))
		}
		if tree, err = tree.Apply(x); err != nil {
			return nil, usageError(fmt.Errorf("--apply: %w", err))
		}
	}
	return tree, nil
}

// treeJSON is the stable JSON of one tree.
type treeJSON struct {
	Digest     topotree.Digest      `json:"digest"`
	Transforms []topotree.Transform `json:"transforms"`
	PUs        int                  `json:"pus"`
	CPUs       topotree.CPUSet      `json:"cpus"`
	Colors     []topotree.ColorInfo `json:"colors,omitempty"`
	Tree       *topotree.Node       `json:"tree,omitempty"`
}

func newTreeJSON(t *topotree.Tree) treeJSON {
	j := briefTree(t)
	j.Colors, j.Tree = t.Palette(), t.Root()
	return j
}

func briefTree(t *topotree.Tree) treeJSON {
	return treeJSON{Digest: t.Digest(), Transforms: append([]topotree.Transform{}, t.Transforms()...), PUs: t.PUs(), CPUs: t.CPUs()}
}

func transformsText(xs []topotree.Transform) string {
	words := make([]string, len(xs))
	for i, x := range xs {
		words[i] = x.String()
	}
	if len(words) == 0 {
		return "as it is"
	}
	return strings.Join(words, " ")
}

// walk enumerates the space of trees.
func (f *treeFlags) walk(ctx context.Context, w io.Writer, tree *topotree.Tree) error {
	var stats topotree.Stats
	began := time.Now()
	var kept []*topotree.Tree
	for t := range topotree.Enumerate(tree, topotree.Bounds{MaxTrees: f.limit, Stats: &stats}) {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		kept = append(kept, t)
	}
	seconds := time.Since(began).Seconds()
	if f.format == "json" {
		trees := make([]treeJSON, len(kept))
		for i, t := range kept {
			trees[i] = briefTree(t)
		}
		return printJSON(w, struct {
			topotree.Stats
			Seconds float64    `json:"seconds"`
			Trees   []treeJSON `json:"trees"`
		}{stats, seconds, trees})
	}
	rows := make([][]string, len(kept))
	for i, t := range kept {
		rows[i] = []string{strconv.Itoa(t.PUs()), transformsText(t.Transforms()), t.Digest().String()[:12]}
	}
	if err := printTable(w, []string{"PUs", "transforms", "digest"}, rows, 0); err != nil {
		return err
	}
	cut := ""
	if stats.Truncated {
		cut = " (stopped by --limit)"
	}
	_, err := fmt.Fprintf(w, "\n%d trees kept%s of %d generated, %d duplicates, in %s\n", stats.Kept, cut, stats.Generated, stats.Duplicates, formatSeconds(seconds))
	return err
}

func printSections(w io.Writer, tree *topotree.Tree, format string) error {
	sections := tree.Sections()
	if format == "json" {
		return printJSON(w, struct {
			treeJSON
			Sections []topotree.Section `json:"sections"`
		}{briefTree(tree), sections})
	}
	var rows [][]string
	for _, s := range sections {
		var notes []string
		if !s.Even {
			notes = append(notes, "uneven")
		}
		if s.Repeats {
			notes = append(notes, "same ranks as above")
		}
		rows = append(rows, []string{strconv.Itoa(s.Depth), s.Kind.String(), strconv.Itoa(s.TP), rankSizes(s, false), rankSizes(s, true), strings.Join(notes, ", ")})
	}
	fmt.Fprintf(w, "%s, %d PUs\n\n", transformsText(tree.Transforms()), tree.PUs())
	return printTable(w, []string{"depth", "cut at", "ranks", "prefill PUs a rank", "decode PUs a rank", ""}, rows, 0, 2)
}

// rankSizes lists the distinct sizes of the ranks of a section.
func rankSizes(s topotree.Section, decode bool) string {
	var sizes []int
	for _, r := range s.Ranks {
		n := r.Prefill.Count()
		if decode {
			n = r.Decode.Count()
		}
		sizes = append(sizes, n)
	}
	slices.Sort(sizes)
	var words []string
	for _, n := range slices.Compact(sizes) {
		words = append(words, strconv.Itoa(n))
	}
	return strings.Join(words, ", ")
}
