package doctor

import (
	"strings"
	"testing"
	"testing/fstest"

	"sandwich/profiles"
	"sandwich/topotree/hwloc"
)

// ill is a host where every setting that a file tells of costs speed.
func ill(t *testing.T) Host {
	t.Helper()
	m, err := hwloc.ReadSynthetic("pack:2 numa:1(memory=8GiB) core:4")
	if err != nil {
		t.Fatal(err)
	}
	m.QuotaCPUs = 2.5
	p := profiles.New(m, profiles.Identity{Governor: "powersave", THP: "never", NUMABalancing: "1"})
	return Host{Profile: p, Root: fstest.MapFS{
		"sys/devices/system/cpu/intel_pstate/no_turbo": {Data: []byte("1\n")},
		"proc/sys/vm/zone_reclaim_mode":                {Data: []byte("1\n")},
		"proc/stat":                                    {Data: []byte("cpu  100 0 0 900 0 0 0 50 0 0\n")},
		"proc/7/comm":                                  {Data: []byte("sandwich\n")},
		"proc/7/numa_maps": {Data: []byte(
			"7f0000000000 prefer:0 anon=100 N0=50 N1=50 kernelpagesize_kB=4\n" +
				"7f1000000000 default anon=9 N1=9 kernelpagesize_kB=4\n")},
	}}
}

func TestDiagnose(t *testing.T) {
	found := map[string]Finding{}
	for _, f := range Diagnose(ill(t)) {
		if f.Level == Costs && f.Remedy == "" {
			t.Errorf("%s costs speed and has no remedy", f.Check)
		}
		found[f.Check] = f
	}
	for check, want := range map[string]string{
		"CPU quota": "2.5 CPUs of 8", "governor": "powersave", "boost": "base clock", "huge pages": "4 KiB",
		"NUMA balancing": "unmaps", "zone reclaim": "full node", "stolen time": "33 %", "placement": "50.0 % remote",
	} {
		if f := found[check]; f.Level != Costs || !strings.Contains(f.Found, want) {
			t.Errorf("%s: %+v, want a cost with %q", check, f, want)
		}
	}
	if f, there := found["other load"]; there {
		t.Errorf("the load of a saved machine was read: %+v", f)
	}
}

// TestCPUsWithoutMemory checks that CPUs of a node whose memory channels are empty are reported.
func TestCPUsWithoutMemory(t *testing.T) {
	h := ill(t)
	h.Profile.Machine.Memory[1].Bytes = 0
	for _, f := range checkMemory(h) {
		if f.Level == Costs && strings.Contains(f.Found, "CPUs 4-7 have no memory") && f.Remedy != "" {
			return
		}
	}
	t.Errorf("%+v does not report CPUs 4-7", checkMemory(h))
}
