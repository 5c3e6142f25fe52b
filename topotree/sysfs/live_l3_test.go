//go:build testl3

package sysfs

import (
	"testing"

	"sandwich/topotree"
)

func TestLiveL3(t *testing.T) {
	if editLive == nil {
		t.Skip(testL3 + " is not set: run make test-caches")
	}
	m, err := ReadLive()
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range m.Objects {
		if o.Kind == topotree.KindL3 {
			t.Logf("PUs %s have an L3 of %d MiB", o.CPUs, o.Bytes>>20)
		}
	}
	for _, bytes := range []int64{4 << 20, 512 << 20} {
		other, err := withL3(m, bytes)
		if err != nil {
			t.Fatal(err)
		}
		found := 0
		for _, o := range other.Objects {
			if o.Kind == topotree.KindL3 && o.Bytes == bytes {
				found++
			}
		}
		if found == 0 || !other.Allowed.Equal(m.Allowed) || other.Source != m.Source {
			t.Errorf("%d L3 of %d bytes; allowed %s of %s", found, bytes, other.Allowed, other.Source)
		}
	}
}
