package doctor

import (
	"strings"
	"testing"
	"testing/fstest"
)

// TestEnergy checks that readable counters are listed and that others have a reason.
func TestEnergy(t *testing.T) {
	const zones = "sys/class/powercap/intel-rapl:"
	file := func(text string) *fstest.MapFile { return &fstest.MapFile{Data: []byte(text + "\n")} }
	found := checkEnergy(Host{Root: fstest.MapFS{}})
	if len(found) != 1 || found[0].Level != Note ||
		!strings.Contains(found[0].Found, "package: not readable: no RAPL") {
		t.Errorf("a host without counters: %+v", found)
	}
	root := fstest.MapFS{zones + "0/name": file("package-0"), zones + "0/energy_uj": file("5"),
		zones + "1/name": file("package-1")}
	found = checkEnergy(Host{Root: root})
	if len(found) != 2 || found[0].Level != OK || found[0].Found != "counters of package-0 (RAPL counter)" ||
		!strings.Contains(found[1].Found, "package-1: not readable: cannot read") {
		t.Errorf("a host with one readable counter of two: %+v", found)
	}
}
