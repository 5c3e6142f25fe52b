package machine

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"sandwich/cmd/sandwich/internal/cli/exit"
	"sandwich/cmd/sandwich/internal/cli/flags"
	"sandwich/cmd/sandwich/internal/cli/modelref"
	"sandwich/cmd/sandwich/internal/show"
	"sandwich/profiles"
	"sandwich/topotree"
	"sandwich/topotree/draw"
	"sandwich/topotree/enumerate"
)

// treeFlags holds the flags of tree.
type treeFlags struct {
	source    Flags
	apply     []string
	enumerate bool
	sections  bool
	model     string
	typ       string
	ranks     int
	limit     int
	bounds    enumerate.Bounds
	format    string
}

// listed is the default of --limit: how many trees --enumerate lists.
const listed = 30

// NewTree returns the verb tree.
func NewTree() *cobra.Command {
	var f treeFlags
	c := &cobra.Command{
		Use:   "tree",
		Short: "Show the TopoTree of a machine, transform it, list its sections, or enumerate its transforms",
		Long: `Show the TopoTree of a machine (Sandwich section 5). --apply transforms it: group(n,t,d) puts n nodes, taken with stride
t, under new nodes at depth d; remove(n,d) removes the n right-most children at depth d of every parent,
remove(n,d,color) only under parents of that color; only(color) keeps the PUs of one color. The root is depth 0.

--sections lists the cuts of the tree into ranks, with --model only those that can partition the model. --enumerate lists
all trees that transforms reach, each equivalence class once, starting with the groups that a full probe proposed. After
a remove, decode uses the remaining PUs and prefill uses all.`,
		Example: `  sandwich tree --machine kunpeng920
  sandwich tree --machine kunpeng920 --apply "group(4,1,4)" --apply "remove(1,5)" --sections --model tinyllama-1.1b
  sandwich tree --machine kunpeng920 --enumerate --format json | jq .kept
  sandwich tree --machine kunpeng920 --apply "remove(6,4)" --ranks 2 --format svg > numa-rm.svg`,
		Args: flags.ExactArgs(0, ""),
	}
	f.source.Add(c)
	fs := c.Flags()
	fs.StringArrayVar(&f.apply, "apply", nil, "transform to apply, such as group(4,1,3); may be repeated")
	fs.BoolVar(&f.enumerate, "enumerate", false, "enumerate the trees that transforms reach")
	fs.BoolVar(&f.sections, "sections", false, "list the cuts into ranks")
	modelref.Flag(c, &f.model, "model", "", "", "with --sections: GGUF file, pulled model, config.json or preset "+
		"that the ranks must be able to partition")
	fs.StringVar(&f.typ, "type", "q8_0", "weight type of a preset, or a mix such as q4_K_M")
	fs.IntVar(&f.ranks, "ranks", 0, "with --format svg: outline the nodes of this depth as ranks")
	fs.IntVar(&f.limit, "limit", 0, fmt.Sprintf("number of trees to list, 0 for all; counts are complete "+
		"(default: %d, in JSON all)", listed))
	fs.IntVar(&f.bounds.MaxGroups, "max-groups", 2, "with --enumerate: maximum number of group levels, 0 for none")
	fs.IntVar(&f.bounds.MaxColors, "max-colors", 3, "with --enumerate: maximum number of colors of one depth that "+
		"remove treats separately")
	fs.IntVar(&f.bounds.MinPUs, "min-pus", 0, "with --enumerate: minimum number of PUs of a tree")
	fs.IntVar(&f.bounds.MaxTrees, "max-trees", 0, "with --enumerate: maximum number of trees; 0 means no limit")
	format := flags.Format(c, "tree", "table", "json", "svg")
	c.RunE = func(c *cobra.Command, _ []string) error {
		f.format = *format
		if !c.Flags().Changed("limit") && f.format != "json" {
			f.limit = listed
		}
		if err := f.check(); err != nil {
			return exit.Usage(err)
		}
		return f.run(c.Context(), c.OutOrStdout())
	}
	return c
}

// check rejects flags that conflict or have no effect.
func (f *treeFlags) check() error {
	switch {
	case f.enumerate && f.sections:
		return errors.New("--enumerate and --sections exclude each other; give one of them")
	case f.format == "svg" && (f.enumerate || f.sections):
		return errors.New("--format svg draws one tree; leave --enumerate and --sections out")
	case f.model != "" && !f.sections:
		return errors.New("--model needs --sections; give both")
	case f.ranks != 0 && f.format != "svg":
		return errors.New("--ranks needs --format svg; give both")
	}
	for _, n := range []struct {
		flag  string
		value int
	}{{"limit", f.limit}, {"ranks", f.ranks}, {"max-groups", f.bounds.MaxGroups}, {"min-pus", f.bounds.MinPUs},
		{"max-trees", f.bounds.MaxTrees}} {
		if n.value < 0 {
			return fmt.Errorf("--%s %d is negative; give 0 or more", n.flag, n.value)
		}
	}
	if f.bounds.MaxColors < 1 {
		return fmt.Errorf("--max-colors %d is too small; give 1 or more", f.bounds.MaxColors)
	}
	if f.bounds.MaxGroups == 0 {
		f.bounds.MaxGroups = -1 // 0 would mean the default
	}
	return nil
}

func (f *treeFlags) run(ctx context.Context, w io.Writer) error {
	p, tree, err := f.read()
	if err != nil {
		return err
	}
	switch {
	case f.enumerate:
		f.bounds.First = p.Groups()
		return f.walk(ctx, w, tree)
	case f.sections:
		return f.printSections(w, tree)
	case f.format == "svg":
		if f.ranks > tree.Depth() {
			return exit.Usage(fmt.Errorf("--ranks %d is not a depth of the tree; give 0 to %d", f.ranks, tree.Depth()))
		}
		return draw.SVG(w, tree, draw.Options{Title: p.Host.CPUModel, Ranks: f.ranks})
	case f.format == "json":
		return show.JSON(w, newTreeJSON(tree))
	case f.format == "table":
		return printLevels(w, tree)
	}
	if err := draw.Text(w, tree); err != nil {
		return err
	}
	_, err = fmt.Fprintf(w, "\ndepths: %s\n", depthsText(tree))
	return err
}

// depthsText lists the depths and kinds of the levels, for use in transforms.
func depthsText(t *topotree.Tree) string {
	words := make([]string, t.Depth()+1)
	for d := range words {
		words[d] = fmt.Sprintf("%d %s", d, t.Level(d)[0].Kind)
	}
	return strings.Join(words, ", ")
}

// read returns the profile of the machine and the tree of its usable PUs with the transforms
// applied.
func (f *treeFlags) read() (*profiles.Profile, *topotree.Tree, error) {
	p, err := f.source.Read()
	if err != nil {
		return nil, nil, err
	}
	tree, err := p.Machine.Usable()
	if err != nil {
		return nil, nil, exit.Usage(err)
	}
	var xs []topotree.Transform
	for _, text := range f.apply {
		x, err := topotree.ParseTransform(text)
		if err != nil {
			return nil, nil, exit.Usage(fmt.Errorf("--apply: %w", err))
		}
		xs = append(xs, x)
	}
	if tree, err = tree.ApplyAll(xs...); err != nil {
		return nil, nil, exit.Usage(fmt.Errorf("--apply: %w", err))
	}
	return p, tree, nil
}

// printLevels prints the levels of a tree, one per row.
func printLevels(w io.Writer, t *topotree.Tree) error {
	var rows [][]string
	for d := range t.Depth() + 1 {
		level := t.Level(d)
		var pus, sizes []int
		virtual := 0
		for _, n := range level {
			pus = append(pus, n.CPUs.Count())
			sizes = append(sizes, int(n.Bytes>>10))
			if n.Virtual {
				virtual++
			}
		}
		note := ""
		if virtual > 0 {
			note = fmt.Sprintf("%d of them fill in for a missing level", virtual)
		}
		for _, n := range level {
			for _, o := range t.MemoryOnly(n) {
				note = show.Join("; ", note, fmt.Sprintf("memory-only node %d, %s, is nearest to node %d (distance %d)",
					o.Node, show.Size(o.Bytes), n.ID, o.Distance))
			}
		}
		size := ""
		if slices.Max(sizes) > 0 {
			size = show.Size(int64(slices.Max(sizes)) << 10)
		}
		rows = append(rows, []string{strconv.Itoa(d), level[0].Kind.String(), strconv.Itoa(len(level)),
			distinct(pus), size, note})
	}
	fmt.Fprintf(w, "%s, %d PUs\n\n", transformsText(t.Transforms()), t.PUs())
	return show.Table(w, []string{"depth", "kind", "nodes", "PUs per node", "size", ""}, rows, 0, 2, 4)
}

// distinct lists the distinct numbers in ascending order.
func distinct(numbers []int) string {
	var words []string
	for _, n := range slices.Compact(slices.Sorted(slices.Values(numbers))) {
		words = append(words, strconv.Itoa(n))
	}
	return strings.Join(words, ", ")
}

// treeJSON is the JSON form of a tree. It is stable.
type treeJSON struct {
	Digest     topotree.Digest      `json:"digest"`
	Transforms []topotree.Transform `json:"transforms"`
	PUs        int                  `json:"pus"`
	CPUs       *topotree.CPUSet     `json:"cpus,omitempty"` // absent in an enumeration, which builds no trees
	Colors     []topotree.ColorInfo `json:"colors,omitempty"`
	// MemoryOnly lists the nodes without PUs, with the nodes nearest to each.
	MemoryOnly []topotree.MemoryOnly `json:"memory_only,omitempty"`
	Tree       *topotree.Node        `json:"tree,omitempty"`
}

func newTreeJSON(t *topotree.Tree) treeJSON {
	j := briefTree(t)
	cpus := t.CPUs()
	j.CPUs, j.Colors, j.Tree = &cpus, t.Palette(), t.Root()
	t.Walk(func(n *topotree.Node, _ int) bool {
		j.MemoryOnly = append(j.MemoryOnly, t.MemoryOnly(n)...)
		return n.Kind != topotree.KindPU
	})
	return j
}

// briefTree returns the fields of a tree that do not need its nodes.
func briefTree(t *topotree.Tree) treeJSON {
	return treeJSON{Digest: t.Digest(), Transforms: append([]topotree.Transform{}, t.Transforms()...), PUs: t.PUs()}
}

// transformsText lists transforms, separated by spaces.
func transformsText(xs []topotree.Transform) string {
	words := make([]string, len(xs))
	for i, x := range xs {
		words[i] = x.String()
	}
	if len(words) == 0 {
		return "untransformed"
	}
	return strings.Join(words, " ")
}
