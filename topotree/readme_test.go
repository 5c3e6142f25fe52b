package topotree_test

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"testing"

	"sandwich/topotree"
	"sandwich/topotree/cluster"
	"sandwich/topotree/draw"
	"sandwich/topotree/enumerate"
	"sandwich/topotree/internal/topotest"
	"sandwich/topotree/section"
)

var update = flag.Bool("update", false, "rewrite the output blocks of README.md")

// tour produces the output blocks of README.md, by name.
var tour = map[string]func(t *testing.T, w *strings.Builder){
	"machine": func(t *testing.T, w *strings.Builder) { writeText(t, w, kunpengTree(t)) },
	"clusters": func(t *testing.T, w *strings.Builder) {
		writeText(t, w, topotest.Apply(t, kunpengTree(t), "group(4,1,4)"))
	},
	"sc-rm": func(t *testing.T, w *strings.Builder) {
		tree := topotest.Apply(t, kunpengTree(t), "group(4,1,4)", "remove(1,5)")
		writeText(t, w, tree)
		writeSections(w, tree)
	},
	"numa-rm": func(t *testing.T, w *strings.Builder) {
		tree := topotest.Apply(t, kunpengTree(t), "remove(6,4)")
		writeText(t, w, tree)
		writeSections(w, tree)
	},
	"space": func(t *testing.T, w *strings.Builder) {
		base := kunpengTree(t)
		var stats enumerate.Stats
		plans := map[topotree.Digest]*topotree.Tree{}
		for tree := range enumerate.Trees(base, enumerate.Bounds{Stats: &stats}) {
			plans[tree.Digest()] = tree
		}
		fmt.Fprintf(w, "generated %d, duplicates %d, kept %d, from %d groupings\n", stats.Generated, stats.Duplicates,
			stats.Kept, stats.Groups)
		for _, ops := range [][]string{
			{"group(4,1,4)", "remove(1,5)"}, {"remove(6,4)"}, {"group(4,1,4)"}, {"group(4,6,4)"},
		} {
			want := topotest.Apply(t, base, ops...)
			found, ok := plans[want.Digest()]
			if !ok {
				t.Fatalf("%v is not in the enumeration", ops)
			}
			fmt.Fprintf(w, "%s  %3d PUs  %s\n", found.Digest(), found.PUs(), strings.Join(ops, ", "))
		}
	},
	"growth": func(t *testing.T, w *strings.Builder) {
		fmt.Fprintf(w, "%-46s %5s %10s %10s %10s\n", "machine", "PUs", "generated", "duplicates", "kept")
		for _, text := range []string{
			"numa:2 l3:2 core:4", "pack:2 l3:4 core:4 pu:2", topotest.Kunpeng920, "pack:2 numa:1 l3:16 core:4 pu:2",
			"pack:4 numa:4 l3:2 core:16 pu:2",
		} {
			m := topotest.Synthetic(t, text)
			var stats enumerate.Stats
			for range enumerate.Trees(m.Tree, enumerate.Bounds{Stats: &stats}) {
			}
			fmt.Fprintf(w, "%-46s %5d %10d %10d %10d\n", shortName(text), m.Tree.PUs(), stats.Generated,
				stats.Duplicates, stats.Kept)
		}
	},
	"measured": func(t *testing.T, w *strings.Builder) {
		r := rand.New(rand.NewPCG(920, 0))
		found, err := cluster.Find(topotest.Indexes(192), topotest.Latencies(r, 192, 0.1,
			func(i, j int) float64 {
				switch {
				case i/4 == j/4:
					return 35
				case i/24 == j/24:
					return 70
				}
				return 180
			}))
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range found {
			fmt.Fprintf(w, "contrast %.2f, effect %.1f: %s\n", c.Contrast, c.Effect,
				cluster.Propose(kunpengTree(t), c).Text)
		}
	},
	"crossing": func(t *testing.T, w *strings.Builder) {
		for _, text := range []string{"pack:2 l3:1 numa:2 core:10 pu:2", "numa:2 pack:2 l3:1 core:4"} {
			m := topotest.Synthetic(t, text)
			fmt.Fprintf(w, "%s\n", text)
			for _, c := range m.Crossings {
				fmt.Fprintf(w, "  %s\n", c.Text)
			}
		}
	},
}

func kunpengTree(t *testing.T) *topotree.Tree {
	return topotest.Synthetic(t, topotest.Kunpeng920).Tree
}

func shortName(text string) string {
	if text == topotest.Kunpeng920 {
		return "kunpeng920"
	}
	return text
}

func writeText(t *testing.T, w *strings.Builder, tree *topotree.Tree) {
	t.Helper()
	if err := draw.Text(w, tree); err != nil {
		t.Fatal(err)
	}
}

func writeSections(w *strings.Builder, tree *topotree.Tree) {
	for _, s := range section.Of(tree) {
		if s.Repeats {
			continue
		}
		first := s.Ranks[0]
		fmt.Fprintf(w, "cut at depth %d (%s): TP=%d, %d PUs a rank in prefill, %d in decode\n",
			s.Depth, s.Kind, s.TP, first.Prefill.Count(), first.Decode.Count())
	}
}

// TestReadme keeps the output that README.md shows equal to what the code prints.
func TestReadme(t *testing.T) {
	defer topotest.WithoutVerify()()
	b, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	text := string(b)
	for name, print := range tour {
		mark := fmt.Sprintf("<!-- output: %s -->\n```\n", name)
		before, rest, ok := strings.Cut(text, mark)
		shown, after, closed := strings.Cut(rest, "```\n")
		if !ok || !closed {
			t.Errorf("README.md has no block %q", name)
			continue
		}
		var now strings.Builder
		print(t, &now)
		if shown != now.String() && !*update {
			t.Errorf("README.md shows for %s:\n%s\nthe code prints:\n%s", name, shown, now.String())
		}
		text = before + mark + now.String() + "```\n" + after
	}
	if *update && text != string(b) {
		if err := os.WriteFile("README.md", []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}
