package profiles

import (
	"strings"
	"testing"

	"sandwich/runtime/refdata"
	"sandwich/topotree"
)

// version1 is a file of version 1, of a machine with two nodes whose PU numbers are interleaved.
const version1 = `version: 1
host:
  arch: amd64
  cpu_model: Test CPU
  isa: [avx2]
machine:
  source: test
  arch: x86_64
  model: Test CPU
  online: 0-3
  allowed: 0-3
  levels:
    - kind: l3
      bytes: 1048576
      ids: [4, 9]
      sets: ["0,2", "1,3"]
    - kind: core
      ids: [0, 1, 2, 3]
      sets: ["0", "1", "2", "3"]
  memory:
    - id: 0
      cpus: "0,2"
      bytes: 1073741824
    - id: 1
      cpus: "1,3"
      bytes: 1073741824
  tree_digest: DIGEST
ceilings:
  - {kind: compute, isa: avx2, type: f32, pus: 1, median: 1e+11, "n": 9, unit: FLOP/s}
  - {kind: compute, isa: avx2, type: f32, pus: 2, median: 1.9e+11, "n": 9, unit: FLOP/s}
  - {kind: compute, isa: avx2, type: f32, pus: 8, median: 8e+11, unit: FLOP/s, assumed: true}
sets:
  - {name: saturation, domain: numa 1, cpus: "1,3", median: 2e+10, "n": 9, unit: B/s}
  - {name: saturation, domain: l3 9, cpus: "1", median: 1e+10, "n": 9, unit: B/s}
  - {name: saturation, domain: l3 of PU 1, cpus: "3", median: 1e+10, "n": 9, unit: B/s}
  - {name: barrier, domain: l3 4, cpus: "0,2", median: 1e-07, "n": 9, unit: s}
`

// digested is the text with the digest of its tree, which the error names.
func digested(t *testing.T, text string) string {
	t.Helper()
	_, err := Parse([]byte(text))
	if err == nil {
		t.Fatal("a wrong digest was accepted")
	}
	_, rest, _ := strings.Cut(err.Error(), "has the digest ")
	digest, _, _ := strings.Cut(rest, ",")
	return strings.Replace(text, "DIGEST", digest, 1)
}

// TestVersion1 checks that ceilings of version 1 get the PUs that they were measured with, and
// domains their current names.
func TestVersion1(t *testing.T) {
	p, err := Parse([]byte(digested(t, version1)))
	if err != nil {
		t.Fatal(err)
	}
	if p.Version != Version || p.Ceilings[0].CPUs.String() != "0" || p.Ceilings[1].CPUs.String() != "0,2" ||
		!p.Ceilings[2].CPUs.IsEmpty() {
		t.Errorf("ceilings %+v", p.Ceilings)
	}
	for i, want := range []string{"node 1", "cluster of PU 1", "cluster of PU 1", "l3 4"} {
		if got := p.Sets[i].Domain; got != want {
			t.Errorf("domain %d is %q, want %q", i, got, want)
		}
	}
	if p.ReadDigest() == "" || p.ReadDigest() == Digest(p) {
		t.Error("the digest of what was read is lost")
	}
	text, err := EncodeYAML(p)
	if err != nil {
		t.Fatal(err)
	}
	q, err := Parse(text)
	if err != nil {
		t.Fatalf("%v in\n%s", err, text)
	}
	if !strings.HasPrefix(string(text), "version: 2\n") || q.ReadDigest() != "" ||
		Digest(q) != Digest(p) || q.Fingerprint() != p.Fingerprint() {
		t.Errorf("written as\n%s", text)
	}
	bad := strings.Replace(digested(t, version1), "numa 1", "socket 1", 1)
	if _, err := Parse([]byte(bad)); err == nil || !strings.Contains(err.Error(), "node N") {
		t.Errorf("an unknown domain: %v", err)
	}
	if _, err := Parse([]byte(strings.Replace(digested(t, version1), "1.9e+11", ".nan", 1))); err == nil {
		t.Error("NaN was accepted")
	}
}

// TestRecordedMachines checks that every recorded profile can be read.
func TestRecordedMachines(t *testing.T) {
	for _, file := range refdata.Glob(t, "machines/*/host.yaml") {
		p, err := Load(file)
		if err != nil {
			t.Error(err)
			continue
		}
		for _, c := range p.Ceilings {
			if c.Measured() && c.Device == "" && c.CPUs.IsEmpty() {
				t.Errorf("%s: it is not known which PUs %s was measured with", file, c.Name())
			}
		}
	}
}

func TestSetFigureRefused(t *testing.T) {
	for want, spoil := range map[string]func(*SetFigure){
		"unknown domain":                       func(f *SetFigure) { f.Domain = "node 007" },
		"isa or type is missing":               func(f *SetFigure) { f.Name = Peak },
		"0 flows":                              func(f *SetFigure) { f.Name = Flows },
		"the union of the PUs of the flows, 0": func(f *SetFigure) { f.Name, f.Flows = Flows, []Flow{{CPUs: cpus(0)}} },
		"invalid flow of PUs 0": func(f *SetFigure) {
			f.Name, f.Flows = Flows, []Flow{{CPUs: cpus(0),
				Node: -2}}
		},
		"number of ranks 1":  func(f *SetFigure) { f.Name, f.Ranks, f.Bytes = AllReduce, 1, 64 },
		"ranks 2 or bytes 0": func(f *SetFigure) { f.Name, f.Ranks = AllReduce, 2 },
	} {
		p := structured(t)
		spoil(&p.Sets[0])
		if err := p.Check(); err == nil || !strings.Contains(err.Error()+" ", want) {
			t.Errorf("%q: %v", want, err)
		}
	}
	p := structured(t)
	p.Ceilings = []Ceiling{{Kind: Compute, ISA: "avx2", Type: "f32", PUs: 2, CPUs: cpus(0),
		Figure: assumedFigure(1, "FLOP/s")}}
	if err := p.Check(); err == nil || !strings.Contains(err.Error(), "cpus lists another number of PUs: 0") {
		t.Errorf("two PUs of which one is named: %v", err)
	}
}

func cpus(pus ...int) topotree.CPUSet { return topotree.NewCPUSet(pus...) }
