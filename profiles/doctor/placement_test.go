package doctor

import (
	"fmt"
	"strings"
	"testing"
	"testing/fstest"

	"sandwich/profiles"
	"sandwich/topotree/hwloc"
)

// thread adds a thread of a process to a root.
func thread(root fstest.MapFS, pid, tid int, name, state, cpus string) {
	root[fmt.Sprintf("proc/%d/comm", pid)] = &fstest.MapFile{Data: []byte(name + "\n")}
	memory := "VmSize:\t    4096 kB\n"
	if state == "kernel" {
		memory, state = "Kthread:\t1\n", "R (running)"
	}
	root[fmt.Sprintf("proc/%d/task/%d/status", pid, tid)] = &fstest.MapFile{Data: []byte(fmt.Sprintf(
		"Name:\t%s\nState:\t%s\n%sCpus_allowed:\tff\nCpus_allowed_list:\t%s\n", name, state, memory, cpus))}
}

func TestSharedPUs(t *testing.T) {
	const sleeps, runs = "S (sleeping)", "R (running)"
	for _, c := range []struct {
		name  string
		pus   int
		fill  func(root fstest.MapFS)
		level Level // "": no finding
		want  []string
	}{
		{"nothing runs", 4, func(fstest.MapFS) {}, "", nil},
		{"one server", 4, func(r fstest.MapFS) {
			thread(r, 10, 10, "sandwich", sleeps, "0-3")
			thread(r, 10, 11, "sandwich", sleeps, "0")
			thread(r, 10, 12, "sandwich", runs, "0") // of a second pool
		}, OK, []string{"no other process"}},
		{"two servers on one PU", 4, func(r fstest.MapFS) {
			thread(r, 10, 11, "sandwich", sleeps, "2")
			thread(r, 20, 21, "sandwich", sleeps, "2")
		}, Costs, []string{"sandwich 10, sandwich 20 are bound to PU 2", "no thread is bound to 0-1,3"}},
		{"two servers apart", 4, func(r fstest.MapFS) {
			thread(r, 10, 11, "sandwich", sleeps, "2")
			thread(r, 20, 21, "sandwich", sleeps, "3")
		}, OK, nil},
		{"two servers on the only PU", 1, func(r fstest.MapFS) {
			thread(r, 10, 11, "sandwich", runs, "0")
			thread(r, 20, 21, "sandwich", runs, "0")
		}, Note, []string{"bound to every PU"}},
		{"a running program that is bound", 4, func(r fstest.MapFS) {
			thread(r, 10, 11, "sandwich", sleeps, "1")
			thread(r, 30, 31, "stress", runs, "1")
		}, Costs, []string{"sandwich 10, stress 30"}},
		{"others that sleep, are the kernel's, or are not bound", 4, func(r fstest.MapFS) {
			thread(r, 10, 11, "sandwich", sleeps, "1")
			thread(r, 30, 31, "stress", sleeps, "1")
			thread(r, 40, 41, "stress", runs, "0-3")
			thread(r, 50, 50, "kworker/1:0", "kernel", "1")
		}, OK, nil},
		{"other programs alone", 4, func(r fstest.MapFS) {
			thread(r, 30, 31, "stress", runs, "1")
			thread(r, 40, 41, "stress", runs, "1")
		}, "", nil},
		{"damaged files", 4, func(r fstest.MapFS) {
			thread(r, 10, 11, "sandwich", sleeps, "1")
			thread(r, 20, 21, "sandwich", sleeps, "1-")
			thread(r, 30, 31, "sandwich", sleeps, "99999999")
			r["proc/40/comm"] = &fstest.MapFile{Data: []byte("sandwich\n")}
			r["proc/40/task/41/status"] = &fstest.MapFile{Data: []byte("Cpus_allow")}
			r["proc/50/task/51/status"] = &fstest.MapFile{Data: []byte(strings.Repeat("x", 1<<20))}
		}, OK, nil},
	} {
		m, err := hwloc.ReadSynthetic(fmt.Sprintf("core:%d", c.pus))
		if err != nil {
			t.Fatal(err)
		}
		root := fstest.MapFS{}
		c.fill(root)
		found := checkShared(Host{Profile: profiles.New(m, profiles.Identity{}), Root: root})
		if c.level == "" {
			if len(found) > 0 {
				t.Errorf("%s: %+v", c.name, found)
			}
			continue
		}
		if len(found) != 1 || found[0].Level != c.level || c.level == Costs && found[0].Remedy == "" {
			t.Errorf("%s: %+v, want one finding of level %s", c.name, found, c.level)
			continue
		}
		for _, part := range c.want {
			if !strings.Contains(found[0].Found, part) {
				t.Errorf("%s: %q, want %q", c.name, found[0].Found, part)
			}
		}
	}
}
