package topotree_test

import (
	"math"
	"testing"

	"gopkg.in/yaml.v3"

	"sandwich/topotree"
	"sandwich/topotree/hwloc"
)

// TestDescriptionYAML sends a machine through the YAML of host.yaml.
func TestDescriptionYAML(t *testing.T) {
	m, err := hwloc.ReadSynthetic("pack:2 numa:2(memory=64GiB) l3:2(size=16MiB) l2:2(size=512kB) core:1 pu:1")
	if err != nil {
		t.Fatal(err)
	}
	text, err := yaml.Marshal(m.Describe())
	if err != nil {
		t.Fatal(err)
	}
	var d topotree.Description
	if err := yaml.Unmarshal(text, &d); err != nil {
		t.Fatal(err)
	}
	back, err := d.Machine()
	if err != nil {
		t.Fatal(err)
	}
	if back.Tree.Digest() != m.Tree.Digest() || back.Memory[3].Bytes != 64<<30 {
		t.Errorf("changed on the way:\n%s", text)
	}
	if _, err := (topotree.Description{Online: topotree.CPURange(0, 3),
		Levels: []topotree.LevelData{{Kind: topotree.KindNUMA}}}).Machine(); err == nil {
		t.Error("NUMA nodes among the levels were taken")
	}
	for _, quota := range []float64{-1, math.NaN(), math.Inf(1), topotree.MaxPUs + 1} {
		if _, err := (topotree.Description{Online: topotree.CPURange(0, 3), QuotaCPUs: quota}).Machine(); err == nil {
			t.Errorf("a quota of %v CPUs was taken", quota)
		}
	}
}
