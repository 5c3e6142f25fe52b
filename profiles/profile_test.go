package profiles

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"sandwich/microkernel"
	"sandwich/topotree"
)

// twoBySMT is a machine of 2 packages of 2 cores with 2 threads each, siblings numbered 4 apart.
func twoBySMT(t *testing.T, change func(*topotree.Machine)) *Profile {
	t.Helper()
	m := &topotree.Machine{Source: "test", Arch: "x86_64", Model: "Test CPU", Online: topotree.CPURange(0, 7)}
	for c := range 4 {
		pair := topotree.NewCPUSet(c, c+4)
		m.Objects = append(m.Objects, topotree.Object{Kind: topotree.KindCore, ID: c, CPUs: pair},
			topotree.Object{Kind: topotree.KindL2, ID: c, CPUs: pair, Bytes: 1 << 20})
	}
	for p, pus := range [][]int{{0, 1, 4, 5}, {2, 3, 6, 7}} {
		set := topotree.NewCPUSet(pus...)
		m.Objects = append(m.Objects, topotree.Object{Kind: topotree.KindPackage, ID: p, CPUs: set},
			topotree.Object{Kind: topotree.KindL3, ID: p, CPUs: set, Bytes: 16 << 20})
		m.Memory = append(m.Memory, topotree.MemoryNode{ID: p, CPUs: set, Bytes: 8 << 30})
	}
	m.Distances = &topotree.Distances{Nodes: []int{0, 1}, Matrix: [][]int{{10, 21}, {21, 10}}}
	if change != nil {
		change(m)
	}
	done, err := m.Describe().Machine()
	if err != nil {
		t.Fatal(err)
	}
	return New(done, Identity{ISA: []string{"amx_tile", "avx2", "avx512", "avx512_vnni"}})
}

func TestUsablePUs(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(*topotree.Machine)
		usable []int
		cores  []int
		first3 []int
	}{
		{"all", nil, []int{0, 1, 2, 3, 4, 5, 6, 7}, []int{0, 1, 2, 3}, []int{0, 1, 2}},
		{"quota of 2.05 stays in one package", func(m *topotree.Machine) { m.QuotaCPUs = 2.05 }, []int{0, 1},
			[]int{0, 1}, []int{0, 1}},
		{"quota of 5 takes one sibling", func(m *topotree.Machine) { m.QuotaCPUs = 5 }, []int{0, 1, 2, 3, 4},
			[]int{0, 1, 2, 3}, []int{0, 1, 2}},
		{"quota below one", func(m *topotree.Machine) { m.QuotaCPUs = 0.2 }, []int{0}, []int{0}, []int{0}},
		{"a cpuset that leaves siblings", func(m *topotree.Machine) { m.Allowed = topotree.NewCPUSet(1, 5, 6) },
			[]int{1, 5, 6}, []int{1, 6}, []int{1, 5, 6}},
		{"fast cores first", func(m *topotree.Machine) {
			m.CoreTypes = []topotree.CoreType{{Name: "P", CPUs: topotree.NewCPUSet(2, 3, 6, 7)},
				{Name: "E", CPUs: topotree.NewCPUSet(0, 1, 4, 5)}}
			m.QuotaCPUs = 3
		}, []int{0, 2, 3}, []int{0, 2, 3}, []int{0, 2, 3}},
	} {
		p := twoBySMT(t, c.change)
		if got := p.UsablePUs(); !slices.Equal(got.Slice(), c.usable) {
			t.Errorf("%s: usable %v, want %v", c.name, got, c.usable)
		}
		if got := p.CorePUs(); !slices.Equal(got.Slice(), c.cores) {
			t.Errorf("%s: cores %v, want %v", c.name, got, c.cores)
		}
		if got := p.FirstPUs(3); !slices.Equal(got.Slice(), c.first3) {
			t.Errorf("%s: first three %v, want %v", c.name, got, c.first3)
		}
	}
}

func TestProfileRoundTrip(t *testing.T) {
	p := twoBySMT(t, func(m *topotree.Machine) { m.Allowed, m.QuotaCPUs = topotree.CPURange(0, 5), 3.5 })
	p.Ceilings = []Ceiling{
		{Kind: Compute, ISA: "avx512", Type: "f32", PUs: 1, Figure: NewFigure("FLOP/s", []float64{1.8e11,
			1.9e11, 1.85e11})},
		{Kind: Bandwidth, Level: "memory", PUs: 2, Figure: Figure{Median: 1e11, Unit: "B/s",
			Source: "a paper, table 1"}},
	}
	p.Matrices = []Matrix{{Name: "node-bandwidth", Items: []int{0, 1}, Unit: "B/s", Rows: []MatrixRow{{1e11, 2e10},
		{2e10, 1e11}}, Assumed: true}}
	p.Notes = []string{"one note: with a colon"}
	path := filepath.Join(t.TempDir(), "host.yaml")
	if err := p.Save(path); err != nil {
		t.Fatal(err)
	}
	first, _ := os.ReadFile(path)
	q, err := Load(path)
	if err != nil {
		t.Fatalf("%v\n%s", err, first)
	}
	if err := q.Save(path); err != nil {
		t.Fatal(err)
	}
	second, _ := os.ReadFile(path)
	if string(first) != string(second) {
		t.Errorf("reading and writing changed the file:\n%s\n%s", first, second)
	}
	if p.Fingerprint() != q.Fingerprint() || !p.UsablePUs().Equal(q.UsablePUs()) || Digest(p) != Digest(q) {
		t.Error("reading and writing changed the profile")
	}
	if q.Features() != microkernel.HasAVX2|microkernel.HasAVX512|microkernel.HasVNNI {
		t.Errorf("features %v", q.Features())
	}
	if len(q.Ceilings) != 2 || !reflect.DeepEqual(q.Ceilings[0], p.Ceilings[0]) || q.Matrices[0].Rows[0][1] != 2e10 {
		t.Errorf("ceilings %+v", q.Ceilings)
	}
}

// TestLoadErrors checks that the error for a profile that is missing or damaged names the command
// that makes one.
func TestLoadErrors(t *testing.T) {
	dir := t.TempDir()
	absent, damaged := filepath.Join(dir, "absent.yaml"), filepath.Join(dir, "damaged.yaml")
	if err := os.WriteFile(damaged, []byte("version: x"), 0o600); err != nil {
		t.Fatal(err)
	}
	for path, out := range map[string]string{absent: absent, damaged: "damaged.yaml"} {
		_, err := Load(path)
		if err == nil || !strings.Contains(err.Error(), path) ||
			!strings.HasSuffix(err.Error(), "`sandwich probe -o "+out+"`") {
			t.Errorf("%s: %v", path, err)
		}
	}
	if _, err := Load(absent); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("%v does not say that the file is missing", err)
	}
}

func TestFingerprintSees(t *testing.T) {
	base := twoBySMT(t, nil).Fingerprint()
	for name, p := range map[string]*Profile{
		"allowed": twoBySMT(t, func(m *topotree.Machine) { m.Allowed = topotree.CPURange(0, 6) }),
		"quota":   twoBySMT(t, func(m *topotree.Machine) { m.QuotaCPUs = 4 }),
		"tree":    twoBySMT(t, func(m *topotree.Machine) { m.Objects = m.Objects[:8] }),
		"model":   twoBySMT(t, func(m *topotree.Machine) { m.Model = "Other CPU" }),
	} {
		if p.Fingerprint() == base {
			t.Errorf("the fingerprint does not see %s", name)
		}
	}
	p := twoBySMT(t, nil)
	slices.Reverse(p.Host.ISA)
	p.Host.Kernel, p.Host.Governor, p.Notes = "other", "performance", []string{"x"}
	if p.Fingerprint() != base {
		t.Error("the fingerprint sees settings or the order of features")
	}
	p.Host.ISA = p.Host.ISA[1:]
	if p.Fingerprint() == base {
		t.Error("the fingerprint does not see the instruction set")
	}
}

func TestParseRefuses(t *testing.T) {
	good, err := EncodeYAML(twoBySMT(t, nil))
	if err != nil {
		t.Fatal(err)
	}
	for name, change := range map[string][2]string{
		"version":          {"version: 2", "version: 3"},
		"unknown field":    {"version: 2", "version: 2\nextra: 1"},
		"PU 10^9":          {"online: 0-7", "online: 0-1000000000"},
		"negative PU":      {"online: 0-7", "online: -7"},
		"tree digest":      {"tree_digest: ", "tree_digest: 00"},
		"infinite quota":   {"levels:", "quota_cpus: .inf\n  levels:"},
		"a machine object": {"kind: core", "kind: machine"},
		"short distances":  {"matrix: [[10, 21], [21, 10]]", "matrix: [[10], [21, 10]]"},
	} {
		text := strings.Replace(string(good), change[0], change[1], 1)
		if text == string(good) {
			t.Errorf("%s: the test changes nothing in\n%s", name, good)
		}
		if _, err := Parse([]byte(text)); err == nil {
			t.Errorf("%s was accepted", name)
		}
	}
}

func TestLiveProfile(t *testing.T) {
	p, err := Live()
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Check(); err != nil {
		t.Fatal(err)
	}
	data, err := EncodeYAML(p)
	if err != nil {
		t.Fatal(err)
	}
	q, err := Parse(data)
	if err != nil {
		t.Fatalf("%v in\n%s", err, data)
	}
	if q.Fingerprint() != p.Fingerprint() {
		t.Error("the live profile changes when it is written and read")
	}
	if p.UsablePUs().IsEmpty() {
		t.Error("no usable PU")
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte("version: 1\n"))
	f.Add([]byte("version: 1\nhost: {arch: amd64, cpu_model: x, isa: [avx2]}\nmachine:\n  source: x\n  online: " +
		"0-3\n  offline: \"\"\n  allowed: 0-3\n  tree_digest: \"\"\n  levels:\n    - {kind: core, sets: [0-1, " +
		"2-3]}\n  memory: []\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		p, err := Parse(data)
		if err != nil {
			return
		}
		again, err := EncodeYAML(p)
		if err != nil {
			t.Fatal(err)
		}
		q, err := Parse(again)
		if err != nil {
			t.Fatalf("%v in what was written:\n%s", err, again)
		}
		if q.Fingerprint() != p.Fingerprint() {
			t.Fatal("the fingerprint changed")
		}
	})
}
