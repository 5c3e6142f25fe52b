package counters

import (
	"encoding/binary"
	"runtime"
	"testing"
	"testing/fstest"

	"golang.org/x/sys/unix"
)

func words(w ...uint64) (b []byte) {
	for _, x := range w {
		b = binary.NativeEndian.AppendUint64(b, x)
	}
	return b
}

// TestScaled reads the kernel's group format: counts of a group that was on the processor for a
// part of the time are scaled up.
func TestScaled(t *testing.T) {
	for _, c := range []struct {
		raw  []byte
		want []float64
		bad  bool
	}{
		{words(2, 100, 100, 7, 9), []float64{7, 9}, false},
		{words(2, 100, 25, 7, 9), []float64{28, 36}, false},
		{words(1, 0, 0, 0), []float64{0}, false},
		{words(1, 100, 0, 0), nil, true},
		{words(3, 100, 100, 7), nil, true},
		{words(1, 100), nil, true},
		{nil, nil, true},
	} {
		got, err := scaled(c.raw)
		if (err != nil) != c.bad || len(got) != len(c.want) {
			t.Errorf("%v: %v, %v", c.raw, got, err)
			continue
		}
		for i := range got {
			if got[i] != c.want[i] {
				t.Errorf("%v: %v, want %v", c.raw, got, c.want)
			}
		}
	}
}

// TestControllers finds memory controllers in a saved /sys.
func TestControllers(t *testing.T) {
	file := func(s string) *fstest.MapFile { return &fstest.MapFile{Data: []byte(s + "\n")} }
	root := fstest.MapFS{
		deviceDir + "/uncore_imc_0/type":                  file("14"),
		deviceDir + "/uncore_imc_0/cpumask":               file("0,24"),
		deviceDir + "/uncore_imc_0/events/cas_count_read": file("event=0x04,umask=0x03"),
		deviceDir + "/uncore_imc_1/type":                  file("15"),
		deviceDir + "/uncore_imc_1/cpumask":               file("0"),
		deviceDir + "/uncore_imc_1/events/cas_count_read": file("event=0x05,umask=0xcf,edge=1"),
		deviceDir + "/cpu/type":                           file("4"),
	}
	got := controllers(root)
	if len(got) != 2 || got[0] != (imcEvent{14, 0x304, 0}) || got[1] != (imcEvent{14, 0x304, 24}) {
		t.Errorf("controllers %+v", got)
	}
	m := openMemory(fstest.MapFS{})
	var c Counts
	m.read(&c)
	if c[MemoryReads].Missing != errNoControllers {
		t.Errorf("without controllers: %+v", c[MemoryReads])
	}
}

// TestSystem counts events of this thread. A counter that is not available has a reason, and
// available counters show the work.
func TestSystem(t *testing.T) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	set := System{}.Open([]int{unix.Gettid()})
	defer set.Close()
	before := set.Read()
	sum := 0
	for i := range 1 << 20 {
		sum += i * i
	}
	diff := set.Read().Sub(before)
	for e, v := range diff {
		if v.Missing != nil && v.Missing.Error() == "" {
			t.Errorf("event %d is missing without a reason", e)
		}
		if v.Missing == nil && v.Count < 0 {
			t.Errorf("event %d counted %v", e, v.Count)
		}
	}
	if err := diff[Instructions].Missing; err != nil {
		t.Skip("instructions are not counted; use a machine with a PMU and perf_event_paranoid of at most 2: ", err)
	}
	if n := diff[Instructions].Count; n < 1<<20 || sum == 0 {
		t.Errorf("%v instructions for a million additions", n)
	}
}
