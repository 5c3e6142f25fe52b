package topotree

import (
	"encoding/json"
	"maps"
	"strconv"
	"testing"
)

// TestMemsOfTheCpuset holds which memory nodes may be used, and that a description keeps it.
func TestMemsOfTheCpuset(t *testing.T) {
	base := map[string]string{
		"sys/devices/system/cpu/online":  "0-3",
		"sys/devices/system/node/online": "0-1",
	}
	for node, cpus := range []string{"0-1", "2-3"} {
		dir := "sys/devices/system/node/node" + strconv.Itoa(node)
		base[dir+"/cpulist"], base[dir+"/meminfo"] = cpus, "Node 0 MemTotal: 1048576 kB\n"
	}
	for _, c := range []struct {
		list, mems string
		common     int // of PUs 2 and 3, which are node 1's
	}{{"0-1", "", 1}, {"0-63", "", 1}, {"0", "0", -1}, {"1", "1", 1}, {"7", "", 1}, {"x", "", 1}} {
		files := maps.Clone(base)
		files["proc/self/status"] = "Name:\tx\nMems_allowed_list:\t" + c.list + "\n"
		m, err := ReadSysfs(mapRoot(files))
		if err != nil {
			t.Fatal(err)
		}
		if m.Mems.String() != c.mems || m.CommonNode(CPURange(2, 3)) != c.common || m.CommonNode(CPURange(1, 2)) != -1 {
			t.Errorf("of Mems_allowed_list %s comes %q, and node %d for the PUs 2-3, want %q and %d", c.list, m.Mems,
				m.CommonNode(CPURange(2, 3)), c.mems, c.common)
		}
		text, err := json.Marshal(m.Describe())
		if err != nil {
			t.Fatal(err)
		}
		var d Description
		if err := json.Unmarshal(text, &d); err != nil {
			t.Fatal(err)
		}
		if again, err := d.Machine(); err != nil || !again.Mems.Equal(m.Mems) {
			t.Errorf("written and read again the nodes are %+v: %v", again, err)
		}
	}
}
