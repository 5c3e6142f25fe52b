package sysfs

import (
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"

	"sandwich/topotree"
)

// TestMemsOfTheCpuset checks which memory nodes may be used, and that a description keeps them.
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
		m, err := Read(mapRoot(files))
		if err != nil {
			t.Fatal(err)
		}
		if m.Mems.String() != c.mems || m.CommonNode(topotree.CPURange(2, 3)) != c.common ||
			m.CommonNode(topotree.CPURange(1, 2)) != -1 {
			t.Errorf("of Mems_allowed_list %s comes %q, and node %d for the PUs 2-3, want %q and %d", c.list, m.Mems,
				m.CommonNode(topotree.CPURange(2, 3)), c.mems, c.common)
		}
		text, err := json.Marshal(m.Describe())
		if err != nil {
			t.Fatal(err)
		}
		var d topotree.Description
		if err := json.Unmarshal(text, &d); err != nil {
			t.Fatal(err)
		}
		if again, err := d.Machine(); err != nil || !again.Mems.Equal(m.Mems) {
			t.Errorf("written and read again the nodes are %+v: %v", again, err)
		}
	}
}

// TestNodesWithoutMemory checks that memory is not bound to a node whose memory channels are empty,
// unless the sizes of all nodes are unknown.
func TestNodesWithoutMemory(t *testing.T) {
	for _, c := range []struct {
		first, second string // meminfo of the nodes
		common        int    // of the PUs of the second
	}{
		{"Node 0 MemTotal: 1048576 kB", "Node 1 MemTotal: 1048576 kB", 1},
		{"Node 0 MemTotal: 1048576 kB", "Node 1 MemTotal: 0 kB", -1},
		{"Node 0 MemTotal: 1048576 kB", "", -1},
		{"", "", 1},
	} {
		files := fixture{}.cores(4, 0, 1, 2, 3).online("0-3").with(fixture{
			nodeDir + "/node0/cpulist": "0-1", nodeDir + "/node0/meminfo": c.first,
			nodeDir + "/node1/cpulist": "2-3", nodeDir + "/node1/meminfo": c.second,
		})
		m, err := Read(mapRoot(files))
		if err != nil {
			t.Fatal(err)
		}
		if got := m.CommonNode(topotree.CPURange(2, 3)); got != c.common {
			t.Errorf("%q, %q: node %d for the PUs 2-3, want %d", c.first, c.second, got, c.common)
		}
		if got := m.CommonNode(topotree.CPURange(0, 1)); got != 0 {
			t.Errorf("%q, %q: node %d for the PUs 0-1", c.first, c.second, got)
		}
	}
}

// TestMemoryOfTheOnlyNode checks that a guest whose memory grew after its start has all of it: the
// file of its only node counts the memory at the start.
func TestMemoryOfTheOnlyNode(t *testing.T) {
	const node, gib = "sys/devices/system/node/node", int64(1 << 30)
	files := map[string]string{
		"sys/devices/system/cpu/online":  "0-1",
		"sys/devices/system/node/online": "0",
		"proc/meminfo":                   "MemTotal:       25165824 kB\nMemFree: 1 kB\n",
		node + "0/cpulist":               "0-1",
		node + "0/meminfo":               "Node 0 MemTotal:       10485760 kB\n",
	}
	m, err := Read(mapRoot(files))
	if err != nil {
		t.Fatal(err)
	}
	about := func(note string) bool { return strings.Contains(note, "10.0 of the 24.0 GiB") }
	if got := m.Memory[0].Bytes; got != 24*gib || !slices.ContainsFunc(m.Notes, about) {
		t.Errorf("the only node has %d bytes, want all 24 GiB, and a note: %q", got, m.Notes)
	}
	files["sys/devices/system/node/online"] = "0-1"
	files[node+"1/cpulist"], files[node+"1/meminfo"] = "", "Node 1 MemTotal: 1048576 kB\n"
	if m, err = Read(mapRoot(files)); err != nil {
		t.Fatal(err)
	}
	if got := m.Memory[0].Bytes; got != 10*gib {
		t.Errorf("one of two nodes has %d bytes, want its own 10 GiB", got)
	}
}
