package occupancy

import (
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"time"
)

// clockwork is a machine whose proc/stat says something else at each reading.
type clockwork struct {
	says []string
	more fstest.MapFS
}

func (c *clockwork) Open(name string) (fs.File, error) {
	if name != "proc/stat" || len(c.says) == 0 {
		return c.more.Open(name)
	}
	text := c.says[0]
	if len(c.says) > 1 {
		c.says = c.says[1:]
	}
	return fstest.MapFS{name: {Data: []byte(text)}}.Open(name)
}

// stat writes a line of proc/stat: ticks that a PU was busy, and idle.
func stat(pu, busy, idle int) string {
	return fmt.Sprintf("cpu%d %d 0 0 %d 0 0 0 0 0 0\n", pu, busy, idle)
}

func TestLoad(t *testing.T) {
	const long = "intr 12345 "
	for _, c := range []struct {
		name string
		says []string
		more fstest.MapFS
		want []map[int]float64
	}{
		{"two PUs", []string{"cpu  9 9 9 9 9 9 9 9 9 9\n" + stat(0, 100, 0) + stat(1, 5, 50) + long,
			stat(0, 120, 0) + stat(1, 10, 65) + long, stat(0, 120, 20) + stat(1, 25, 65)},
			nil, []map[int]float64{{0: 1, 1: 0.25}, {0: 0, 1: 1}}},
		{"steal and interrupts are use, waiting for a disk is not", []string{"cpu3 0 0 0 0 0 0 0 0\n",
			"cpu3 0 0 0 40 20 10 10 20\n"}, nil, []map[int]float64{{3: 0.4}}},
		{"guests count once", []string{"cpu3 0 0 0 0 0 0 0 0 0 0\n", "cpu3 10 0 0 10 0 0 0 0 10 0\n"}, nil,
			[]map[int]float64{{3: 0.5}}},
		{"asked again at once", []string{stat(0, 0, 0), stat(0, 10, 10), stat(0, 11, 10), stat(0, 40, 10)}, nil,
			[]map[int]float64{{0: 0.5}, {0: 0.5}, {0: 1}}},
		{"a PU comes online", []string{stat(0, 0, 0), stat(0, 10, 10) + stat(1, 500, 0)}, nil,
			[]map[int]float64{{0: 0.5}}},
		{"a counter that falls", []string{stat(0, 900, 0) + stat(1, 0, 0), stat(0, 10, 10) + stat(1, 10, 0)}, nil,
			[]map[int]float64{{1: 1}}},
		{"counters that stand still", []string{stat(0, 0, 0)}, nil, []map[int]float64{{}, {}}},
		{"no such file", nil, nil, []map[int]float64{{}, {}}},
		{"garbage", []string{"cpu0 1 2 3\ncpux 1 2 3 4 5 6 7 8\ncpu1 a b c d e f g h\ncpu-4 1 1 1 1 1 1 1 1\n\x00\n"},
			nil, []map[int]float64{{}}},
		{"numbers beyond any", []string{"cpu0 99999999999999999999 0 0 0 0 0 0 0\n"}, nil, []map[int]float64{{}}},
		{"a container renumbers the PUs", []string{stat(0, 0, 0), stat(0, 20, 0)}, fstest.MapFS{"proc/self/mounts": {
			Data: []byte("proc /proc proc rw 0 0\nlxcfs /proc/stat fuse.lxcfs rw 0 0\n")}}, []map[int]float64{{}}},
	} {
		waits := 0
		s := &System{root: &clockwork{c.says, c.more}, wait: func(time.Duration) { waits++ }}
		for i, want := range c.want {
			got := s.Load()
			if len(got) != len(want) {
				t.Errorf("%s: load %d is %v, want %v", c.name, i, got, want)
			}
			for pu, share := range want {
				if math.Abs(got[pu]-share) > 1e-9 {
					t.Errorf("%s: load %d is %v, want %v", c.name, i, got, want)
				}
			}
			got[0] = 7 // it belongs to the caller
		}
		if waits > 1 {
			t.Errorf("%s: it waited %d times", c.name, waits)
		}
	}
}

// TestHold reserves PUs from two processes' point of view.
func TestHold(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "a", "b")
	one, other := New([]string{folder}), New([]string{folder})
	type try struct {
		by   *System
		pu   int
		want bool
	}
	for i, c := range []try{{one, 0, true}, {other, 0, false}, {one, 0, true}, {other, 1, true}, {one, 1, false}} {
		if got := c.by.Hold(c.pu); got != c.want {
			t.Errorf("try %d: %v, want %v", i, got, c.want)
		}
	}
	one.Release(0)
	one.Release(0)
	other.Release(7)
	if !other.Hold(0) || one.Hold(0) {
		t.Error("a PU that was given up cannot be reserved, or twice")
	}
}

// TestHoldWithoutFolder checks that every PU is granted in a folder without locks, and that the
// next folder is used then.
func TestHoldWithoutFolder(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	odd := filepath.Join(dir, "odd")
	if err := os.MkdirAll(filepath.Join(odd, "pus"), 0o700); err != nil { // a folder in place of the file
		t.Fatal(err)
	}
	link := filepath.Join(dir, "link")
	if err := os.MkdirAll(link, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(file, filepath.Join(link, "pus")); err != nil {
		t.Fatal(err)
	}
	for _, folders := range [][]string{nil, {file}, {filepath.Join(file, "x")}, {odd}, {link}, {"/proc/sandwich"}} {
		a, b := New(folders), New(folders)
		if !a.Hold(0) || !b.Hold(0) {
			t.Errorf("%q: not granted", folders)
		}
		good := filepath.Join(dir, "good")
		a, b = New(append(slices.Clone(folders), good)), New(append(slices.Clone(folders), good))
		if !a.Hold(0) || b.Hold(0) {
			t.Errorf("%q: the next folder is not used", folders)
		}
		a.Release(0)
	}
}

func TestFolders(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("XDG_RUNTIME_DIR", dir)
	got := Folders("/data")
	if len(got) != 2 || got[0] != filepath.Join(dir, "sandwich") || !strings.HasPrefix(got[1], "/data/pus") {
		t.Errorf("folders %q", got)
	}
	t.Setenv("XDG_RUNTIME_DIR", filepath.Join(dir, "missing"))
	if got := Folders(""); len(got) != 0 {
		t.Errorf("without any folder: %q", got)
	}
}

// TestBound counts running threads of other processes that are bound to a PU.
func TestBound(t *testing.T) {
	root := fstest.MapFS{}
	add := func(pid int, name, state, list string) {
		root[fmt.Sprintf("proc/%d/comm", pid)] = &fstest.MapFile{Data: []byte(name + "\n")}
		root[fmt.Sprintf("proc/%d/task/%d/status", pid, pid)] = &fstest.MapFile{Data: []byte(
			"State:\t" + state + "\nVmSize:\t1 kB\nCpus_allowed_list:\t" + list + "\n")}
	}
	add(1, "sandwich", "R (running)", "0")
	add(2, "stress", "R (running)", "1")
	add(3, "stress", "S (sleeping)", "2")
	add(4, "stress", "R (running)", "3-4")
	s := &System{root: root, self: 1}
	if got := s.Bound(); got[0] || !got[1] || got[2] || got[3] || got[4] {
		t.Errorf("bound %v, want PU 1 alone", got)
	}
	if got := BoundThreads(root, "stress"); len(got) != 3 || len(got[2]) != 1 || got[2][0] != (Process{3, "stress"}) {
		t.Errorf("with idle ones: %v", got)
	}
}
