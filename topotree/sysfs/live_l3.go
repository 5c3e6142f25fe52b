//go:build testl3

package sysfs

import (
	"fmt"
	"os"
	"strconv"

	"sandwich/topotree"
)

// testL3 is the environment variable that sets the size in MiB of each L3 of the machine that
// ReadLive returns, in builds for tests (make test-caches). A machine without an L3 gets one.
const testL3 = "SANDWICH_TEST_L3"

func init() {
	text, set := os.LookupEnv(testL3)
	if !set {
		return
	}
	editLive = func(m *topotree.Machine) (*topotree.Machine, error) {
		mib, err := strconv.ParseInt(text, 10, 32)
		if err != nil || mib <= 0 {
			return nil, fmt.Errorf("environment variable %s is %q; give a number of MiB", testL3, text)
		}
		return withL3(m, mib<<20)
	}
}

func withL3(m *topotree.Machine, bytes int64) (*topotree.Machine, error) {
	d := m.Describe()
	found := false
	for i, l := range d.Levels {
		if l.Kind == topotree.KindL3 {
			d.Levels[i].Bytes, found = bytes, true
		}
	}
	if !found {
		d.Levels = append(d.Levels, topotree.LevelData{Kind: topotree.KindL3, Bytes: bytes,
			Sets: []topotree.CPUSet{m.Online}})
	}
	return d.Machine()
}
