package draw

import (
	"bytes"
	"encoding/xml"
	"errors"
	"io"
	"os"
	"strings"
	"testing"

	"sandwich/topotree"
	"sandwich/topotree/hwloc"
)

// kunpeng920 is Sandwich's machine: 4 packages, 8 nodes x 24 cores, the clusters of four hidden.
const kunpeng920 = "pack:4 numa:2(memory=32GiB) l3:1(size=24MiB) l2:24(size=512KiB) core:1 pu:1"

func mustSynthetic(t testing.TB, text string) *topotree.Machine {
	t.Helper()
	m, err := hwloc.ReadSynthetic(text)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// mustHybrid returns a machine of four P cores and eight E cores.
func mustHybrid(t testing.TB) *topotree.Machine {
	t.Helper()
	p, e := topotree.CPURange(0, 3), topotree.CPURange(4, 11)
	m, err := topotree.Description{
		Online: topotree.CPURange(0, 11), Memory: []topotree.MemoryNode{{CPUs: topotree.CPURange(0, 11)}},
		CoreTypes: []topotree.CoreType{{Name: "P", CPUs: p}, {Name: "E", CPUs: e}},
	}.Machine()
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func mustApply(t testing.TB, tree *topotree.Tree, texts ...string) *topotree.Tree {
	t.Helper()
	for _, text := range texts {
		x, err := topotree.ParseTransform(text)
		if err != nil {
			t.Fatal(err)
		}
		if tree, err = tree.Apply(x); err != nil {
			t.Fatal(err)
		}
	}
	return tree
}

func svgOf(t *testing.T, tree *topotree.Tree, o Options) string {
	t.Helper()
	var b bytes.Buffer
	if err := SVG(&b, tree, o); err != nil {
		t.Fatal(err)
	}
	dec := xml.NewDecoder(bytes.NewReader(b.Bytes()))
	for {
		if _, err := dec.Token(); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatalf("not well-formed: %v", err)
		}
	}
	if dir := os.Getenv("TOPOTREE_DRAW"); dir != "" { // a folder to leave the pictures in, to look at them
		name := dir + "/" + strings.NewReplacer("/", "_", " ", "_").Replace(t.Name()+"-"+o.Title) + ".svg"
		if err := os.WriteFile(name, b.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return b.String()
}

// TestSVG checks what a drawing shows: every PU once, removed ones greyed, groups and ranks
// outlined.
func TestSVG(t *testing.T) {
	m := mustSynthetic(t, kunpeng920)
	tree := mustApply(t, m.Tree, "group(4,1,4)", "remove(1,5)")
	svg := svgOf(t, tree, Options{Title: "Kunpeng 920, SC-RM", Ranks: 2})
	for what, want := range map[string]int{
		`text-anchor="middle"`: 192, `fill="#b5b5b5">`: 48, `stroke-dasharray="4 2"/>`: 48 + 1, `stroke-width="2.2"`: 8,
		"144 of 192 PUs active": 1, "group(4,1,4), remove(1,5); 8 ranks": 1,
	} {
		if got := strings.Count(svg, what); got != want {
			t.Errorf("%d times %s, want %d", got, what, want)
		}
	}
	hybrid := mustHybrid(t)
	svg = svgOf(t, mustApply(t, hybrid.Tree, "only(0)"), Options{Title: `hybrid <"&">`})
	if strings.Count(svg, `fill="#b5b5b5">`) < 8 || !strings.Contains(svg, "hybrid &lt;&#34;&amp;&#34;&gt;") {
		t.Errorf("eight E cores should be grey, the title escaped: %s", svg)
	}
	svg = svgOf(t, m.Tree, Options{Title: "domains", Domains: []topotree.CPUSet{topotree.CPURange(0, 3),
		topotree.CPURange(4, 7)}})
	if strings.Count(svg, fills[1]) != 4 {
		t.Error("the second cluster is not filled")
	}
	for _, text := range []string{"pu:1", "pack:2 numa:1 l3:16(size=16MiB) l2:4(size=512KiB) core:1 pu:2",
		"pack:4 numa:4 l3:2 core:16 pu:2"} {
		svgOf(t, mustSynthetic(t, text).Tree, Options{Title: text})
	}
	if err := SVG(failingWriter{}, tree, Options{}); err == nil {
		t.Error("a full disk went unnoticed")
	}
}

type failingWriter struct{}

func (failingWriter) Write([]byte) (int, error) { return 0, io.ErrShortWrite }

func TestText(t *testing.T) {
	var alone strings.Builder
	if err := Text(&alone, mustSynthetic(t,
		"pack:1 numa:1(memory=8GiB) l3:1(size=1536KiB) core:2 pu:2").Tree); err != nil {
		t.Fatal(err)
	}
	if want := "machine · Package 0 · NUMA 0 8 GiB · L3 1.5 MiB  0-3  (4 PUs)\n└─ 2 × core  0-1 | 2-3\n " +
		"  └─ 2 × PU  0 | 1\n"; alone.String() != want {
		t.Errorf("got %s, want %s", alone.String(), want)
	}
	m := mustSynthetic(t, "pack:2 numa:2(memory=32GiB) l3:1(size=24MiB) core:8 pu:1")
	for _, c := range []struct {
		ops  []string
		want string
	}{
		{nil, `
machine  0-31  (32 PUs)
└─ 2 × Package  0-15 | 16-31
   └─ 2 × NUMA 32 GiB · L3 24 MiB  0-7 | 8-15
      └─ 8 × core  0 | 1 | 2 | 3 | 4 | 5 | ...
`}, {[]string{"group(4,1,4)", "remove(1,5)"}, `
machine  0-2,4-6,8-10,12-14,16-18,20-22,24-26,28-30  (24 PUs, 8 removed)
└─ 2 × Package  0-2,4-6,8-10,12-14 | 16-18,20-22,24-26,28-30  (8 removed)
   └─ 2 × NUMA 32 GiB · L3 24 MiB  0-2,4-6 | 8-10,12-14  (4 removed)
      └─ 2 × group  0-2 | 4-6  (2 removed)
         ├─ 3 × core  0 | 1 | 2
         └─ core 3  off (1 removed)
`}, {[]string{"remove(1,1)"}, `
machine  0-15  (16 PUs, 16 removed)
├─ Package 0  0-15  (16 PUs)
│  └─ 2 × NUMA 32 GiB · L3 24 MiB  0-7 | 8-15
│     └─ 8 × core  0 | 1 | 2 | 3 | 4 | 5 | ...
└─ Package 1  off (16 removed)
   └─ 2 × NUMA 32 GiB · L3 24 MiB  off (16 removed)
      └─ 8 × core  off (8 removed)
`},
	} {
		var b strings.Builder
		if err := Text(&b, mustApply(t, m.Tree, c.ops...)); err != nil {
			t.Fatal(err)
		}
		if got := "\n" + b.String(); got != c.want {
			t.Errorf("%v:%s\nwant%s", c.ops, got, c.want)
		}
	}
}

// Both phases on a tree: PUs are filled by what they do, idle ones are left white, and each rank is
// outlined where a box has its PUs.
func TestSVGOfPhases(t *testing.T) {
	m := mustSynthetic(t, "numa:2 core:4 pu:1")
	first, second := topotree.CPURange(0, 2), topotree.CPURange(4, 6)
	out := svgOf(t, m.Tree, Options{Title: "phases", Teams: []topotree.CPUSet{first, second},
		Marks: []Mark{{"prefill and decode", topotree.NewCPUSet(0, 4)},
			{"prefill", topotree.NewCPUSet(1, 2, 5, 6)}}})
	for want, n := range map[string]int{
		`stroke="#c0392b" stroke-width="2.2"`:             2, // the two nodes
		`<title>rank 1, prefill</title>`:                  2,
		`<title>rank 0, prefill and decode</title>`:       1,
		`fill="` + fills[1] + `" stroke="#9a9a9a" stroke`: 4,
		`>idle</text>`: 1,
	} {
		if got := strings.Count(out, want); got != n {
			t.Errorf("%d times %s, want %d", got, want, n)
		}
	}
}
