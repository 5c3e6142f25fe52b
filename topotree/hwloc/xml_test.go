package hwloc_test

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"sandwich/runtime/refdata"
	"sandwich/topotree"
	"sandwich/topotree/hwloc"
	"sandwich/topotree/internal/topotest"
	"sandwich/topotree/sysfs"
)

func readXMLFile(t testing.TB, path string) *topotree.Machine {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	m, err := hwloc.ReadXML(bytes.NewReader(b))
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func TestXMLFacts(t *testing.T) {
	dir := refdata.Path(t, "topologies")
	for name, f := range topotest.ReadFacts(t, dir, "facts.json") {
		if f.Kind != "hwloc-xml" {
			continue
		}
		t.Run(name, func(t *testing.T) { topotest.CheckFacts(t, readXMLFile(t, filepath.Join(dir, f.Input)), f) })
	}
	for name, f := range topotest.ReadFacts(t, dir, "facts_synthetic.json") {
		t.Run(name, func(t *testing.T) {
			topotest.CheckFacts(t, readXMLFile(t, filepath.Join(dir, "synthetic", name)),
				f)
		})
	}
}

// TestSameMachineSameDigest reads one machine in two formats: the Linux dump of a 2 x Xeon 6230 in
// SNC2 and hwloc's XML of a machine of that shape, and every XML of a dump that the test data has.
func TestSameMachineSameDigest(t *testing.T) {
	dir := refdata.Path(t, "topologies")
	facts := topotest.ReadFacts(t, dir, "facts.json")
	pairs := map[string]string{"memorysidecaches": filepath.Join(dir, "synthetic", "xeon6230-snc2.xml")}
	for name, f := range facts {
		if path := filepath.Join(dir, filepath.FromSlash(f.XMLOfDump)); f.XMLOfDump != "" {
			if _, err := os.Stat(path); err == nil {
				pairs[name] = path
			}
		}
	}
	for name, path := range pairs {
		m, err := sysfs.Read(topotest.DumpFS(t, dir, facts[name].Input, facts[name].Folder))
		if err != nil {
			t.Fatal(err)
		}
		x := readXMLFile(t, path)
		want := m.Tree.Digest()
		if x.Tree.PUs() != m.Tree.PUs() { // exported without the disallowed PUs
			u, err := m.Usable()
			if err != nil {
				t.Fatal(err)
			}
			want = u.Digest()
		}
		if x.Tree.Digest() != want {
			t.Errorf("%s: XML gives digest %s, sysfs %s", name, x.Tree.Digest(), want)
		}
	}
}
