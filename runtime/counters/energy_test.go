package counters

import (
	"errors"
	"testing"
	"testing/fstest"
)

// Packages are added up, their planes are not, and what cannot be read is no zero.
func TestJoules(t *testing.T) {
	const dir = "sys/class/powercap/"
	file := func(text string) *fstest.MapFile { return &fstest.MapFile{Data: []byte(text)} }
	root := fstest.MapFS{dir + "intel-rapl:0/energy_uj": file("1500000\n"),
		dir + "intel-rapl:1/energy_uj":   file("500000\n"),
		dir + "intel-rapl:0:0/energy_uj": file("9000000\n"), dir + "intel-rapl/enabled": file("1\n")}
	if got, err := joulesOf(root); got != 2 || err != nil {
		t.Errorf("%g J, %v; want 2", got, err)
	}
	root[dir+"intel-rapl:1/energy_uj"] = file("much")
	if _, err := joulesOf(root); err == nil {
		t.Error("words were read as energy")
	}
	if _, err := joulesOf(fstest.MapFS{}); !errors.Is(err, errNoEnergy) {
		t.Errorf("a machine without counters: %v", err)
	}
}
