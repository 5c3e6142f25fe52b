package profiles

import (
	"os"
	"strings"
	"testing"

	"sandwich/runtime/refdata"
	"sandwich/topotree"
	"sandwich/topotree/hwloc"
)

func TestBuiltins(t *testing.T) {
	for name, want := range map[string]struct{ packages, nodes, l3, l2, cores, pus int }{
		"kunpeng920":      {4, 8, 8, 192, 192, 192},
		"kunpeng920-4n":   {4, 4, 4, 192, 192, 192},
		"kunpeng920-72f8": {1, 2, 2, 80, 80, 80},
		"epyc7h12":        {2, 2, 32, 128, 128, 256},
		"xeon6151":        {2, 2, 2, 36, 36, 72},
		"xeon6230":        {2, 2, 2, 40, 40, 80},
		"xeon8272cl":      {2, 2, 2, 52, 52, 104},
		"m4pro":           {1, 1, 0, 3, 14, 14},
		"dimensity9500":   {1, 1, 1, 8, 8, 8},
		"core-ultra-125h": {1, 1, 1, 7, 14, 18},
	} {
		p, err := Builtin(name)
		if err != nil {
			t.Error(err)
			continue
		}
		s := p.Machine.Summary()
		if s.Packages != want.packages || s.NUMANodes != want.nodes || s.L3 != want.l3 || s.L2 != want.l2 ||
			s.Cores != want.cores || s.PUs != want.pus {
			t.Errorf("%s: %+v, want %+v", name, s, want)
		}
		if err := p.Check(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		for _, c := range p.Ceilings {
			if c.Measured() || c.Provenance() == "" || c.PUs > s.PUs {
				t.Errorf("%s: %s: %+v", name, c.Name(), c)
			}
		}
		if len(p.Notes) < 2 || !strings.HasPrefix(p.Notes[0], "source: ") {
			t.Errorf("%s does not name its source: %q", name, p.Notes)
		}
		data, err := EncodeYAML(p)
		if err != nil {
			t.Fatal(err)
		}
		q, err := Parse(data)
		if err != nil || q.Fingerprint() != p.Fingerprint() {
			t.Errorf("%s does not survive host.yaml: %v", name, err)
		}
	}
	if _, err := Builtin("cray-1"); err == nil || !strings.Contains(err.Error(), "kunpeng920") {
		t.Errorf("an unknown machine: %v", err)
	}
	if len(BuiltinNames()) != len(builtins) || len(builtins) != 10 {
		t.Errorf("names %v", BuiltinNames())
	}
}

// TestBuiltinsAreTheSyntheticMachines compares trees with hwloc's exports of machines of the same
// shape.
func TestBuiltinsAreTheSyntheticMachines(t *testing.T) {
	for _, name := range []string{"kunpeng920", "epyc7h12", "xeon6151", "xeon6230", "xeon8272cl"} {
		f, err := os.Open(refdata.Path(t, "topologies/synthetic/"+name+".xml"))
		if err != nil {
			t.Fatal(err)
		}
		m, err := hwloc.ReadXML(f)
		f.Close()
		if err != nil {
			t.Fatal(err)
		}
		p, err := Builtin(name)
		if err != nil {
			t.Fatal(err)
		}
		if p.Machine.Tree.Digest() != m.Tree.Digest() {
			t.Errorf("%s differs from its synthetic export", name)
		}
		if !p.Machine.Online.Equal(m.Online) {
			t.Errorf("%s has the PUs %s, the export %s", name, p.Machine.Online, m.Online)
		}
		for _, kind := range []topotree.Kind{topotree.KindPackage, topotree.KindL3, topotree.KindCore} {
			if a, b := firstOf(p.Machine, kind), firstOf(m, kind); !a.Equal(b) {
				t.Errorf("%s: the first %s is %s, in the export %s", name, kind, a, b)
			}
		}
	}
}

func firstOf(m *topotree.Machine, kind topotree.Kind) topotree.CPUSet {
	for _, o := range m.Objects {
		if o.Kind == kind && o.CPUs.Contains(0) {
			return o.CPUs
		}
	}
	return topotree.CPUSet{}
}
