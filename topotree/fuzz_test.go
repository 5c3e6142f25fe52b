package topotree_test

import (
	"encoding/json"
	"testing"

	"sandwich/topotree"
	"sandwich/topotree/hwloc"
	"sandwich/topotree/internal/topotest"
)

func FuzzDescription(f *testing.F) {
	m, err := hwloc.ReadSynthetic("pack:2 numa:2 l3:1 core:2 pu:2")
	if err != nil {
		f.Fatal(err)
	}
	text, err := json.Marshal(m.Describe())
	if err != nil {
		f.Fatal(err)
	}
	f.Add(string(text))
	f.Add(`{"online":"0-3","levels":[{"kind":"l3","sets":["0-1","2-3"]}],"memory":[{"id":0,"cpus":"0,2"},{"id":1,"cpus":"1,3"}],"core_types":[{"name":"P","cpus":"0"},{"name":"E","cpus":"1-3"}],"measured":[{"name":"x","cpus":"2"}],"distances":{"nodes":[0,1],"matrix":[[10,20],[30,10]]}}`)
	f.Fuzz(func(t *testing.T, text string) {
		var d topotree.Description
		if json.Unmarshal([]byte(text), &d) != nil {
			return
		}
		m, err := d.Machine()
		topotest.CheckSound(t, m, err)
	})
}

func FuzzTransform(f *testing.F) {
	for _, text := range []string{"group(4,1,2)", "remove(1,3)", "remove(1,1,0)", "only(0+1)", "group(2,2,2)"} {
		f.Add(text)
	}
	m, err := hwloc.ReadSynthetic("numa:2 core:8 pu:2")
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, text string) {
		x, err := topotree.ParseTransform(text)
		if err != nil {
			return
		}
		if back, err := topotree.ParseTransform(x.String()); err != nil || back != x {
			t.Fatalf("%q gives %s, which comes back as %s: %v", text, x, back, err)
		}
		if tree, err := m.Tree.Apply(x); err == nil {
			if err := tree.Check(); err != nil {
				t.Fatal(err)
			}
		}
	})
}

func FuzzCPUSet(f *testing.F) {
	for _, text := range []string{"0-3,8", "0-31:2/8", "ff,00000000", "0x00010000,,0x0", "16383"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		for _, parse := range []func(string) (topotree.CPUSet, error){topotree.ParseCPUSet, topotree.ParseCPUMask} {
			s, err := parse(text)
			if err != nil {
				continue
			}
			if back, err := topotree.ParseCPUSet(s.String()); err != nil || !back.Equal(s) ||
				s.Last() >= topotree.MaxPUs {
				t.Fatalf("%q gives %s, which comes back as %s: %v", text, s, back, err)
			}
		}
	})
}
