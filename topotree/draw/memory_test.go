package draw

import (
	"strings"
	"testing"

	"sandwich/topotree"
)

// TestMemoryOnlyIsDrawn checks that memory without PUs is named at the node that is nearest to it,
// in text and as a picture, and that nodes with different memory are not drawn as one.
func TestMemoryOnlyIsDrawn(t *testing.T) {
	machine := func(distances *topotree.Distances, more ...topotree.MemoryNode) *topotree.Tree {
		t.Helper()
		left, right := topotree.CPURange(0, 3), topotree.CPURange(4, 7)
		memory := append([]topotree.MemoryNode{{ID: 0, CPUs: left, Bytes: 8 << 30},
			{ID: 1, CPUs: right, Bytes: 8 << 30}}, more...)
		m, err := topotree.Description{Online: topotree.CPURange(0, 7), Memory: memory, Distances: distances}.Machine()
		if err != nil {
			t.Fatal(err)
		}
		return m.Tree
	}
	far := func(rows ...[]int) *topotree.Distances {
		d := &topotree.Distances{Matrix: rows}
		for i := range rows {
			d.Nodes = append(d.Nodes, i)
		}
		return d
	}
	node := func(id int, gib int64) topotree.MemoryNode { return topotree.MemoryNode{ID: id, Bytes: gib << 30} }
	for _, c := range []struct {
		name  string
		tree  *topotree.Tree
		lines []string
		times int // that it is written in the picture
	}{
		{"one node has more", machine(far([]int{10, 20, 24}, []int{20, 10, 14}, []int{24, 14, 10}),
			node(2, 64)), []string{"├─ NUMA 0 8 GiB  0-3",
			"└─ NUMA 1 8 GiB + memory only NUMA 2 64 GiB, distance 14  4-7"}, 1},
		{"each has the same", machine(far([]int{10, 20, 14, 24}, []int{20, 10, 24, 14}, []int{14, 24, 10, 28},
			[]int{24, 14, 28, 10}), node(2, 16), node(3, 16)),
			[]string{"└─ 2 × NUMA 8 GiB + memory only 16 GiB, distance 14  0-3 | 4-7"}, 2},
		{"they have different ones", machine(far([]int{10, 20, 14, 24}, []int{20, 10, 24, 14}, []int{14, 24, 10, 28},
			[]int{24, 14, 28, 10}), node(2, 16), node(3, 32)),
			[]string{"├─ NUMA 0 8 GiB + memory only NUMA 2 16 GiB, distance 14  0-3",
				"└─ NUMA 1 8 GiB + memory only NUMA 3 32 GiB, distance 14  4-7"}, 2},
		{"a GPU's", machine(far([]int{10, 20, 14}, []int{20, 10, 24}, []int{14, 24, 10}),
			topotree.MemoryNode{ID: 2, Bytes: 16 << 30, Device: true}), []string{"└─ 2 × NUMA 8 GiB  0-3 | 4-7"}, 0},
		{"no distances", machine(nil, node(2, 16)),
			[]string{"└─ 2 × NUMA 8 GiB  0-3 | 4-7"}, 0},
	} {
		var text strings.Builder
		if err := Text(&text, c.tree); err != nil {
			t.Fatal(err)
		}
		for _, line := range c.lines {
			if !strings.Contains(text.String(), line) {
				t.Errorf("%s: %s, want %q", c.name, text.String(), line)
			}
		}
		if got := strings.Count(svgOf(t, c.tree, Options{}), "memory only"); got != c.times {
			t.Errorf("%s: %d times in the picture, want %d", c.name, got, c.times)
		}
	}
}
