package profiles

import (
	"fmt"
	"strings"
	"testing"

	"sandwich/topotree"
	"sandwich/topotree/hwloc"
)

// structured is a profile with everything that a full probe finds.
func structured(t *testing.T) *Profile {
	t.Helper()
	m, err := hwloc.ReadSynthetic("numa:2 core:4")
	if err != nil {
		t.Fatal(err)
	}
	p := New(m, Identity{CPUModel: "test"})
	p.Probe = &Probe{Mode: "full", Seconds: 12.5, Partial: true}
	p.Matrices = []Matrix{{Name: NodeMatrix, Items: []int{0, 1}, Unit: "B/s", Rows: []MatrixRow{{2, 1}, {1, 2}}, N: 5,
		Noise: 0.1, Noises: []MatrixRow{{0.1, 0.1}, {0.1, 0.2}}}}
	p.Sets = []SetFigure{{Name: Saturation, Domain: NodeDomain(0), CPUs: topotree.CPURange(0, 3),
		Figure: NewFigure("B/s", []float64{1e10, 2e10})}}
	p.Latent = []Latent{
		{Matrix: LatencyMatrix, Sets: []topotree.CPUSet{topotree.CPURange(0, 1), topotree.CPURange(2, 3)}, Contrast: 2,
			Effect: 3, Group: "group(2,1,2)", Text: "pairs"},
		{Matrix: CacheMatrix, Sets: []topotree.CPUSet{topotree.NewCPUSet(0, 2), topotree.NewCPUSet(1, 3)}, Effect: 9,
			Group: "group(2,2,2)", Text: "others"},
		{Matrix: CacheMatrix, Sets: []topotree.CPUSet{topotree.CPURange(0, 3)}, Known: "numa", Text: "nodes"},
	}
	return p
}

func TestStructureInFile(t *testing.T) {
	p := structured(t)
	text, err := EncodeYAML(p)
	if err != nil {
		t.Fatal(err)
	}
	q, err := Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	again, err := EncodeYAML(q)
	if err != nil {
		t.Fatal(err)
	}
	if string(again) != string(text) {
		t.Errorf("a profile changed on its way through a file:\n%s\n%s", text, again)
	}
	if !q.Probe.Partial || q.Latent[0].Sets[1].String() != "2-3" || q.Sets[0].Median != 1.5e10 ||
		q.Matrix(NodeMatrix).Noises[1][1] != 0.2 || q.Matrix("x") != nil {
		t.Errorf("read back %+v", q)
	}
	if g := q.Groups(); len(g) != 2 || g[0] != topotree.Group(2, 2, 2) || g[1] != topotree.Group(2, 1, 2) {
		t.Errorf("groups %v, want the one of the larger effect first", g)
	}
}

func TestMeasuredColorsKeepTheFingerprint(t *testing.T) {
	p := structured(t)
	before := p.Fingerprint()
	m, err := p.Machine.WithMeasured([]topotree.MeasuredClass{{Name: "fast", CPUs: topotree.CPURange(0, 3)},
		{Name: "slow", CPUs: topotree.CPURange(4, 7)}})
	if err != nil {
		t.Fatal(err)
	}
	if m.Tree.Digest() == p.Machine.Tree.Digest() {
		t.Fatal("colors do not count")
	}
	p.Machine = m
	if p.Fingerprint() != before {
		t.Error("a plan for this host would be refused after a full probe")
	}
}

// TestGroupsOfSets checks that clusters without a transform get the one that makes them, unless the
// tree shows them already or no transform makes them.
func TestGroupsOfSets(t *testing.T) {
	m, err := hwloc.ReadSynthetic("core:8")
	if err != nil {
		t.Fatal(err)
	}
	p := New(m, Identity{})
	set := topotree.NewCPUSet
	for want, sets := range map[string][]topotree.CPUSet{
		"[group(4,1,2)]": {set(0, 1, 2, 3), set(4, 5, 6, 7)},
		"[group(2,4,2)]": {set(0, 4), set(1, 5), set(2, 6), set(3, 7)},
		"[]":             {set(0, 1, 2), set(3, 4, 5, 6, 7)},
	} {
		p.Latent = []Latent{{Matrix: LatencyMatrix, Sets: sets, Text: "written by hand"}}
		if got := fmt.Sprint(p.Groups()); got != want {
			t.Errorf("%v is made by %s, want %s", sets, got, want)
		}
	}
	p.Latent[0].Sets = nil
	for pu := range 8 {
		p.Latent[0].Sets = append(p.Latent[0].Sets, set(pu))
	}
	if got := p.Groups(); len(got) > 0 {
		t.Errorf("the cores themselves are made by %v", got)
	}
}

func TestStructureRefused(t *testing.T) {
	for want, spoil := range map[string]func(*Profile){
		"unknown name":         func(p *Profile) { p.Sets[0].Name = "speed" },
		"cpus is empty":        func(p *Profile) { p.Sets[0].CPUs = topotree.CPUSet{} },
		"has no origin":        func(p *Profile) { p.Sets[0].N = 0 },
		"number of clusters 0": func(p *Profile) { p.Latent[0].Sets = nil },
		"invalid contrast":     func(p *Profile) { p.Latent[0].Contrast = -1 },
		"group(0":              func(p *Profile) { p.Latent[0].Group = "group(0,1" },
		"1 rows for 2 items":   func(p *Profile) { p.Matrices[0].Noises = p.Matrices[0].Noises[:1] },
		"are allowed":          func(p *Profile) { p.Latent = make([]Latent, 1000) },
	} {
		p := structured(t)
		spoil(p)
		if err := p.Check(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", want, err)
		}
	}
}
